"""What is sealed opens with its key, and with no other."""

from pathlib import Path

import pytest
import structlog

from gateway.storage import UNSEALED, FernetSeal, Seal, is_sealed, load_or_create_key
from gateway.storage.sealing import FILE, KEY_LOST


def seal(*keys: str) -> Seal:
    return FernetSeal(lambda: keys)


VALUES = {"word": "s3cret", "sealed:": "sealed:looks like one", "object": {"a": [1, None, "é"]}, "nothing": ""}


def test_values_come_back_as_they_were_and_cannot_be_read_meanwhile() -> None:
    closed = seal("k").seal(VALUES)
    assert all(map(is_sealed, closed.values()))
    assert "s3cret" not in str(closed)
    assert [*closed] == [*VALUES]
    assert seal("k").unseal(closed) == VALUES


def test_the_first_key_seals_and_each_opens() -> None:
    old, new = seal("old").seal(VALUES), seal("new", "old").seal(VALUES)
    assert seal("new", "old").unseal(old) == seal("new", "old").unseal(new) == seal("new").unseal(new) == VALUES


def test_what_was_sealed_with_another_key_is_left_out_and_told_without_it() -> None:
    closed, here = seal("lost").seal({"a": "s3cret", "c": "another"}), seal("k")
    with structlog.testing.capture_logs() as told:
        for _ in range(3):
            assert here.unseal({**closed, "b": "never sealed"}) == {"b": "never sealed"}
    assert [(line["event"], line["advice"]) for line in told] == [("secret_key_unknown", KEY_LOST)]


def test_bytes_are_sealed_too() -> None:
    closed = seal("k").seal_bytes(b"s3cret")
    assert b"s3cret" not in closed
    assert seal("k").unseal_bytes(closed) == b"s3cret"
    assert seal("k").unseal_bytes(b"never sealed") == b"never sealed"
    assert seal("other").unseal_bytes(closed) is None


def test_nothing_is_sealed_where_nothing_is_stored() -> None:
    assert UNSEALED.seal(VALUES) == VALUES
    assert UNSEALED.seal_bytes(b"x") == UNSEALED.unseal_bytes(b"x") == b"x"


def test_a_key_is_wanted_only_when_a_secret_comes() -> None:
    asked: list[int] = []

    def keys() -> list[str]:
        asked.append(1)
        return ["k"]

    sealing = FernetSeal(keys)
    assert (sealing.seal({}), sealing.unseal({"a": 1}), asked) == ({}, {"a": 1}, [])
    for _ in range(3):
        sealing.seal({"a": 1})
    assert asked == [1]


def test_a_folder_has_one_key_for_its_owners_eyes(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    key = load_or_create_key(folder)
    assert len(key) >= 32
    assert load_or_create_key(folder) == key
    assert [path.name for path in folder.iterdir()] == [FILE]
    assert (folder / FILE).stat().st_mode & 0o777 == 0o600


def test_a_server_that_was_slower_takes_the_key_of_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / FILE).write_text("the other's\n")
    real = Path.exists
    monkeypatch.setattr(Path, "exists", lambda path: path.name != FILE and real(path))
    assert load_or_create_key(tmp_path) == "the other's"
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
