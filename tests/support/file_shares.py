"""A pytest plugin: each worker collects and runs a share of the test files, so that no file is imported twice.

It is used with `-n N --dist each`. xdist's other ways of sharing need all tests to be collected by every worker.
"""

from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import EachScheduling

SECONDS = {
    "tests/conformance/test_cas_faults.py": 21,
    "tests/test_conforming.py": 21,
    "tests/conformance/test_reference.py": 20,
    "tests/conformance/test_liberties.py": 13,
    "tests/conformance/test_plugin.py": 12,
    "tests/conformance/test_faults_blade.py": 12,
    "tests/pairs/test_sixteen.py": 12,
    "tests/property/test_cas_projection.py": 11,
    "tests/property/test_resuming.py": 11,
}
"""How long the files take that take longest; see `make test ARGS=--durations=50`."""
SECONDS_PER_BYTE = 1e-4
"""How long all others take, roughly."""
SHARE = pytest.StashKey["Share"]()
NUMBER = pytest.StashKey[int]()


def shared_out(files: dict[str, float], workers: int) -> list[set[str]]:
    """Divide files with known costs into one share per worker, of about the same cost each."""
    shares: list[set[str]] = [set() for _ in range(workers)]
    costs = [0.0] * workers
    for file in sorted(files, key=lambda file: (-files[file], file)):
        least = costs.index(min(costs))
        shares[least].add(file)
        costs[least] += files[file]
    return shares


def costs_of_files(root: Path) -> dict[str, float]:
    """All test files, and what each will cost."""
    found = {path.relative_to(root).as_posix(): path.stat().st_size for path in (root / "tests").rglob("test_*.py")}
    return {file: SECONDS.get(file, size * SECONDS_PER_BYTE) for file, size in found.items()}


class Share:
    """The files of one worker."""

    def __init__(self, root: Path, number: int, workers: int) -> None:
        self._root = root
        shares = shared_out(costs_of_files(root), workers)
        self._others = {root / file for place, share in enumerate(shares) if place != number for file in share}
        self._takes_unknown = number == 0

    def has(self, path: Path) -> bool:
        """Files that are not below tests/ belong to the first worker."""
        return path not in self._others and (self._takes_unknown or self._root / "tests" in path.parents)


class CountingScheduler(EachScheduling):
    """Tells pytest how many tests all the workers have together, for the percentages that it prints."""

    def schedule(self) -> None:
        session = self.config.pluginmanager.get_plugin("session")
        session.testscollected = sum(map(len, self.node2collection.values()))
        super().schedule()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> CountingScheduler:
    return CountingScheduler(config, log)


def pytest_configure_node(node: Any) -> None:
    """Runs before each worker starts: gives it a number."""
    node.workerinput["share"] = [node.config.stash.get(NUMBER, 0), node.config.option.numprocesses]
    node.config.stash[NUMBER] = node.config.stash.get(NUMBER, 0) + 1


def pytest_configure(config: pytest.Config) -> None:
    if given := getattr(config, "workerinput", {}).get("share"):
        config.stash[SHARE] = Share(config.rootpath, *given)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Pass over a file of another worker before it is imported."""
    share = config.stash.get(SHARE, None)
    return True if share and collection_path.suffix == ".py" and not share.has(collection_path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    """Files that are named on the command line are never ignored: their tests are left out here."""
    if share := config.stash.get(SHARE, None):
        items[:] = [item for item in items if share.has(item.path)]
