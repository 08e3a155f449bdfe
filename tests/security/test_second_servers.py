"""One server per SQLite file: no second one gets in by another path, or because somebody removed the lock file."""

import os
import sys
from asyncio import create_subprocess_exec, subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.storage import Database, StorageUnusable, lock_database


def lock_file_deleted(file: Path) -> Path:
    file.with_name(f"{file.name}.lock").unlink()
    return file


def linked_folder(file: Path) -> Path:
    file.with_name(f"{file.name}.lock").unlink()
    link = file.parent.with_name("link")
    link.symlink_to(file.parent, target_is_directory=True)
    return link / file.name


def linked_file(file: Path) -> Path:
    link = file.parent.parent / "link.db"
    link.symlink_to(file)
    return link


def second_name(file: Path) -> Path:
    os.link(file, file.with_name("second.db"))
    return file.with_name("second.db")


@pytest.mark.parametrize("way", [lock_file_deleted, linked_folder, linked_file, second_name])
async def test_a_file_that_a_server_holds_is_refused(tmp_path: Path, way: Callable[[Path], Path]) -> None:
    """In the process of the first server, and in another."""
    first = Database(tmp_path / "data" / "dragoman.db")
    await first.open()
    other = way(first.path)
    with pytest.raises(StorageUnusable, match="in use by another server"):
        await Database(other).open()
    words = ("import sys; from pathlib import Path; from gateway.storage import lock_database; "
             "lock_database(Path(sys.argv[1]))")
    process = await create_subprocess_exec(sys.executable, "-c", words, str(other), stderr=subprocess.PIPE)
    told = (await process.communicate())[1].decode()
    assert "in use by another server" in told
    await first.close()
    lock_database(other).close()
