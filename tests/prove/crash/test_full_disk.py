"""A full disk under the process of a server harms nothing and is survived."""

import os
import resource
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.prove.crash.full_disk import Spoil, survives
from tests.prove.crash.killable_server import KillableProcess, server


def limit(served: KillableProcess) -> Callable[[], None]:
    """The system lets the process make no file larger than its log is now; gives back how to lift that."""
    size = served.database.with_name(f"{served.database.name}-wal").stat().st_size
    before = resource.prlimit(served.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def lift() -> None:
        resource.prlimit(served.pid, resource.RLIMIT_FSIZE, before)

    return lift


def fill(served: KillableProcess) -> Callable[[], None]:
    """Somebody else takes the rest of the disk."""
    filler = served.database.parent / "filler"
    with filler.open("wb", buffering=0) as target:
        try:
            while True:
                target.write(b"x" * 4096)
        except OSError as error:
            assert error.errno == 28, error
    return filler.unlink


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of its own for the data."""
    data = folder / "data"
    data.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(data)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(data)], check=True)


@contextmanager
def any_disk(folder: Path) -> Iterator[Path]:
    yield folder


def _may_mount() -> bool:
    """Whether this machine lets us have a disk of our own; where it does not, a limit of the system has to do."""
    return os.geteuid() == 0 and subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True).returncode == 0


WAYS = {"limit": (any_disk, limit), **({"disk": (small_disk, fill)} if _may_mount() else {})}


@pytest.fixture(params=WAYS)
async def served(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[KillableProcess, Spoil]]:
    disk, spoil = WAYS[request.param]
    with disk(tmp_path) as folder, server(folder) as served:
        await served.start()
        await served.wait_ready()
        yield served, partial(spoil, served)


@pytest.mark.timeout(300)
async def test_a_full_disk_harms_nothing_and_is_survived(served: tuple[KillableProcess, Spoil]) -> None:
    await survives(*served)
