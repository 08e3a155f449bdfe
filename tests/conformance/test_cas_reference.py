"""The correct CAS server passes entirely, in every way of being correct; the suite leaves nothing behind."""

from collections.abc import Awaitable, Callable

import pytest

from conformance.cas.profile import CasProfile
from conformance.faults.cas import CasServer
from conformance.faults.cas.freedoms import SPARING
from conformance.faults.cas.liberties import WHOLE
from conformance.kit.requirement import Level
from conformance.kit.suite import Suite
from conformance.kit.verdict import Outcome, Report, Verdict

Examine = Callable[..., Awaitable[Report]]
KEY = "the-key-of-the-examiners"
PATIENT = 30.0
"""A correct server is given time: the machine may be busy with other things."""


def troubles(report: Report) -> list[str]:
    return [f"{result.name}: {result.remark}" for result in report.results if result.outcome is not Outcome.PASSED]


async def test_the_reference_server_conforms_and_is_left_clean(examine_cas: Examine) -> None:
    server = CasServer(key=KEY)
    report = await examine_cas(server, within=PATIENT)
    assert troubles(report) == []
    assert (report.verdict, report.exit_code) == (Verdict.CONFORMS, 0)
    assert server.is_clean


@pytest.mark.parametrize("server", WHOLE, ids=lambda server: server.__name__)
async def test_liberties_are_not_held_against_a_server(examine_cas: Examine, server: type[CasServer]) -> None:
    assert troubles(await examine_cas(server(key=KEY), within=PATIENT)) == []


@pytest.mark.parametrize("server", SPARING, ids=lambda server: server.__name__)
async def test_no_must_depends_on_a_should(examine_cas: Examine, cas: Suite, server: type[CasServer]) -> None:
    musts = [item.id for item in cas.catalogue.requirements if item.level is Level.MUST]
    report = await examine_cas(server(key=KEY), *musts, within=PATIENT)
    assert [f"{item.requirement.id}: {item.grave[0].remark}" for item in report.findings if item.grave] == []
    assert report.verdict is Verdict.CONFORMS


async def test_an_open_server_is_not_wrong(examine_cas: Examine) -> None:
    report = await examine_cas(CasServer(), "CAS-GEN-02", "CAS-SESS-01", within=PATIENT)
    assert troubles(report) == []


async def test_a_slow_heartbeat_is_not_testable(examine_cas: Examine, cas: Suite) -> None:
    report = await examine_cas(CasServer(key=KEY), "CAS-SSE-06", within=1.0, profile=cas.read_profile())
    assert [result.outcome for result in report.results] == [Outcome.NOT_TESTABLE]
    assert "heartbeats every 10 s take too long" in report.results[0].remark


async def test_an_empty_profile_makes_things_not_testable_and_nothing_wrong(examine_cas: Examine) -> None:
    report = await examine_cas(CasServer(key=KEY), profile=CasProfile(heartbeat=0.2))
    assert report.of(Outcome.FAILED) == ()
    assert not any("stumbled" in (result.reason or "") for result in report.results)
    assert len(report.of(Outcome.NOT_TESTABLE)) > 20


async def test_an_existing_agent_and_environment_are_used_and_kept(examine_cas: Examine, cas: Suite) -> None:
    server = CasServer(key=KEY)
    agent = {"id": "agent_1", "type": "agent", "name": "A", "model": "reference", "tools": [], "version": 1}
    agent |= {"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "archived_at": None}
    server.agents["agent_1"] = [agent]
    environment = server.put_down("environments", "env", "environment", {"name": "E", "config": {"type": "cloud"}})
    update = {"agent": "agent_1", "environment": environment["id"], "heartbeat": 0.2}
    report = await examine_cas(server, "CAS-SESS-01", profile=cas.read_profile().model_copy(update=update))
    assert troubles(report) == []
    assert list(server.agents) == ["agent_1"]
    assert list(server.shelves["environments"]) == [environment["id"]]


async def test_settings_of_the_server_can_be_told(examine_cas: Examine, cas: Suite) -> None:
    class Merging(CasServer):
        def new_metadata(self, talk: object, given: dict[str, object]) -> dict[str, object]:
            merged = talk.view["metadata"] | given  # type: ignore[attr-defined]
            return {name: value for name, value in merged.items() if value is not None}

    update = {"metadata_update": "merge", "heartbeat": 0.2}
    report = await examine_cas(Merging(key=KEY), "CAS-SESS-11", profile=cas.read_profile().model_copy(update=update))
    assert troubles(report) == []
