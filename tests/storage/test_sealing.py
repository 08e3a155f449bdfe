"""What is sealed opens with its key, and with no other."""

from pathlib import Path

import pytest
import structlog

from gateway.storage import UNSEALED, Seal, is_sealed, key_in
from gateway.storage.sealing import FILE, LOST


def seal(*keys: str) -> Seal:
    return Seal(lambda: keys)


VALUES = {"word": "s3cret", "sealed:": "sealed:looks like one", "object": {"a": [1, None, "é"]}, "nothing": ""}


def test_values_come_back_as_they_were_and_cannot_be_read_meanwhile() -> None:
    closed = seal("k").closed(VALUES)
    assert all(map(is_sealed, closed.values()))
    assert "s3cret" not in str(closed)
    assert [*closed] == [*VALUES]
    assert seal("k").opened(closed) == VALUES


def test_the_first_key_seals_and_each_opens() -> None:
    old, new = seal("old").closed(VALUES), seal("new", "old").closed(VALUES)
    assert seal("new", "old").opened(old) == seal("new", "old").opened(new) == seal("new").opened(new) == VALUES


def test_what_was_sealed_with_another_key_is_left_out_and_told_without_it() -> None:
    closed, here = seal("lost").closed({"a": "s3cret", "c": "another"}), seal("k")
    with structlog.testing.capture_logs() as told:
        for _ in range(3):
            assert here.opened({**closed, "b": "never sealed"}) == {"b": "never sealed"}
    assert [line["event"] for line in told] == [LOST]


def test_bytes_are_sealed_too() -> None:
    closed = seal("k").close(b"s3cret")
    assert b"s3cret" not in closed
    assert seal("k").open(closed) == b"s3cret"
    assert seal("k").open(b"never sealed") == b"never sealed"
    assert seal("other").open(closed) is None


def test_nothing_is_sealed_where_nothing_is_stored() -> None:
    assert UNSEALED.closed(VALUES) == VALUES
    assert UNSEALED.close(b"x") == UNSEALED.open(b"x") == b"x"


def test_a_key_is_wanted_only_when_a_secret_comes() -> None:
    asked: list[int] = []

    def keys() -> list[str]:
        asked.append(1)
        return ["k"]

    sealing = Seal(keys)
    assert (sealing.closed({}), sealing.opened({"a": 1}), asked) == ({}, {"a": 1}, [])
    for _ in range(3):
        sealing.closed({"a": 1})
    assert asked == [1]


def test_a_folder_has_one_key_for_its_owners_eyes(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    key = key_in(folder)
    assert len(key) >= 32
    assert key_in(folder) == key
    assert [path.name for path in folder.iterdir()] == [FILE]
    assert (folder / FILE).stat().st_mode & 0o777 == 0o600


def test_a_server_that_was_slower_takes_the_key_of_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / FILE).write_text("the other's\n")
    real = Path.exists
    monkeypatch.setattr(Path, "exists", lambda path: path.name != FILE and real(path))
    assert key_in(tmp_path) == "the other's"
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
