"""The unit of systemd is one that systemd takes, and gives the server few rights."""

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.config import load_config

DEPLOY = Path(__file__).parents[2] / "deploy"
UNIT = (DEPLOY / "dragoman.service").read_text()
MOST_EXPOSURE = 20
"""Of 100 by the count of `systemd-analyze security`; below 20 it calls a unit OK."""


def systemd_analyze(*words: str) -> "subprocess.CompletedProcess[str]":
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd is not installed here")
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=300)


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit with a program that is there."""
    file = tmp_path / "dragoman.service"
    file.write_text(UNIT.replace("/opt/dragoman/bin/dragoman", sys.executable))
    return file


def test_systemd_takes_the_unit(unit: Path) -> None:
    done = systemd_analyze("verify", "--man=no", str(unit))
    assert (done.returncode, [line for line in done.stderr.splitlines() if "dragoman" in line]) == (0, [])


def test_systemd_finds_the_unit_hardened(unit: Path) -> None:
    done = systemd_analyze("security", "--offline=true", f"--threshold={MOST_EXPOSURE}", str(unit))
    assert done.returncode == 0, done.stdout[-2000:]


def test_the_unit_waits_until_turns_have_drained_and_writes_where_the_settings_say() -> None:
    settings = configparser.RawConfigParser(strict=False)
    settings.optionxform = str  # type: ignore[assignment, method-assign]
    settings.read_string(UNIT)
    service, config = settings["Service"], load_config(DEPLOY / "config.yaml")
    assert int(service["TimeoutStopSec"].removesuffix("s")) > config.limits.drain_seconds
    assert str(config.data) == f"/var/lib/{service['StateDirectory']}" == service["WorkingDirectory"]
    assert int(service["LimitNOFILE"]) > config.limits.max_connections
