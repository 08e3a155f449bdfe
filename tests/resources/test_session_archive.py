"""A session goes into a ZIP and comes out whole; a ZIP that somebody made up is refused."""

import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import gateway.model as m
from gateway.errors import Invalid, TooLarge
from gateway.ports import Workspace
from gateway.resources import FolderWorkspaces, pack_entries
from gateway.resources.session_archive import (
    FORMAT,
    MANIFEST,
    RECORDS,
    SessionArchive,
    session_entries,
    unpack_session,
    unpack_session_files,
)
from gateway.resources.workspaces import WorkspaceLimits
from tests.support.file_contents import whole

SECRET = m.Settings(secrets={"api_key": "hush"}, options={"tone": "plain"})


async def pack(file: Path, records: Sequence[m.Record], space: Workspace) -> None:
    with file.open("wb") as opened:
        opened.writelines([piece async for piece in pack_entries(session_entries(records, space, 99.0))])


def unpacked(file: Path, keep: str = "") -> SessionArchive:
    with file.open("rb") as opened:
        return unpack_session(opened, keep)


async def unpack_files(file: Path, space: Workspace) -> None:
    with file.open("rb") as opened:
        await unpack_session_files(opened, space)


def record(seq: int, event: Any, turn_id: str | None = None) -> m.Record:
    return m.Record(seq=seq, at=float(seq), session_id="sess_1", event=event, turn_id=turn_id)


TOLD = [
    record(1, m.SessionCreated(agent="a", owner="ada", title="T", settings=SECRET, metadata={
        m.PRIVATE: {"mine": {"pinned": True}, "other": {"vault": "v"}}, "shown": 1,
    })),
    record(2, m.InputAccepted(command_id="c", command=m.Configure(settings=SECRET))),
    record(3, m.SessionUpdated(title="New")),
    record(4, m.InputAccepted(command_id="c", command=m.SendMessage(content="hi")), "t1"),
    record(5, m.TurnStarted(command_id="c"), "t1"),
    record(6, m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN), "t1"),
]
RUNNING = [
    record(7, m.InputAccepted(command_id="d", command=m.SendMessage(content="more")), "t2"),
    record(8, m.TurnStarted(command_id="d"), "t2"),
    record(9, m.NoticePosted(topic="t", title="n"), "t2"),
]


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return FolderWorkspaces(tmp_path / "w", WorkspaceLimits(file_bytes=100, total_bytes=200, files=3)).of("sess_1")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "session.zip"


async def test_a_session_comes_out_as_it_went_in_but_for_secrets(space: Workspace, file: Path) -> None:
    await space.write("a/b.txt", b"hello")
    await pack(file, TOLD, space)
    assert b"hush" not in b"".join(zipfile.ZipFile(file).read(name) for name in zipfile.ZipFile(file).namelist())
    found = unpacked(file, "mine")
    assert (found.manifest.title, found.manifest.agent, found.manifest.exported_at) == ("New", "a", 99.0)
    assert (found.manifest.model_version, found.files) == (m.MODEL_VERSION, ["a/b.txt"])
    assert found.records[3:] == TOLD[3:]
    created = found.records[0].event
    assert isinstance(created, m.SessionCreated)
    assert created.settings == m.Settings(options={"tone": "plain"})
    assert created.metadata == {m.PRIVATE: {"mine": {"pinned": True}}, "shown": 1}


async def test_files_come_out_too(space: Workspace, file: Path, tmp_path: Path) -> None:
    await space.write("a/b.txt", b"hello")
    await pack(file, TOLD, space)
    other = FolderWorkspaces(tmp_path / "w").of("sess_2")
    await unpack_files(file, other)
    assert await whole(await other.open("a/b.txt")) == b"hello"


async def test_a_turn_that_still_runs_stays_behind(space: Workspace, file: Path) -> None:
    await pack(file, [*TOLD, *RUNNING], space)
    assert len(unpacked(file, "").records) == len(TOLD)


# -- ZIPs that somebody made up ---------------------------------------------------------------------------------------

def manifest(**changes: Any) -> bytes:
    return msgspec.json.encode({
        "format": FORMAT, "version": 1, "model_version": m.MODEL_VERSION, "session_id": "sess_1", "agent": "a",
        "records": len(TOLD), **changes,
    })


LINES = b"".join(m.encode_record(one) + b"\n" for one in TOLD)


def made(file: Path, *more: tuple[Any, bytes], told: bytes = manifest(), lines: bytes = LINES) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in ((MANIFEST, told), (RECORDS, lines), *more):
            archive.writestr(name, content)
    return file


def linked() -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo("workspace/link")
    entry.external_attr = 0o120777 << 16
    return entry


def test_what_is_made_up_well_is_taken(file: Path) -> None:
    assert unpacked(made(file), "").records[3:] == TOLD[3:]


@pytest.mark.parametrize("make", [
    lambda file: file.write_bytes(b"PK nonsense"),
    lambda file: file.write_bytes(b""),
    lambda file: made(file, ("../evil", b"")),
    lambda file: made(file, ("/etc/passwd", b"")),
    lambda file: made(file, ("other.txt", b"")),
    lambda file: made(file, (linked(), b"/etc/passwd")),
    lambda file: made(file, told=b"{}"),
    lambda file: made(file, told=b"nonsense"),
    lambda file: made(file, told=manifest(format="other")),
    lambda file: made(file, told=manifest(model_version=99)),
    lambda file: made(file, told=manifest(records=1)),
    lambda file: made(file, told=manifest(session_id="sess_2")),
    lambda file: made(file, lines=b"{}\n"),
    lambda file: made(file, lines=b"\xff\n"),
    lambda file: made(file, lines=LINES.replace(b"session.created", b"session.dreamt")),
    lambda file: zipfile.ZipFile(file, "w").close(),
], ids=range(16))
def test_what_is_no_session_is_refused(file: Path, make: Callable[[Path], Any]) -> None:
    make(file)
    with pytest.raises(Invalid):
        unpacked(file, "")


def test_a_broken_entry_is_refused(file: Path) -> None:
    content = bytearray(made(file).read_bytes())
    at = content.index(b"records.jsonl") + 20
    content[at:at + 30] = b"\xff" * 30
    file.write_bytes(content)
    with pytest.raises(Invalid):
        unpacked(file, "")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_nothing_is_there_twice(file: Path) -> None:
    with pytest.raises(Invalid, match="twice"):
        unpacked(made(file, (RECORDS, LINES)), "")


async def test_bombs_do_not_go_off(file: Path, space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TooLarge):
        unpacked(made(file, told=b" " * 70_000), "")
    with pytest.raises(TooLarge):
        await unpack_files(made(file, ("workspace/big", b"0" * 1_000_000)), space)
    with pytest.raises(TooLarge, match="holds 200 bytes"):
        await unpack_files(made(file, *((f"workspace/{n}", b"0" * 90) for n in range(3))), space)
    monkeypatch.setattr("gateway.resources.session_archive.MAX_RECORDS", 100)
    with pytest.raises(TooLarge):
        unpacked(made(file), "")
    monkeypatch.setattr("gateway.resources.session_archive.MAX_ENTRIES", 2)
    with pytest.raises(TooLarge):
        unpacked(made(file, ("workspace/a", b"")), "")


@pytest.mark.parametrize("name", ["workspace/../../x", "workspace//etc/passwd/..", "workspace/a\\..\\..\\x"])
async def test_no_file_leads_out(file: Path, space: Workspace, name: str) -> None:
    with pytest.raises(Invalid):
        await unpack_files(made(file, (name, b"x")), space)
