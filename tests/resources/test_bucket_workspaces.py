"""Workspaces in a bucket do what workspaces in a folder do, for the same calls."""

import asyncio
import zipfile
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import pytest

from gateway.bucket_location import BucketLocation
from gateway.client.s3 import Bucket, CredentialSource
from gateway.errors import Conflict, FilesUnavailable, Forbidden, Invalid, NotFound, TooLarge
from gateway.ports import Workspace, WorkspaceItem, Workspaces
from gateway.resources import BucketWorkspaces, FolderWorkspaces, pack_entries, workspace_entries
from gateway.resources.bucket_workspaces import AT_ONCE
from gateway.resources.file_reader import opened_file
from gateway.resources.workspaces import WorkspaceLimits
from tests.support.file_contents import whole
from tests.support.s3.server import S3Server, s3_server

LIMITS = WorkspaceLimits(file_bytes=10, total_bytes=25, files=4)


class Places:
    """The workspaces of one test, and what is stored of them."""

    def __init__(self, folder: Path, server: S3Server | None, bounds: WorkspaceLimits = LIMITS) -> None:
        self._folder, self.server = folder, server
        self.bucket: Bucket | None = None
        self.all: Workspaces = FolderWorkspaces(folder, bounds)
        if server is not None:
            environ = server.environ
            self.bucket = Bucket(
                BucketLocation.read("s3://agents/w", environ), CredentialSource(environ, lambda: 0.0), lambda: 0.0)
            self.all = BucketWorkspaces(self.bucket, bounds)

    def stored(self) -> list[str]:
        """The names of everything that is stored, drafts too."""
        if self.server is not None:
            return [name.removeprefix("w/") for name in self.server.objects()]
        return sorted(str(one.relative_to(self._folder)) for one in self._folder.rglob("*") if one.is_file())


@pytest.fixture(params=["folder", "bucket"])
async def places(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Places]:
    if request.param == "folder":
        yield Places(tmp_path / "w", None)
        return
    with s3_server() as server:
        made = Places(tmp_path, server)
        yield made
        assert made.bucket is not None
        await made.bucket.close()


@pytest.fixture
def space(places: Places) -> Workspace:
    return places.all.of("sess_1")


