"""What a server stores is for its owner alone: folders 0700, files 0600, whatever the umask."""

import os
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

import gateway.model as m
from gateway.backends.shadow import ShadowReport
from gateway.private_files import make_private_folder
from gateway.storage.sealing import load_or_create_key
from tests.support.backends.acp_turns import backend, played
from tests.support.dialects.blade import rest_server
from tests.support.dialects.zenflux import client as zenflux_client
from tests.support.gateway_server import serving
from tests.support.key_stores import key_store


@pytest.fixture(autouse=True)
def _everybody_may_read() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> list[str]:
    return [f"{path.relative_to(folder)} {path.stat().st_mode & 0o777:o}" for path in (folder, *folder.rglob("*"))
            if path.stat().st_mode & 0o077]


async def test_nothing_in_the_data_folder_is_open_to_others(tmp_path: Path) -> None:
    data = tmp_path / "far" / "below" / "data"
    async with serving(tmp_path, log="sqlite", dialects={"blade": {}, "zenflux": {}}, data=str(data)) as served:
        client = rest_server.Client(served)
        session = await client.session()
        await client.put(f"/sessions/{session}/files/a/b/c.txt", {"content": "hello"})
        await client.post(f"/sessions/{session}/copy/a", {"destination": "d"})
        await client.get(f"/sessions/{session}/export")
        form = aiohttp.FormData()
        form.add_field("file", b"hello", filename="a.txt", content_type="text/plain")
        await zenflux_client.Client(served).call("POST", "/files/upload", data=form)
        key_store(data).add("ann")
        load_or_create_key(data / "sealed")
        await ShadowReport(data / "shadow" / "report.jsonl").write(
            session_id="s", turn_id="t", agent="a", verdict="same"
        )
        names = {path.name for path in data.rglob("*")}
        assert {"dragoman.db", "dragoman.db-wal", "dragoman.db.lock", "workspaces", "files", "report.jsonl"} <= names
        assert open_to_others(tmp_path / "far") == []


async def test_the_folder_of_an_agent_is_not_open_to_others(tmp_path: Path) -> None:
    async with backend(tmp_path) as made:
        await played(made, m.SendMessage(content=(m.FilePart(name="note.txt", url="data:,x"),)))
        await played(made, ["request", "fs/write_text_file", {"path": "sub/b.txt", "content": "x"}])
    assert (tmp_path / "work" / "sess_1" / "note.txt").exists()
    assert (tmp_path / "work" / "sess_1" / "sub" / "b.txt").exists()
    assert open_to_others(tmp_path / "work") == []


def test_a_folder_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir(mode=0o755)
    make_private_folder(tmp_path / "there")
    assert (tmp_path / "there").stat().st_mode & 0o777 == 0o755
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_private_folder(tmp_path / "file")
    with pytest.raises(NotADirectoryError):
        make_private_folder(tmp_path / "file" / "below")
