"""Paths lead to places below one folder, or nowhere."""

from pathlib import Path

import pytest

from gateway.errors import Conflict, GatewayError, Invalid, NotFound
from gateway.resources.workspace_paths import MAX_DEPTH, WorkspacePaths, entries_of, files_below, free_copy_path


@pytest.mark.parametrize("path", ["a", "./a", "a/", "b//c", "b/./c"])
def test_a_path_leads_below_the_root(tmp_path: Path, path: str) -> None:
    paths = WorkspacePaths(tmp_path)
    place = paths.place(path)
    assert place.is_relative_to(tmp_path) and paths.place(paths.name(place)) == place


@pytest.mark.parametrize("path", [
    "../a", "a/../b", "/etc", "~/a", "a\\b", "a\nb", "x" * 256, "/".join("a" * (MAX_DEPTH + 1)),
])
def test_a_path_that_would_lead_elsewhere_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(Invalid):
        WorkspacePaths(tmp_path).place(path)


def test_a_link_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(NotFound):
        WorkspacePaths(tmp_path).place("link/file")
    assert [entry.name for entry in entries_of(tmp_path)] == ["real"]
    assert list(files_below(tmp_path)) == [tmp_path / "real" / "file"]


@pytest.mark.parametrize(("path", "refusal"), [(".", Invalid), ("nothing", NotFound)])
def test_only_what_is_there_can_be_changed(tmp_path: Path, path: str, refusal: type[GatewayError]) -> None:
    with pytest.raises(refusal):
        WorkspacePaths(tmp_path).known(path)


def test_a_file_is_not_put_where_a_folder_is(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(Conflict):
        WorkspacePaths(tmp_path).file_place("folder")


def test_a_copy_stands_beside_under_a_name_that_is_free(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    first = free_copy_path(tmp_path / "a.txt")
    first.touch()
    assert (first.name, free_copy_path(tmp_path / "a.txt").name) == ("a copy.txt", "a copy 2.txt")
