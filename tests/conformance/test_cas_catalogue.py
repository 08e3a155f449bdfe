"""The CAS catalogue and its cases, held against each other."""

from collections import Counter

import pytest

from conformance.cas.requirement_owners import SCHEMAS
from conformance.kit.case import disagreements
from conformance.kit.requirement import Level
from conformance.kit.suite import Suite, dialects

ROWS = {"GEN": 7, "SESS": 15, "EV": 20, "SSE": 9, "THR": 4, "RES": 9}
WEAKER = {
    "GEN": (3, 5, 7), "SESS": (9, 13, 14, 15), "EV": (4, 9, 12, 15, 17, 18, 19, 20),
    "SSE": (4, 6, 7, 8, 9), "THR": (2,),
}
BESIDE_SECTIONS = {"listing", "repetition", "snapshots", "variables", "mounts", "turns", "asks", "resuming", "deltas"}
BESIDE_SECTIONS |= {"telling"}


def test_the_dialect_is_found_by_its_name() -> None:
    assert "cas" in dialects()


def test_catalogue_and_cases_agree_both_ways(cas: Suite) -> None:
    assert disagreements(cas.catalogue, cas.cases) == []


@pytest.mark.parametrize(("group", "count"), ROWS.items())
def test_every_row_of_the_specification_is_there(cas: Suite, group: str, count: int) -> None:
    found = [item.id for item in cas.catalogue.requirements if item.id.split("-")[1] == group]
    assert found == [f"CAS-{group}-{number:02}" for number in range(1, count + 1)]


def test_there_are_no_rows_besides(cas: Suite) -> None:
    assert len(cas.catalogue.requirements) == sum(ROWS.values())


def test_levels_are_those_of_the_specification(cas: Suite) -> None:
    weaker = {f"CAS-{group}-{number:02}" for group, numbers in WEAKER.items() for number in numbers}
    weaker |= {f"CAS-RES-{number:02}" for number in range(1, ROWS["RES"] + 1)}
    assert {item.id for item in cas.catalogue.requirements if item.level is not Level.MUST} == weaker
    assert Counter(item.level for item in cas.catalogue.requirements)[Level.MAY] == 0


def test_files_are_named_after_sections(cas: Suite) -> None:
    files = {case.name.split(".")[0] for case in cas.cases}
    assert files - BESIDE_SECTIONS - {"agents"} == set(cas.catalogue.sections)


def test_every_event_type_has_a_schema() -> None:
    kinds = """user.message user.interrupt user.tool_confirmation user.custom_tool_result user.define_outcome
        session.status_running session.status_idle session.status_terminated session.error session.updated
        session.deleted session.thread_created session.thread_status_running session.thread_status_idle
        session.thread_status_terminated agent.message agent.thinking agent.tool_use agent.tool_result
        agent.mcp_tool_use agent.mcp_tool_result agent.custom_tool_use agent.artifact_delivered
        agent.thread_message_sent agent.thread_message_received span.model_request_start span.model_request_end
        event_start event_delta agent.message_start agent.content_block_start agent.content_block_delta
        agent.content_block_stop agent.message_delta agent.message_stop"""
    assert {f"event.{kind}" for kind in kinds.split()} <= SCHEMAS.names
