"""A clone of the last commit and what `make dist` makes of it; servers are processes, so time is real."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.prove.installation.commands import ROOT, run
from tests.support.child_commands import clean_environment
from tests.support.real_time import pytest_asyncio_loop_factories  # noqa: F401


@pytest.fixture(scope="session")
def place() -> Iterator[Path]:
    """A folder outside of the checkout that every user can enter."""
    folder = Path(mkdtemp(prefix="dragoman-installed-"))
    folder.chmod(0o755)
    yield folder
    run("chmod", "-R", "u+w", folder, cwd=Path("/"))
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def tree(place: Path) -> Path:
    """A clone: what is committed meanwhile does not matter."""
    run("git", "clone", "--quiet", "--no-hardlinks", "--depth=1", ROOT.as_uri(), place / "tree", cwd=place)
    return place / "tree"


@pytest.fixture(scope="session")
def dist(place: Path, tree: Path) -> Path:
    run("make", f"{Path(sys.prefix).relative_to(ROOT)}/.release", cwd=ROOT, env=clean_environment())
    run(sys.executable, "-m", "deploy.release", "--root", tree, "dist", "--out", place / "dist", cwd=ROOT)
    return place / "dist"


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    [file] = dist.glob("*.whl")
    return file
