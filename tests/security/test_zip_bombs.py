"""A ZIP that is small where it is sent and large where it is unpacked is refused, and leaves nothing."""

import struct
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import gateway.model as m
from gateway.errors import Invalid, TooLarge
from gateway.ports import Workspace
from gateway.resources import FolderWorkspaces, session_archive
from tests.support.dialects.blade.rest_server import Client, blade, say

MIB = 1024 * 1024


def form(content: bytes) -> aiohttp.FormData:
    made = aiohttp.FormData()
    made.add_field("file", BytesIO(content), filename="session.zip", content_type="application/zip")
    return made


async def exported(client: Client) -> bytes:
    session = await client.session()
    await say(client, session, "one")
    content: bytes = (await client.get(f"/sessions/{session}/export")).body
    return content


def with_files(content: bytes, count: int, size: int) -> bytes:
    whole = BytesIO(content)
    with zipfile.ZipFile(whole, "a", zipfile.ZIP_DEFLATED) as opened:
        for number in range(count):
            opened.writestr(f"workspace/{number}", b"\0" * size)
    return whole.getvalue()


def names_below(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*")}


async def test_a_small_zip_does_not_become_a_large_workspace(tmp_path: Path) -> None:
    async with blade(tmp_path) as client:
        bomb = with_files(await exported(client), 20, 2 * MIB)
        assert len(bomb) < 100_000
        before = names_below(tmp_path)
        sessions = client.gateway.runtime.log.session_count
        for path in ("/sessions/preview-import", "/sessions/import"):
            answer = await client.post(path, form(bomb))
            assert answer.status == 413, answer.body
        assert client.gateway.runtime.log.session_count == sessions
        assert names_below(tmp_path) - before <= {"files", ".drafts"}, "no file of it"


async def test_an_import_beyond_the_quota_is_refused_before_anything_is_kept(tmp_path: Path) -> None:
    async with blade(tmp_path, limits={"per_key": {"stored_bytes": MIB}}) as client:
        plain = await exported(client)
        large = with_files(plain, 3, MIB // 2)
        before, sessions = names_below(tmp_path), client.gateway.runtime.log.session_count
        answer = await client.post("/sessions/import", form(large))
        assert (answer.status, answer.headers["Retry-After"]) == (429, "60")
        assert client.gateway.runtime.log.session_count == sessions
        assert names_below(tmp_path) - before <= {"files", ".drafts"}, "no file of it"
        assert (await client.post("/sessions/import", form(with_files(plain, 1, MIB // 2)))).status == 200


def made(file: Path, files: int = 0, size: int = 0) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr(session_archive.MANIFEST, b"{}")
        opened.writestr(session_archive.RECORDS, b"\n")
        for number in range(files):
            opened.writestr(f"workspace/{number}", b"\0" * size)
    return file


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


async def unpack_files(file: Path, space: Workspace) -> None:
    with file.open("rb") as opened:
        await session_archive.unpack_session_files(opened, space)


def unpack(file: Path) -> None:
    with file.open("rb") as opened:
        session_archive.unpack_session(opened, "")


async def test_files_are_held_to_their_room_while_they_are_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_archive, "ROOM", 3 * MIB)
    space = FolderWorkspaces(tmp_path / "w").of("sess_1")
    with pytest.raises(TooLarge, match="more than a ZIP of this size may"):
        await unpack_files(made(tmp_path / "bomb.zip", 5, MIB), space)
    assert size_of(tmp_path / "w") <= 4 * MIB
    assert not list((tmp_path / "w" / ".drafts").iterdir())


async def test_a_zip_that_tells_a_smaller_size_than_it_has_is_refused(tmp_path: Path) -> None:
    file = made(tmp_path / "liar.zip", 1, MIB)
    content = file.read_bytes()
    file.write_bytes(content.replace(struct.pack("<L", MIB), struct.pack("<L", 10)))
    with pytest.raises(Invalid):
        await unpack_files(file, FolderWorkspaces(tmp_path / "w").of("sess_1"))


def test_a_long_list_of_entries_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = made(tmp_path / "long.zip", 20, 1)

    def trip(*given: Any) -> Any:
        raise AssertionError("the list was read")

    monkeypatch.setattr(session_archive, "MAX_ENTRIES", 1)
    monkeypatch.setattr("zipfile.ZipFile", trip)
    with pytest.raises(TooLarge, match="entries"):
        unpack(file)


def test_a_file_of_line_ends_is_not_split(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "lines.zip", "w", zipfile.ZIP_DEFLATED) as opened:
        manifest = b'{"format":"dragoman.session","version":1,"model_version":%d,"session_id":"s","agent":"a"}'
        opened.writestr(session_archive.MANIFEST, manifest % m.MODEL_VERSION)
        opened.writestr(session_archive.RECORDS, b"\n" * 600_000)
    with pytest.raises(Invalid, match="there are 600000; 500000 may be"):
        unpack(tmp_path / "lines.zip")
