"""What an agent reads and writes through the gateway stays inside its session's folder."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.backends.acp import session_folder as folders
from gateway.backends.acp.session_folder import SessionFolder
from gateway.errors import Forbidden, GatewayError, Invalid, NotFound, TooLarge


@pytest.fixture
def folder(tmp_path: Path) -> SessionFolder:
    (tmp_path / "outside.txt").write_text("secret")
    (tmp_path / "inside-too").mkdir()
    return SessionFolder(tmp_path / "inside")


def test_a_file_is_written_and_read(folder: SessionFolder) -> None:
    assert folder.write("a/b/c.txt", "grüß dich") == folder.path / "a/b/c.txt"
    assert folder.read(str(folder.path / "a" / "b" / "c.txt")) == "grüß dich"
    folder.write("a/b/c.txt", "now")
    assert folder.read("a/b/../b/c.txt") == "now"


@pytest.mark.parametrize(("line", "limit", "text"), [
    (None, None, "1\n2\n3"), (1, 1, "1\n"), (2, None, "2\n3"), (None, 2, "1\n2\n"), (3, 9, "3"), (9, 1, ""),
    (0, 1, "1\n"), (-5, -5, ""),
])
def test_some_lines_of_a_file(folder: SessionFolder, line: int | None, limit: int | None, text: str) -> None:
    folder.write("n", "1\n2\n3")
    assert folder.read("n", line, limit) == text


@pytest.mark.parametrize("path", [
    "/etc/passwd", "../outside.txt", "a/../../outside.txt", "../inside-too/x", "..", ".", "", "/", "link/outside.txt",
    "file-link", "loop", "loop/x",
])
def test_no_path_leaves_the_folder(folder: SessionFolder, path: str) -> None:
    (folder.path / "link").symlink_to("..")
    (folder.path / "file-link").symlink_to(folder.path.parent / "outside.txt")
    (folder.path / "loop").symlink_to("loop")
    with pytest.raises(Forbidden):
        folder.read(path)
    with pytest.raises(Forbidden):
        folder.write(path, "x")
    assert (folder.path.parent / "outside.txt").read_text() == "secret"


def test_a_link_inside_is_a_link_inside(folder: SessionFolder) -> None:
    folder.write("real/a.txt", "a")
    (folder.path / "also").symlink_to("real")
    assert folder.read("also/a.txt") == "a"


def test_what_is_no_file_of_text_is_refused(folder: SessionFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write("bytes", b"\xff\xfe")
    os.mkfifo(folder.path / "pipe")
    (folder.path / "sub").mkdir()
    with pytest.raises(NotFound, match="does not exist"):
        folder.read("nothing")
    with pytest.raises(NotFound, match="does not exist"):
        folder.read("no/such/folder")
    for path in ("pipe", "sub", "bytes", "a\0b"):
        with pytest.raises(Invalid):
            folder.read(path)
    with pytest.raises(GatewayError):
        folder.write("pipe", "x")
    with pytest.raises(GatewayError):
        folder.write("bytes/below", "x")
    monkeypatch.setattr(folders, "MAX_FILE_BYTES", 10)
    with pytest.raises(TooLarge):
        folder.write("long", "x" * 11)
    (folder.path / "long").write_text("x" * 11)
    with pytest.raises(TooLarge):
        folder.read("long")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["..", ".", "a", "b", "link", "", "inside", "inside-too"]), max_size=6).map("/".join))
def test_whatever_is_written_is_inside(folder: SessionFolder, path: str) -> None:
    if not (folder.path / "link").is_symlink():
        (folder.path / "link").symlink_to("../inside-too")
    before = {file for file in folder.path.parent.rglob("*") if not file.is_relative_to(folder.path)}
    try:
        written = folder.write(path, "x")
        assert written.is_relative_to(folder.path)
        assert written.read_text() == "x"
    except GatewayError:
        pass
    assert {file for file in folder.path.parent.rglob("*") if not file.is_relative_to(folder.path)} == before
