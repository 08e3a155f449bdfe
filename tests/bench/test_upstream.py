"""Our server beside nginx in front of one model service; the smallest run of the scenario is the proof `bench`."""

import os
import select
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import contenders
from bench.contenders import install_litellm, litellm, mock, nginx, nginx_path, ours, ours_durable
from bench.load import concurrent_turns
from bench.measure import BenchFailure, choose_cores, figure, process_family
from bench.protocols import words
from bench.report import Row, at_least, missed, tables
from bench.scenarios.runner import TINY, Bench
from bench.scenarios.upstream import COLUMNS
from bench.servers import Server


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(TINY, choose_cores(), tmp_path, lambda line: None)


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[bytes]]:
    """A process with a child, in a session of their own."""
    process = subprocess.Popen(
        ["sh", "-c", "sleep 300 & echo up; wait"], stdout=subprocess.PIPE, start_new_session=True,
    )
    with process:
        yield process
        os.killpg(process.pid, 9)


def test_litellm_is_started_from_a_place_of_its_own(tmp_path: Path) -> None:
    command = litellm(4711).command(tmp_path, 4712)
    assert command[0] == str(contenders.LITELLM_HOME / "bin" / "litellm")
    assert "127.0.0.1:4711/v1" in (tmp_path / "litellm-4712.yaml").read_text()


def test_what_is_installed_is_not_installed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "litellm").touch()
    monkeypatch.setattr(contenders, "LITELLM_HOME", tmp_path)
    install_litellm()
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


@pytest.mark.skipif(nginx_path() is None and not os.environ.get("CI"), reason="nginx is not installed")
def test_the_workers_of_nginx_are_counted_and_go_with_it(bench: Bench, tmp_path: Path) -> None:
    with Server(mock(), tmp_path, bench.cores.client) as service, bench.start(nginx(service.port)) as server:
        members = [os.pidfd_open(pid) for pid in process_family(server._process.pid)]
        assert len(members) == 2
    for member in members:
        assert select.select([member], [], [], 10)[0], "it outlived the server"
        os.close(member)


def test_a_family_is_whoever_a_process_has_started(parent: subprocess.Popen[bytes]) -> None:
    assert parent.stdout is not None
    parent.stdout.readline()
    members = process_family(parent.pid)
    assert members[0] == parent.pid
    assert len(members) == 2


def test_a_service_that_is_gone_is_told_not_measured(bench: Bench, tmp_path: Path) -> None:
    with Server(mock(), tmp_path, bench.cores.client) as service:
        port = service.port
    with bench.start(ours(port)) as server, pytest.raises(BenchFailure, match="words"):
        concurrent_turns(server, 1, words(3))


def test_both_of_ours_are_told_apart() -> None:
    assert [ours(1).name, ours_durable(1).name, nginx(1).name, litellm(1).name, mock().name] == list(COLUMNS)


# -- the report -------------------------------------------------------------------------------------------------------

MISSED = Row("upstream", "32 × 200 to nginx", "", {}, figure([0.5]), at_least(0.7, "0.7 ×"))
MET = Row("burst", "16 × 100", "deltas/s", {"dragoman": figure([3.0])}, figure([1.5]), at_least(1.0, "1.0 ×"))
PLAIN = Row("upstream", "32 × 200 deltas", "deltas/s", {"nginx": figure([3.0]), "dragoman": figure([2.0])})


def test_aims_that_are_missed_are_said_in_words() -> None:
    assert missed([MISSED, MET, PLAIN]) == ["upstream, 32 × 200 to nginx: 0.50, wanted ≥ 0.7 ×"]


def test_a_scenario_with_columns_of_its_own_has_a_table_of_its_own() -> None:
    first, second = tables([MET, PLAIN, MISSED], ("dragoman", "bare aiohttp"), {"upstream": COLUMNS})
    assert "bare aiohttp" in first and "nginx" not in first
    assert "nginx" in second and "litellm" not in second and "bare aiohttp" not in second
