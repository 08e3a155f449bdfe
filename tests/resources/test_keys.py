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
