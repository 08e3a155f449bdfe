"""Keys are shown once, stored as hashes beside the log, and removed with those that they made."""

import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gateway.errors import Conflict, Invalid, NotFound, Overloaded
from gateway.ports.keys import Key, KeyChange
from gateway.resources import KeyStore
from gateway.resources.keys import (
    CARRIED,
    FILE,
    add_key,
    hash_token,
    import_keys,
    issue_key,
    relabel_key,
    remove_key,
    revoke_key,
)
from gateway.storage.resources.key_tables import SqliteKeyTable
from gateway.yaml_positions import Problems
from tests.support.key_stores import key_store


@pytest.fixture
def store(tmp_path: Path) -> KeyStore:
    return key_store(tmp_path / "data")


def test_a_key_opens_for_its_user(store: KeyStore) -> None:
    assert store.verify(store.add("laptop", "ada")) == "ada"


def test_without_a_user_the_key_is_its_own(store: KeyStore) -> None:
    assert store.verify(store.add("ada")) == "ada"


@pytest.mark.parametrize("token", ["", "dgm_", "dgm_wrong", "ada", "\udcff", "ü"])
def test_nothing_else_opens(store: KeyStore, token: str) -> None:
    store.add("ada")
    assert store.verify(token) is None


def test_without_a_file_nothing_opens(store: KeyStore) -> None:
    assert store.verify("dgm_any") is None
    assert store.list() == ()


def test_keys_are_long_and_never_the_same(store: KeyStore) -> None:
    first, second = store.add("one"), store.add("two")
    assert first != second
    assert first.startswith("dgm_")
    assert len(first) >= 47


def test_a_name_is_given_once(store: KeyStore) -> None:
    token = store.add("ada")
    with pytest.raises(Conflict, match="there is a key 'ada' already; remove it first, or choose another name"):
        store.add("ada", "bob")
    assert store.verify(token) == "ada"


def test_a_removed_key_opens_no_more(store: KeyStore) -> None:
    gone, kept = store.add("ada"), store.add("bob")
    assert store.verify(gone) == "ada"
    store.remove("ada")
    assert store.verify(gone) is None
    assert store.verify(kept) == "bob"


def test_removing_what_is_not_there_is_refused(store: KeyStore) -> None:
    store.add("laptop")
    with pytest.raises(NotFound, match=r"there is no key 'labtop'; did you mean 'laptop'\?"):
        store.remove("labtop")


@pytest.mark.parametrize("name", ["", "two words", "new\nline", "x" * 129])
def test_odd_names_are_refused(store: KeyStore, name: str) -> None:
    with pytest.raises(Invalid, match="is not a name for a key or a user"):
        store.add(name)


def test_the_key_itself_is_stored_nowhere_and_the_database_is_for_its_owner_only(
    store: KeyStore, tmp_path: Path,
) -> None:
    token = store.add("ada")
    assert [(key.name, key.user) for key in store.list()] == [("ada", "ada")]
    for file in (tmp_path / "data").iterdir():
        assert token.removeprefix("dgm_").encode() not in file.read_bytes()
        assert file.stat().st_mode & 0o077 == 0


def test_two_who_change_the_keys_at_once_both_succeed(tmp_path: Path) -> None:
    table = SqliteKeyTable(tmp_path / "dragoman.db")
    version, keys = table.load()
    first, _ = add_key("one")(keys)
    second, _ = add_key("two")(keys)
    assert table.change(version, first)
    assert not table.change(version, second), "the keys have changed meanwhile: look again"
    table.close()
    key_store(tmp_path).add("two")
    assert [key.name for key in key_store(tmp_path).list()] == ["one", "two"]


def test_a_store_that_cannot_be_written_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "dragoman.db").mkdir()
    with pytest.raises(Overloaded, match="keys cannot be read or stored just now: "):
        key_store(tmp_path).add("ada")


# -- a user's own -----------------------------------------------------------------------------------------------------

def apply(keys: list[Key], change: KeyChange) -> list[Key]:
    return [key for key in keys if key.hash not in {one.hash for one in (*change.put, *change.remove)}] + [*change.put]


