"""A whole gateway as the client: its agent is a server of a dialect (`backend: remote`), and people use it over AAP."""

from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.clients.aap.client import drive
from conformance.clients.runner import ClientRunner, Examination
from conformance.clients.situation import Cue
from conformance.clients.suite import client_dialects, load_client_suite
from conformance.kit.baseline import read_baseline
from conformance.kit.verdict import Outcome
from tests.support.conformance import client_drivers
from tests.support.conformance.client_drivers import KEY, kept
from tests.support.gateway_server import serving

ELSEWHERE = ("asks", "questions", "confirmations", "stop")
"""Sections in which people answer or stop in the words of AAP; the client role is examined with its own."""
IDLE = 60
"""How long a silent upstream is waited for, as one of the protocols wants it; the setting is 120 unless it is set."""
FRESH = ("only_messages", "only_whole")
"""Situations in which the client asks anew what the agent can do."""
BASELINES = Path(client_drivers.__file__).parent / "client_baselines"


class GatewayDriver:
    """Starts the gateway when its upstream is known, and sends messages to it."""

    def __init__(self, dialect: str, folder: Path, stack: AsyncExitStack) -> None:
        self._dialect, self._folder, self._stack = dialect, folder, stack
        self._address: str | None = None

    async def __call__(self, cue: Cue) -> None:
        if self._address is None or cue.situation in FRESH:
            upstream = {"dialect": self._dialect, "url": cue.url, "key": cue.key, "idle_seconds": IDLE}
            agents = {"examined": {"backend": "remote", "settings": upstream}}
            await self._stack.aclose()
            served = await self._stack.enter_async_context(serving(self._folder, dialects={"aap": {}}, agents=agents))
            self._address = served.url("/aap")
        told = replace(cue.instruction, server_tool=None)
        await drive(replace(cue, url=self._address, key=None, instruction=told))


@pytest.mark.parametrize("dialect", client_dialects())
async def test_a_gateway_passes(dialect: str, tmp_path: Path) -> None:
    suite = load_client_suite(dialect)
    tools = ("AAP-CL-SESS-03",)
    wanted = [it for it in suite.catalogue.requirements if it.section not in ELSEWHERE and it.id not in tools]
    async with AsyncExitStack() as stack:
        driver = GatewayDriver(dialect, tmp_path, stack)
        report = await ClientRunner(suite, Examination(key=KEY, timeout=120), driver).run(wanted)
    file = BASELINES / f"{dialect}.yaml"
    known = read_baseline(file, suite).held_against(report).standing if file.exists() else None
    found = kept(report, lambda outcome: outcome != Outcome.PASSED)
    assert {name: words for name, words in found.items() if known is None or name not in known.known} == {}
