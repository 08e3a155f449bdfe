"""Keys are shown once, kept as hashes, and seen by a running server."""

from pathlib import Path

import pytest

from gateway.errors import Conflict, Invalid, NotFound
from gateway.marks import Problems
from gateway.resources.keys import FILE, KeyStore


@pytest.fixture
def store(tmp_path: Path) -> KeyStore:
    return KeyStore(tmp_path / "data")


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


def test_the_key_itself_is_not_kept(store: KeyStore, tmp_path: Path) -> None:
    token = store.add("ada")
    text = (tmp_path / "data" / FILE).read_text()
    assert token not in text
    assert token.removeprefix("dgm_") not in text
    assert [(key.name, key.user) for key in store.list()] == [("ada", "ada")]


def test_keys_are_long_and_never_the_same(store: KeyStore) -> None:
    first, second = store.add("one"), store.add("two")
    assert first != second
    assert first.startswith("dgm_")
    assert len(first) >= 47


def test_the_file_is_for_its_owner_only(store: KeyStore, tmp_path: Path) -> None:
    store.add("ada")
    assert (tmp_path / "data" / FILE).stat().st_mode & 0o777 == 0o600
    assert [file.name for file in (tmp_path / "data").iterdir()] == [FILE]


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
    with pytest.raises(Invalid, match="is no name for a key or a user"):
        store.add(name)


def test_a_running_server_sees_what_another_process_changed(store: KeyStore, tmp_path: Path) -> None:
    server = KeyStore(tmp_path / "data")
    assert server.verify("dgm_none") is None
    token = store.add("ada")
    assert server.verify(token) == "ada"
    store.remove("ada")
    assert server.verify(token) is None


def test_a_broken_file_is_told_by_the_commands(store: KeyStore, tmp_path: Path) -> None:
    store.add("ada")
    (tmp_path / "data" / FILE).write_text("{")
    with pytest.raises(Problems, match=r"keys\.json:1:1: is not a file of keys: .*; mend it"):
        store.list()


def test_a_broken_file_leaves_the_keys_from_before_in_force(store: KeyStore, tmp_path: Path) -> None:
    token = store.add("ada")
    assert store.verify(token) == "ada"
    (tmp_path / "data" / FILE).write_text("{")
    assert store.verify(token) == "ada"


# -- a user's own -----------------------------------------------------------------------------------------------------

def test_a_key_that_a_user_makes_opens_for_them(store: KeyStore) -> None:
    made, token = store.issue("ada", "My Key", "sk-x-")
    assert token.startswith("sk-x-")
    assert made.masked == f"sk-x-...{token[-4:]}"
    assert store.verify(token) == "ada"
    assert made.key_id.startswith("key_")
    assert made.name == made.key_id


def test_a_user_sees_their_own_keys_only(store: KeyStore) -> None:
    mine, _ = store.issue("ada", "one")
    theirs, _ = store.issue("bob", "one")
    assert [key.key_id for key in store.of("ada")] == [mine.key_id]
    for call in (store.find, store.revoke, lambda user, key: store.relabel(user, key, "x")):
        with pytest.raises(NotFound):
            call("ada", theirs.key_id)


def test_a_key_is_called_otherwise_and_opens_as_before(store: KeyStore) -> None:
    made, token = store.issue("ada", "one")
    assert store.relabel("ada", made.key_id, "two").label == "two"
    assert store.find("ada", made.key_id).label == "two"
    assert store.verify(token) == "ada"


def test_a_revoked_key_opens_no_more(store: KeyStore) -> None:
    made, token = store.issue("ada", "one")
    store.revoke("ada", made.key_id)
    assert store.verify(token) is None
    assert store.of("ada") == ()


def test_use_is_known_at_once_and_kept_when_the_server_stops(store: KeyStore, tmp_path: Path) -> None:
    made, token = store.issue("ada", "one")
    assert made.used is None
    store.verify(token)
    used = store.find("ada", made.key_id).used
    assert used is not None
    assert KeyStore(tmp_path / "data").find("ada", made.key_id).used is None
    store.remember_use()
    assert KeyStore(tmp_path / "data").find("ada", made.key_id).used == used


def test_a_user_has_so_many_keys(store: KeyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.resources.keys.MOST", 1)
    store.issue("ada", "one")
    with pytest.raises(Conflict, match="you have 1 keys already"):
        store.issue("ada", "two")
    store.issue("bob", "one")


def test_a_key_made_by_the_command_has_an_id_too(store: KeyStore) -> None:
    token = store.add("laptop", "ada")
    (key,) = store.of("ada")
    assert store.find("ada", key.key_id).name == "laptop"
    assert key.masked == f"dgm_...{token[-4:]}"
