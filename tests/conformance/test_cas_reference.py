"""The correct CAS server with less than everything, and with settings of its own; see the proof `reference`
and `make prove ARGS="--only false_alarms"` for whole examinations."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from conformance.cas.profile import CasProfile
from conformance.faults.cas.server import CasServer
from conformance.faults.cas.variations import Sparing
from conformance.faults.steps import variant
from conformance.kit.requirement import Level
from conformance.kit.suite import Suite
from conformance.kit.verdict import Outcome, Report, Verdict
from tests.support.conformance.examinations import PATIENT, judged, troubles

Examine = Callable[..., Awaitable[Report]]
KEY = "the-key-of-the-examiners"


async def test_no_must_depends_on_a_should(
    record_run: Callable[..., Awaitable[tuple[Path, Report]]], cas: Suite
) -> None:
    musts = [item.id for item in cas.catalogue.requirements if item.level is Level.MUST][::6]
    path, live = await record_run("cas", variant(CasServer, Sparing)(key=KEY), *musts, within=PATIENT)
    assert [f"{item.requirement.id}: {item.grave[0].remark}" for item in live.findings if item.grave] == []
    assert live.verdict is Verdict.CONFORMS
    assert {item.requirement.id for item in judged("cas", path).of(Outcome.FAILED)}.intersection(musts) == set()


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
    server.state.agents["agent_1"] = [agent]
    given = {"name": "E", "config": {"type": "cloud"}}
    environment = server.resources.create("environments", "env", "environment", given)
    update = {"agent": "agent_1", "environment": environment["id"], "heartbeat": 0.2}
    report = await examine_cas(server, "CAS-SESS-01", profile=cas.read_profile().model_copy(update=update))
    assert troubles(report) == []
    assert list(server.state.agents) == ["agent_1"]
    assert list(server.state.things["environments"]) == [environment["id"]]


async def test_settings_of_the_server_can_be_told(examine_cas: Examine, cas: Suite) -> None:
    class Merging:
        def new_metadata(self, step: object, session: object, given: dict[str, object]) -> dict[str, object]:
            merged = session.view["metadata"] | given  # type: ignore[attr-defined]
            return {name: value for name, value in merged.items() if value is not None}

    update = {"metadata_update": "merge", "heartbeat": 0.2}
    server, profile = variant(CasServer, Merging)(key=KEY), cas.read_profile().model_copy(update=update)
    report = await examine_cas(server, "CAS-SESS-11", profile=profile)
    assert troubles(report) == []


async def test_no_heartbeat_in_the_profile_means_that_nobody_waits_for_one(examine_cas: Examine, cas: Suite) -> None:
    settings = cas.read_profile().model_copy(update={"heartbeat": None})
    report = await examine_cas(CasServer(key=KEY), "CAS-SSE-01", "CAS-SSE-06", profile=settings)
    assert {item.requirement.id: item.outcome for item in report.findings} == {
        "CAS-SSE-01": Outcome.PASSED, "CAS-SSE-06": Outcome.NOT_TESTABLE}
    assert "the profile has no entry `heartbeat`" in [result.reason for result in report.results]
