"""Published clients, and `dragoman chat` at a terminal, are examined as anybody's client: driven by a command."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from conformance.clients.driver import CommandDriver
from conformance.clients.runner import ClientRunner, Examination
from conformance.clients.suite import client_dialects, load_client_suite
from conformance.kit.baseline import read_baseline
from conformance.kit.verdict import Outcome, Report
from tests.support.conformance import client_drivers
from tests.support.conformance.client_drivers import KEY, kept
from tests.support.dialects.blade.npm_client import install

DRIVERS = Path(__file__).parent / "drivers"
BASELINES = Path(client_drivers.__file__).parent / "client_baselines"
ROOT = Path(__file__).parents[3]
PUBLISHED = {
    "qca": set[str](),
    "anthropic": {"CAS-CL-IDEM-01"},  # it tries again, and sends no idempotency key
}
"""The SDKs of the sessions API, and what each is known to fail."""
AT_A_TERMINAL = ("stream", "events", "asks", "questions", "confirmations", "stop")
"""The sections that `dragoman chat` is examined in: those in which a person does something."""
WITHOUT_TRUST = {"AAP-CL-TOOL-06"}
"""What cannot be examined at a terminal: it has no way to say that a server's tool needs no permission."""


def examined(dialect: str, command: str, sections: tuple[str, ...] = ()) -> Report:
    suite = load_client_suite(dialect)
    wanted = [item for item in suite.catalogue.requirements if not sections or item.section in sections]
    runner = ClientRunner(suite, Examination(key=KEY, timeout=120), CommandDriver(command))
    return asyncio.run(runner.run(wanted))


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_sdk(name: str) -> None:
    report = examined("cas", f"{sys.executable} {DRIVERS / 'managed_sdk.py'} {name}")
    assert {*kept(report, lambda outcome: outcome != Outcome.PASSED)} == PUBLISHED[name]


def test_the_published_socket_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = asyncio.run(install(tmp_path))
    monkeypatch.setenv("NODE_PATH", os.fspath(tmp_path / "node_modules"))
    report = examined("blade", f"{node} {DRIVERS / 'socketio_client.js'}")
    assert kept(report, lambda outcome: outcome != Outcome.PASSED) == {}


@pytest.mark.parametrize("dialect", client_dialects())
def test_the_chat_at_a_terminal(dialect: str) -> None:
    report = examined(dialect, f"{sys.executable} {DRIVERS / 'chat_program.py'} {dialect}", AT_A_TERMINAL)
    file = BASELINES / f"{dialect}.yaml"
    standing = read_baseline(file, load_client_suite(dialect)).held_against(report).standing if file.exists() else None
    known = {*(standing.known if standing else ())} | WITHOUT_TRUST
    found = kept(report, lambda outcome: outcome != Outcome.PASSED)
    assert {name: words for name, words in found.items() if name not in known} == {}
