"""A pytest plugin with an option `--share 2/3`: run the second of three shares of the test files.

`make test` runs every share in a process of its own. With xdist every worker collects all the tests, and one process
reads a report of each: that took 90 s of the CPU of a run.
"""

from pathlib import Path

import pytest

SECONDS = {
    "tests/adapters/blade/client/test_turn_stream.py": 3,
    "tests/adapters/blade/server/test_projection_properties.py": 4,
    "tests/adapters/blade/server/test_socket.py": 3,
    "tests/adapters/cas/server/routes/test_events.py": 3,
    "tests/adapters/cas/server/test_projection_properties.py": 4,
    "tests/adapters/zenflux/server/test_socket.py": 3,
    "tests/architecture/test_borders.py": 5,
    "tests/backends/remote/test_backend.py": 5,
    "tests/cluster/test_fleet.py": 3,
    "tests/conformance/test_clients.py": 4,
    "tests/conformance/test_damage.py": 3,
    "tests/conformance/test_faults_zenflux.py": 3,
    "tests/conformance/test_kill_attribution.py": 5,
    "tests/conformance/test_kill_matrix.py": 9,
    "tests/conformance/test_kill_sample.py": 5,
    "tests/conformance/test_offline_judge.py": 5,
    "tests/conformance/test_plugin.py": 10,
    "tests/conformance/test_runner_endings.py": 8,
    "tests/conformance/test_variations.py": 6,
    "tests/golden/test_transcripts.py": 5,
    "tests/harness/test_mutants.py": 4,
    "tests/harness/test_properties.py": 5,
    "tests/pairs/test_pairs.py": 4,
    "tests/property/test_resuming.py": 5,
    "tests/simulation/test_seeds.py": 12,
    "tests/test_conforming.py": 10,
    "tests/test_makefile.py": 3,
    "tests/translate/test_translation.py": 6,
}
"""How long the files take that take longest; see `make test ARGS=--durations=50`."""
SECONDS_PER_BYTE = 7e-05
"""How long all others take, roughly."""
LEFT_OUT = ("prove", "support")
"""Folders of `tests` with files that `make test` does not run."""
SHARE = pytest.StashKey["Share"]()


def shared_out(files: dict[str, float], count: int) -> list[set[str]]:
    """Divide files with known costs into shares of about the same cost.

    A share has neighbours: files of one folder import much the same.
    """
    shares: list[set[str]] = [set() for _ in range(count)]
    each, spent = sum(files.values()) / count, 0.0
    for file in sorted(files):
        shares[min(count - 1, int((spent + files[file] / 2) / each))].add(file)
        spent += files[file]
    return shares


def costs_of_files(root: Path) -> dict[str, float]:
    """All test files, and what each will cost."""
    paths = [path.relative_to(root) for path in (root / "tests").rglob("test_*.py")]
    found = {path.as_posix(): (root / path).stat().st_size for path in paths if path.parts[1] not in LEFT_OUT}
    return {file: SECONDS.get(file, size * SECONDS_PER_BYTE) for file, size in found.items()}


class Share:
    """The files of one process."""

    def __init__(self, root: Path, number: int, count: int) -> None:
        self._root = root
        shares = shared_out(costs_of_files(root), count)
        self._others = {root / file for place, share in enumerate(shares) if place != number for file in share}
        self._takes_unknown = number == 0
        self._left_out = [root / "tests" / folder for folder in LEFT_OUT]

    def has(self, path: Path) -> bool:
        """Files that are not below tests/, or are left out there, belong to the first share."""
        is_known = self._root / "tests" in path.parents and not any(one in path.parents for one in self._left_out)
        return path not in self._others and (self._takes_unknown or is_known)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", default="1/1", metavar="K/N", help="run the files of share K of N (from 1)")


def pytest_configure(config: pytest.Config) -> None:
    number, shares = map(int, config.getoption("share").split("/"))
    config.stash[SHARE] = Share(config.rootpath, number - 1, shares)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Pass over a file of another share before it is imported."""
    return True if collection_path.suffix == ".py" and not config.stash[SHARE].has(collection_path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    """Files that are named on the command line are never ignored: their tests are left out here."""
    items[:] = [item for item in items if config.stash[SHARE].has(item.path)]
