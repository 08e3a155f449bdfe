"""Our own server as it is examined: where its dialects are, what its profiles say, and the command that examines it."""

import json
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from conformance.faults.kill.setups import setup_of
from conformance.kit.reports import writer
from conformance.kit.runner import Runner
from conformance.kit.suite import Target, load_suite
from conformance.kit.verdict import Outcome
from gateway.ports import Clock
from tests.support.conformance.examination_facts import EXAMINED, examination_facts
from tests.support.dialect_tables import DIALECTS, dialect
from tests.support.gateway_server import serving, simulation
from tests.support.key_stores import key_store
from tests.support.server_process import running

ROOT = Path(__file__).parents[3]
SETTINGS: dict[str, dict[str, Any]] = {name: {} for name in DIALECTS} | {
    name: dict(examination_facts(name).own_settings) for name in EXAMINED
}
"""All dialects at once, with settings that save the examiners a wait."""
EVERYTHING = slice(None)
HANG = 600
"""Seconds that only an examination that hangs would need."""


def auth(name: str) -> str:
    """Where clients have no place for a key, the examiner asks that none be wanted."""
    return "keys" if setup_of(name).has_keys else "none"


def address(name: str, origin: str) -> str:
    return origin + ("" if examination_facts(name).at_origin else dialect(name).mount)


def profile(name: str, folder: Path) -> Path:
    """The examiners' own profile, with our shorter waits."""
    told = yaml.safe_load(load_suite(name).default_profile.read_text()) | dict(examination_facts(name).own_profile)
    path = folder / "profile.yaml"
    path.write_text(yaml.safe_dump(told))
    return path


def ticking_clock() -> Clock:
    """The simulated time; no two readings are equal, as on a real server, so that what was changed last is known."""
    ticks, now = count(), simulation().wall_clock
    return lambda: now() + next(ticks) * 1e-6


async def examine_ourselves(name: str, folder: Path, which: slice = EVERYTHING) -> None:
    """Our server, in the loop of the test, passes these of the requirements, or all of them."""
    suite, key = load_suite(name), key_store(folder / "data").add("examiner")
    async with serving(folder, ticking_clock(), log="sqlite", auth=auth(name), dialects=SETTINGS) as served:
        target = Target(address(name, served.address), key, allow_destructive=True)
        runner = Runner(suite, target, suite.read_profile(profile(name, folder)))
        report = await runner.run(suite.catalogue.requirements[which])
    troubled = [item for item in report.findings if item.outcome in (Outcome.FAILED, Outcome.NOT_TESTABLE)]
    assert {item.requirement.id: item.grave[0].remark for item in troubled} == {}
    assert report.exit_code == 0
    assert [path for path in report.left if not path.startswith("the upload ")] == []
    if which == EVERYTHING:
        assert bool(report.left) is examination_facts(name).leaves_something
    assert key not in writer("json")(report)


def assert_that_we_conform(name: str, folder: Path) -> None:
    """Start the server and the command as somebody would type them."""
    key, report = key_store(folder / "data").add("examiner"), folder / "report.json"
    with running(folder, auth=auth(name), dialects=SETTINGS) as served:
        done = subprocess.run(
            [sys.executable, "-m", "gateway", "conform", name, address(name, served.address), "--key", key,
             "--profile", str(profile(name, folder)), "--report", str(report), "--allow-destructive"],
            capture_output=True, text=True, timeout=HANG, cwd=ROOT,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    told = json.loads(report.read_text())
    assert [one["id"] for one in told["requirements"] if one["outcome"] in ("failed", "not testable")] == []
    assert key not in done.stdout + report.read_text()