def test_a_key_that_a_user_makes_is_theirs() -> None:
    change, (made, token) = issue_key("ada", "My Key", "sk-x-")([])
    assert token.startswith("sk-x-")
    assert (made.masked, made.hash, made.user) == (f"sk-x-...{token[-4:]}", hash_token(token), "ada")
    assert made.name == made.key_id
    assert change.put == (made,)
    with pytest.raises(NotFound):
        revoke_key("bob", made.key_id)([made])
    with pytest.raises(NotFound):
        relabel_key("bob", made.key_id, "x")([made])
    assert relabel_key("ada", made.key_id, "two")([made])[1].label == "two"


def test_a_user_has_so_many_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.resources.keys.MAX_KEYS", 1)
    change, _ = issue_key("ada", "one")([])
    with pytest.raises(Conflict, match="you have 1 keys already"):
        issue_key("ada", "two")(change.put)
    issue_key("bob", "one")(change.put)


def test_a_key_takes_those_with_it_that_it_made_and_those_that_they_made() -> None:
    keys: list[Key] = []
    for name, parent in (("a", None), ("b", 0), ("c", 1), ("d", None), ("e", 3)):
        rule = add_key(name) if parent is None else issue_key("a", name, parent=keys[parent].hash)
        keys = apply(keys, rule(keys)[0])
    change, gone = remove_key("a")(keys)
    assert [key.label or key.name for key in gone] == ["a", "b", "c"]
    assert [key.label or key.name for key in apply(keys, change)] == ["d", "e"]
    assert [key.label for key in revoke_key("a", keys[1].key_id)(keys)[1]] == ["b", "c"]


def test_a_key_that_nobody_made_opens_nothing(tmp_path: Path) -> None:
    """A page could have it made while `auth: none` was in force."""
    table = SqliteKeyTable(tmp_path / "data" / "dragoman.db")
    change, (_, token) = issue_key("", "local")([])
    assert table.change(0, change)
    table.close()
    assert key_store(tmp_path / "data").verify(token) is None


# -- the file of before -----------------------------------------------------------------------------------------------

OLD = {"name": "ada", "user": "ada", "hash": hash_token("dgm_old"), "created": "2026-01-01T00:00:00Z",
       "used": "2026-02-01T00:00:00Z"}
NOBODYS = {**OLD, "name": "key_1", "user": "", "hash": hash_token("dgm_nobody")}


def write_old(folder: Path, *keys: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps({"version": 1, "keys": keys}))


def test_a_file_of_keys_is_carried_over_once(store: KeyStore, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    write_old(folder, OLD, NOBODYS)
    with capture_logs() as lines:
        assert store.verify("dgm_old") == "ada"
    assert store.verify("dgm_nobody") is None
    assert [(line["event"], line["keys"]) for line in lines] == [("keys_carried_over", 2)]
    assert not (folder / FILE).exists()
    assert (folder / CARRIED).exists()
    assert store.list()[0].used == datetime(2026, 2, 1, tzinfo=UTC)
    store.remove("ada")
    write_old(folder, OLD)
    assert store.verify("dgm_old") is None, "another copy of the file does not bring a removed key back"
    assert [key.name for key in store.list()] == ["key_1"]
    store.add("ada")


def test_a_key_that_is_stored_already_is_not_carried_over_again() -> None:
    key = Key(name="a", user="a", hash="h", created=datetime.now(UTC))
    assert import_keys([key])([key]) == (KeyChange(), 0)
    assert import_keys([key])([])[1] == 1


def test_a_broken_file_of_keys_is_told(store: KeyStore, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / FILE).write_text("{")
    with pytest.raises(Problems, match=r"keys\.json:1:1: is not a file of keys: .*; mend it"):
        store.list()


def test_the_database_of_a_server_that_runs_can_be_changed_beside_it(tmp_path: Path) -> None:
    key_store(tmp_path).add("one")
    server = sqlite3.connect(tmp_path / "dragoman.db", isolation_level=None)
    server.execute("BEGIN")
    server.execute("SELECT * FROM counters").fetchall()
    key_store(tmp_path).add("two")
    server.execute("COMMIT")
    assert server.execute("SELECT count(*) FROM keys").fetchone() == (2,)
    server.close()