async def pieces(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def test_what_is_written_is_read_and_listed(space: Workspace, places: Places) -> None:
    assert await space.items(".") == []
    assert await space.write("b/./c ü.txt", b"hello") == "b/c ü.txt"
    await space.write("a.txt", b"")
    assert await whole(await space.open("b/c ü.txt")) == b"hello"
    assert await whole(await space.open("a.txt")) == b""
    assert await space.items(".") == [WorkspaceItem("b", None), WorkspaceItem("a.txt", 0)]
    [item] = await space.items("b")
    assert (item, item.changed_at > 0) == (WorkspaceItem("c ü.txt", 5), True)
    assert (await space.paths(), await space.paths("b")) == (["a.txt", "b/c ü.txt"], ["c ü.txt"])
    assert await places.all.of("sess_2").paths() == []
    assert places.stored() == ["sess_1/a.txt", "sess_1/b/c ü.txt"]


@pytest.mark.parametrize("path", ["..", "../x", "a/../../x", "/etc/passwd", "~/x", "a\\b", "a\0b", "x" * 256])
async def test_no_path_leads_out(space: Workspace, path: str) -> None:
    with pytest.raises(Invalid):
        await space.write(path, b"")
    for call in (space.items, space.open, space.paths, space.remove, space.copy):
        with pytest.raises(Invalid):
            await call(path)


@pytest.mark.parametrize("session_id", ["", "..", ".drafts", "a/b"])
async def test_no_session_is_a_way_out(places: Places, session_id: str) -> None:
    with pytest.raises(NotFound):
        places.all.of(session_id)
    with pytest.raises(NotFound):
        await places.all.forget(session_id)


async def test_what_is_not_there_is_not_found(space: Workspace) -> None:
    await space.write("a.txt", b"")
    for call in (space.open, space.items, space.paths, space.remove, space.copy):
        with pytest.raises(NotFound):
            await call("b")
    with pytest.raises(NotFound):
        await space.rename("b", "c")


async def test_a_file_is_no_folder_and_a_folder_no_file(space: Workspace, places: Places) -> None:
    await space.write("a", b"")
    await space.write("b/c", b"")
    for path in ("a/x", "b", "."):
        with pytest.raises(Conflict):
            await space.write(path, b"")
    assert places.stored() == ["sess_1/a", "sess_1/b/c"]


async def test_files_and_folders_are_renamed_and_removed(space: Workspace) -> None:
    await space.write("b/c.txt", b"x")
    await space.write("a", b"")
    await space.write("bb", b"y")
    assert await space.rename("b/c.txt", "d.txt") == "b/d.txt"
    assert await space.rename("b", "e") == "e"
    assert await space.paths() == ["a", "bb", "e/d.txt"]
    for name in ("..", "x/y", ".", "a\0"):
        with pytest.raises(Invalid):
            await space.rename("e", name)
    with pytest.raises(Conflict):
        await space.rename("e", "a")
    await space.remove("e")
    assert await space.paths() == ["a", "bb"]
    with pytest.raises(Invalid):
        await space.remove(".")


async def test_files_and_folders_are_copied(space: Workspace) -> None:
    await space.write("b/c.txt", b"x")
    assert await space.copy("b/c.txt") == "b/c copy.txt"
    assert await space.copy("b/c.txt", "d/e.txt") == "d/e.txt"
    for source, target in (("b/c.txt", "d/e.txt"), ("b", "b/inside")):
        with pytest.raises(Conflict):
            await space.copy(source, target)
    await space.remove("b/c copy.txt")
    assert await space.copy("b") == "b copy"
    assert await whole(await space.open("b copy/c.txt")) == b"x"


async def test_bounds_are_kept(space: Workspace, places: Places) -> None:
    with pytest.raises(TooLarge, match="10 bytes"):
        await space.receive(pieces(b"x" * 6, b"x" * 5))
    with pytest.raises(TooLarge, match="10 bytes"):
        await space.write("a", b"x" * 11)
    for name in ("a", "b"):
        await space.write(name, b"x" * 10)
    fresh = places.all.of("sess_1")
    with pytest.raises(TooLarge, match="holds 25 bytes"):
        await fresh.write("c", b"x" * 6)
    for name in ("c", "d"):
        await fresh.write(name, b"")
    with pytest.raises(TooLarge, match="holds 4 files"):
        await fresh.write("e", b"")
    with pytest.raises(TooLarge):
        await fresh.copy("c")
    assert places.stored() == [f"sess_1/{name}" for name in "abcd"]


async def test_agents_configuration_is_not_written(space: Workspace, places: Places) -> None:
    await space.write("a", b"")
    for call in (space.write("CLAUDE.md", b""), space.rename("a", "CLAUDE.md"), space.copy("a", ".git/config")):
        with pytest.raises(Forbidden):
            await call
    assert places.stored() == ["sess_1/a"]


async def test_a_folder_is_packed_for_one_reader(space: Workspace, places: Places) -> None:
    await space.write("b/c.txt", b"x" * 10)
    await space.write("b/d/e.txt", b"")
    packed = await space.pack(pack_entries(workspace_entries(space, "b")))
    with zipfile.ZipFile(BytesIO(await whole(packed))) as archive:
        assert (archive.namelist(), archive.read("c.txt")) == (["c.txt", "d/e.txt"], b"x" * 10)
        assert archive.testzip() is None
    async with opened_file(packed) as file:
        assert await asyncio.to_thread(file.seek, -4, 2) == packed.size - 4
        assert len(await asyncio.to_thread(file.read)) == 4
    assert packed.discard is not None
    await packed.discard()
    assert places.stored() == ["sess_1/b/c.txt", "sess_1/b/d/e.txt"]


async def test_a_forgotten_workspace_is_gone_with_its_files(space: Workspace, places: Places) -> None:
    await space.write("a/b", b"")
    await places.all.of("sess_12").write("x", b"")
    await places.all.forget("sess_1")
    assert places.stored() == ["sess_12/x"]


async def test_a_copy_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with s3_server() as server:
        places = Places(tmp_path, server, WorkspaceLimits())
        space = places.all.of("sess_1")
        for number in range(2 * AT_ONCE):
            await space.write(f"b/{number}", b"x")
        before = places.stored()
        server.refuse = lambda method, path: "403 AccessDenied" if path.endswith("copy/9") and method == "PUT" else None
        with pytest.raises(FilesUnavailable):
            await space.copy("b")
        assert places.stored() == before
        assert places.bucket is not None
        await places.bucket.close()
