"""What is exported can be imported: the same sessions, all or none, into a file that may have others."""

from pathlib import Path

import pytest

import gateway.model as m
from gateway.errors import Conflict, GatewayError, NotFound
from gateway.storage import Database, FernetSeal, StorageUnusable, create_database
from gateway.storage.log import open_log_file
from gateway.storage.log.export_import import SEGMENT, export_sessions, import_sessions
from gateway.storage.log.verification import verify_log
from tests.support.storage.stored_sessions import SESSIONS, kept, session, store


def lines(path: Path, *sessions: str) -> list[bytes]:
    return b"".join(export_sessions(path, sessions)).splitlines(keepends=True)


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    await store(tmp_path / "a.db")
    return tmp_path / "a.db"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    create_database(tmp_path / "b.db")
    return tmp_path / "b.db"


def test_a_round_trip(path: Path, other: Path) -> None:
    done = import_sessions(other, lines(path))
    assert (done.sessions, done.records, done.replaced) == (3, sum(map(len, SESSIONS.values())), 0)
    assert kept(other) == SESSIONS
    assert lines(other) == lines(path)
    assert verify_log(other).problems == []
    with open_log_file(other) as file:
        assert [(head.session_id, head.owner, head.in_turn) for head in file.heads()] == [
            ("s1", "ann", False), ("s2", "ann", False), ("s3", "ann", True)]


async def test_a_long_session_comes_in_pieces(tmp_path: Path, other: Path) -> None:
    await store(tmp_path / "long.db", {"s": session("s", SEGMENT // 5)}, group=999)
    import_sessions(other, lines(tmp_path / "long.db"))
    assert kept(other) == {"s": session("s", SEGMENT // 5)}
    assert verify_log(other).segments > 2
    assert verify_log(other).problems == []


def test_secrets_are_carried_sealed(path: Path, other: Path) -> None:
    seal = FernetSeal(lambda: ["k" * 32])
    carried = b"".join(export_sessions(path, ["s1"], seal=seal)).splitlines()
    assert b"s3cret" not in b"".join(carried)
    import_sessions(other, carried, seal=FernetSeal(lambda: ["another key"]))
    assert kept(other, seal) == {"s1": SESSIONS["s1"]}


def test_secrets_of_an_old_file_are_sealed_on_their_way_in(path: Path, other: Path) -> None:
    seal = FernetSeal(lambda: ["k" * 32])
    import_sessions(other, lines(path), seal=seal)
    assert b"s3cret" not in other.read_bytes()
    assert kept(other, seal) == SESSIONS


def test_some_sessions_only(path: Path, other: Path) -> None:
    import_sessions(other, lines(path, "s3", "s2"))
    assert kept(other) == {name: SESSIONS[name] for name in ("s3", "s2")}
    with pytest.raises(NotFound, match="there is no session 'nobody'"):
        lines(path, "s1", "nobody")


def test_who_is_there_already_is_refused_or_replaced(path: Path, other: Path) -> None:
    import_sessions(other, lines(path, "s2"))
    with pytest.raises(Conflict, match="there is a session 's2' already; --replace puts this one in its place"):
        import_sessions(other, lines(path))
    assert kept(other) == {"s2": SESSIONS["s2"]}, "all or none"
    assert import_sessions(other, lines(path), replace=True).replaced == 1
    assert kept(other) == SESSIONS
    assert verify_log(other).problems == []


def told(name: str, *places: int) -> list[bytes]:
    return [m.encode_record(SESSIONS[name][place]) + b"\n" for place in places]


HEADER = b'{"format":"dragoman log","model":1}\n'


@pytest.mark.parametrize(("wrong", "words"), [
    ([], "line 1: this was not written by `dragoman log export`"),
    (told("s1", 0), "line 1: this was not written by `dragoman log export`"),
    ([b"\xff\n"], "line 1: this was not written by"),
    ([HEADER.replace(b"1}", f"{m.MODEL_VERSION + 1}}}".encode())], "line 1: this was written by a newer Dragoman"),
    ([HEADER, *told("s1", 0), b"\n", b"nonsense\n"], "line 4: is no record"),
    ([HEADER, *told("s1", 0), b'{"seq":2}\n'], "line 3: is no record"),
    ([HEADER, *told("s1", 1)], "line 2: session 's1' does not begin with session.created"),
    ([HEADER, *told("s1", 0, 2)], "line 3: record 2 of session 's1' is wanted, and this is 3"),
    ([HEADER, *told("s1", 0), *told("s2", 0), *told("s1", 1)], "line 4: more of session 's1'"),
    ([HEADER, *told("s1", 0, 1), told("s1", 11)[0].replace(b'"seq":12', b'"seq":3')], "line 4: "),
])
def test_wrong_lines_are_named_and_nothing_is_taken(other: Path, wrong: list[bytes], words: str) -> None:
    with pytest.raises(GatewayError) as refused:
        import_sessions(other, wrong)
    assert refused.value.message.startswith(words)
    assert kept(other) == {}


async def test_not_while_a_server_runs(path: Path, other: Path) -> None:
    database = Database(other)
    await database.open()
    with pytest.raises(StorageUnusable, match="is in use by another server"):
        import_sessions(other, lines(path))
    await database.close()


def test_progress_is_told(path: Path, other: Path) -> None:
    heard: list[tuple[int, int]] = []

    def note(done: int, total: int) -> None:
        heard.append((done, total))

    written = b"".join(export_sessions(path, (), note)).splitlines()
    import_sessions(other, written, progress=note)
    assert heard == [(1, 3), (2, 3), (3, 3), (1, 0), (2, 0), (3, 0)]
