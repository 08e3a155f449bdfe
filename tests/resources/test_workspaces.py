"""Files of a session: kept in its folder, within bounds, and no path leads out of it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.errors import Conflict, Invalid, NotFound, TooLarge
from gateway.ports import WorkspaceItem
from gateway.resources import FolderWorkspaces, WorkspaceFolder
from gateway.resources.workspaces import WorkspaceLimits


@pytest.fixture
def space(tmp_path: Path) -> WorkspaceFolder:
    return FolderWorkspaces(tmp_path / "w", WorkspaceLimits(file_bytes=10, total_bytes=25, files=4)).folder("sess_1")


async def pieces(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def drafts(space: WorkspaceFolder) -> list[Path]:
    return list((space.root.parent / ".drafts").iterdir())


def test_what_is_written_is_read_and_listed(space: WorkspaceFolder) -> None:
    assert space.items() == []
    assert space.write("b/./c.txt", b"hello") == "b/c.txt"
    space.write("a.txt", b"hi")
    assert space.file("b/c.txt").read_bytes() == b"hello"
    assert space.items(".") == [WorkspaceItem("b", None), WorkspaceItem("a.txt", 2)]
    assert space.items("b") == [WorkspaceItem("c.txt", 5)]
    assert space.paths() == ["a.txt", "b/c.txt"]
    assert drafts(space) == []


@pytest.mark.parametrize("path", [
    "..", "../x", "a/../../x", "/etc/passwd", "~/x", "a\\..\\x", "a\0b", "x" * 256, "/".join("x" * 33), "a\nb",
])
def test_no_path_leads_out(space: WorkspaceFolder, path: str) -> None:
    for call in (space.items, space.file, space.paths, space.remove, space.copy, lambda path: space.write(path, b"")):
        with pytest.raises(Invalid):
            call(path)


@pytest.mark.parametrize("session_id", ["", "..", ".drafts", "a/b", "x\0", "x" * 129])
def test_no_session_is_a_way_out(tmp_path: Path, session_id: str) -> None:
    with pytest.raises(NotFound):
        FolderWorkspaces(tmp_path).of(session_id)


def test_links_are_not_there(space: WorkspaceFolder, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hush")
    space.write("a.txt", b"hi")
    (space.root / "link").symlink_to(tmp_path / "secret")
    (space.root / "way").symlink_to(tmp_path)
    (space.root / "nowhere").symlink_to(tmp_path / "nothing")
    assert space.items() == [WorkspaceItem("a.txt", 2)]
    for call in (
        lambda: space.file("link"), lambda: space.file("way/secret"), lambda: space.items("way"),
        lambda: space.write("way/x", b""), lambda: space.write("nowhere", b""), lambda: space.remove("link"),
        lambda: space.copy("way"), lambda: space.rename("link", "x"),
    ):
        with pytest.raises(NotFound):
            call()
    assert space.paths() == ["a.txt"]
    with pytest.raises(Conflict):
        space.rename("a.txt", "nowhere")
    assert not (tmp_path / "nothing").exists()


def test_what_is_not_there(space: WorkspaceFolder) -> None:
    space.write("a.txt", b"")
    for call in (
        lambda: space.file("b"), lambda: space.items("b"), lambda: space.items("a.txt"), lambda: space.remove("b"),
        lambda: space.rename("b", "c"), lambda: space.copy("b"), lambda: space.paths("b"), lambda: space.file("."),
    ):
        with pytest.raises(NotFound):
            call()


def test_a_file_is_no_folder_and_a_folder_no_file(space: WorkspaceFolder) -> None:
    space.write("a", b"")
    space.write("b/c", b"")
    for path in ("a/x", "b", "."):
        with pytest.raises(Conflict):
            space.write(path, b"")
    assert drafts(space) == []


def test_files_and_folders_are_renamed_and_removed(space: WorkspaceFolder) -> None:
    space.write("b/c.txt", b"x")
    space.write("a", b"")
    assert space.rename("b/c.txt", "d.txt") == "b/d.txt"
    assert space.rename("b", "e") == "e"
    for name in ("..", "x/y", ".", "a\0"):
        with pytest.raises(Invalid):
            space.rename("e", name)
    with pytest.raises(Conflict):
        space.rename("e", "a")
    space.remove("e")
    space.remove("a")
    assert space.items() == []
    with pytest.raises(Invalid):
        space.remove(".")


def test_files_and_folders_are_copied(space: WorkspaceFolder) -> None:
    space.write("b/c.txt", b"x")
    assert space.copy("b/c.txt") == "b/c copy.txt"
    assert space.copy("b/c.txt", "d/e.txt") == "d/e.txt"
    with pytest.raises(Conflict):
        space.copy("b/c.txt", "d/e.txt")
    with pytest.raises(Conflict):
        space.copy("b", "b/inside")
    space.remove("b/c copy.txt")
    assert space.copy("b") == "b copy"
    assert space.file("b copy/c.txt").read_bytes() == b"x"


def test_bounds_are_kept(space: WorkspaceFolder) -> None:
    with pytest.raises(TooLarge, match="10 bytes"):
        space.write("a", b"x" * 11)
    for name in ("a", "b"):
        space.write(name, b"x" * 10)
    with pytest.raises(TooLarge, match="holds 25 bytes"):
        space.write("c", b"x" * 6)
    space.write("a", b"y" * 10)
    space.write("c", b"")
    space.write("d", b"")
    with pytest.raises(TooLarge, match="holds 4 files"):
        space.write("e", b"")
    assert drafts(space) == []


async def test_what_comes_in_pieces_is_whole_or_not_there(space: WorkspaceFolder) -> None:
    assert space.take(await space.receive(pieces(b"he", b"llo")), "a") == "a"
    assert space.file("a").read_bytes() == b"hello"
    with pytest.raises(TooLarge):
        await space.receive(pieces(b"x" * 6, b"x" * 6))
    assert drafts(space) == []


async def test_all_that_comes_together_has_room(space: WorkspaceFolder) -> None:
    first, second = await space.receive(pieces(b"x" * 10)), await space.receive(pieces(b"x" * 10))
    with pytest.raises(TooLarge, match="holds 25 bytes"):
        await space.receive(pieces(b"x" * 6))
    assert sorted(drafts(space)) == sorted([first, second])


async def test_a_forgotten_workspace_is_gone(space: WorkspaceFolder, tmp_path: Path) -> None:
    space.write("a", b"")
    await FolderWorkspaces(tmp_path / "w").forget("sess_1")
    assert not space.root.exists()
