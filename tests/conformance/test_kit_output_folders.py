"""Folders are made where they are missing, and whoever asked is told."""

from pathlib import Path

import pytest

from conformance.kit.output_folders import make_folder


def test_a_folder_is_told_of_once(tmp_path: Path) -> None:
    told: list[str] = []
    for _ in range(2):
        make_folder(tmp_path / "a" / "b", told.append)
    assert told == [f"created the folder {tmp_path}/a/b"] and (tmp_path / "a" / "b").is_dir()


def test_what_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    told: list[str] = []
    for folder in (tmp_path / "file", tmp_path / "file" / "b"):
        with pytest.raises(OSError, match=f"the folder {folder} cannot be created: "):
            make_folder(folder, told.append)
    assert told == []
