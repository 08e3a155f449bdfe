"""The ZenFlux catalogue and its cases, held against each other and against the specification's rows."""

from collections import Counter
from pathlib import Path

import pytest

import conformance.zenflux
from conformance.kit.case import disagreements
from conformance.kit.requirement import Level
from conformance.kit.suite import Suite

ROWS = {"GEN": 5, "WS": 25, "ENV": 9, "SEQ": 10, "EV": 39, "TYPE": 8, "RT": 6, "MG": 14}
ENDPOINTS = {"3.1": 7, "3.2": 9, "3.3": 4, "3.4": 1, "3.5": 15, "3.6": 9, "3.7": 12, "3.8": 1}
ENDPOINTS |= {"3.9": 4, "3.10": 6, "3.11": 6, "3.12": 2, "3.13": 3}
GAPS = 39
NOT_FOR_SERVERS = {"GEN-02", "GEN-05", "WS-19", "WS-20", "WS-23", "EV-13", "EV-32", "RT-01", "RT-02", "RT-03", "RT-04"}
NOT_FOR_SERVERS |= {"MG-10"}
PARTS = {"AG": 23, "MCP": 26, "SK": 23, "TL": 16, "SET": 7, "MEM": 15, "TASK": 11, "DOC": 3}
"""How many sentences there are about what the calls of a group take, answer, refuse and do."""
HELPERS = {"zenflux.rest_answer", "zenflux.cleanup", "zenflux.examination", "zenflux.chat_socket", "zenflux.profile"}
HELPERS |= {"zenflux.rest_calls", "zenflux.event_shapes", "zenflux.prerequisites", "zenflux.sample_skills"}
HELPERS |= {"zenflux.management_common", "zenflux.run", "zenflux.run_contents", "zenflux.sample_runs"}
SOCKET = {"zenflux.frames", "zenflux.responses", "zenflux.connection", "zenflux.envelope", "zenflux.lifecycle"}
STORIES = {"zenflux.events", "zenflux.messages", "zenflux.blocks", "zenflux.extras", "zenflux.types"}
REST = {"zenflux.chat", "zenflux.sessions", "zenflux.conversations", "zenflux.paging", "zenflux.confirmations"}
PLACES = {"zenflux.files", "zenflux.models", "zenflux.health", "zenflux.management"}
MANAGED = {"zenflux.agents", "zenflux.agent_servers", "zenflux.tools", "zenflux.mcp_servers", "zenflux.documents"}
MANAGED |= {"zenflux.skills", "zenflux.skill_details", "zenflux.settings", "zenflux.memories", "zenflux.tasks"}


def test_catalogue_and_cases_agree_both_ways(zenflux: Suite) -> None:
    assert disagreements(zenflux.catalogue, zenflux.cases) == []


@pytest.mark.parametrize(("group", "count"), ROWS.items())
def test_every_row_of_the_specification_is_there(zenflux: Suite, group: str, count: int) -> None:
    found = sorted(item.id for item in zenflux.catalogue.requirements if item.id.split("-")[1] == group)
    assert found == [f"ZF-{group}-{number:02}" for number in range(1, count + 1)]


@pytest.mark.parametrize(("section", "count"), ENDPOINTS.items())
def test_every_endpoint_is_there(zenflux: Suite, section: str, count: int) -> None:
    found = [item for item in zenflux.catalogue.requirements if item.id.startswith(f"ZF-HTTP-{section}-")]
    assert [item.id for item in found] == [f"ZF-HTTP-{section}-{number:02}" for number in range(1, count + 1)]
    assert {item.level for item in found if item.section == "management"} <= {Level.MAY}
    assert {item.level for item in found if item.section != "management"} <= {Level.MUST}


def test_every_gap_has_its_resolution_and_none_is_a_must(zenflux: Suite) -> None:
    found = [item for item in zenflux.catalogue.requirements if item.id.startswith("G-ZF-")]
    assert sorted(item.id for item in found) == [f"G-ZF-{number:02}" for number in range(1, GAPS + 1)]
    assert Level.MUST not in {item.level for item in found}


@pytest.mark.parametrize(("group", "count"), PARTS.items())
def test_what_a_call_takes_answers_refuses_and_does_is_a_should(zenflux: Suite, group: str, count: int) -> None:
    found = [item for item in zenflux.catalogue.requirements if item.id.startswith(f"ZF-{group}-")]
    assert (len(found), {item.level for item in found}) == (count, {Level.SHOULD})
    assert {item.id.partition(".")[2] for item in found} <= {"in", "out", "err", "does"}


def test_there_are_no_rows_besides(zenflux: Suite) -> None:
    rows = sum(ROWS.values()) + sum(ENDPOINTS.values()) + sum(PARTS.values())
    assert len(zenflux.catalogue.requirements) == rows + GAPS


def test_what_the_specification_says_to_others_is_kept_with_a_reason(zenflux: Suite) -> None:
    exempt = {item.id for item in zenflux.catalogue.requirements if item.not_applicable}
    assert exempt == {f"ZF-{name}" for name in NOT_FOR_SERVERS} | {"G-ZF-38"}


def test_levels_are_as_the_specification_has_them(zenflux: Suite) -> None:
    levels = Counter(item.level for item in zenflux.catalogue.requirements)
    assert levels == {Level.MUST: 176, Level.SHOULD: 172, Level.MAY: 10}


def test_files_are_named_after_sections(zenflux: Suite) -> None:
    files = {f"zenflux.{path.stem}" for path in Path(conformance.zenflux.__file__).parent.glob("[a-z]*.py")}
    sections = {f"zenflux.{section}" for section in zenflux.catalogue.sections}
    assert files - HELPERS == sections - {"zenflux.general"} == SOCKET | STORIES | REST | PLACES | MANAGED
    assert {f"zenflux.{case.name.split('.')[0]}" for case in zenflux.cases} == files - HELPERS
