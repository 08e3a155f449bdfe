"""What clients bring along reaches the agent or is declared lost: pictures, files, an earlier talk, a schema.

The client of the second dialect is again one that has only read its documents. What it has no words for is not brought.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from mappings.language import SupportLevel
from tests.support.dialect_parts import each
from tests.support.dialect_tables import DIALECTS, table
from tests.support.pairs.answer_texts import BEFORE, FILE, PICTURE
from tests.support.pairs.comparison import BROUGHT
from tests.support.pairs.pair import PATIENCE, pair_client
from tests.support.pairs.two_gateways import GatewayChain, gateway_chain

WORDS = {"structured_output": "/json"}


def said(records: list[m.Record], mark: str) -> m.SendMessage:
    commands = [record.event.command for record in records if isinstance(record.event, m.InputAccepted)]
    return next(one for one in commands if isinstance(one, m.SendMessage) and mark in m.text_of(one.content))


def has_come(name: str, view: m.SessionView, records: list[m.Record], mark: str) -> bool:
    """Whether the agent has what the client has sent along."""
    parts = m.parts_of(said(records, mark).content)
    match name:
        case "images_in":
            return [part.url for part in parts if isinstance(part, m.ImagePart)] == [PICTURE]
        case "files":
            return [(part.name, part.url) for part in parts if isinstance(part, m.FilePart)] == [
                (FILE["name"], FILE["url"])]
        case "history_seed":
            return [(str(entry.role), m.text_of(entry.content)) for entry in view.entries][:2] == [*BEFORE]
    ends = [record.event for record in records if isinstance(record.event, m.TurnEnded)]
    return [isinstance(end.result, dict) and "answer" in end.result for end in ends] == [True]


async def brought(row: GatewayChain, talk: Any, name: str) -> bool:
    mark = f"({name})"
    async with asyncio.timeout(PATIENCE):
        reading = await talk.converse(f"{mark} {WORDS.get(name, 'look')}", brings=name)
    if name == "structured_output" and "answer" not in (reading.result or {}):
        assert reading.faults, "a schema that is not kept is a fault"
        return False
    assert reading.stop == "end_turn"
    return has_come(name, *await row.found(mark), mark)


@pytest.mark.parametrize("second", each("pair_client"))
@pytest.mark.parametrize("first", DIALECTS)
async def test_what_is_declared_lost_is_lost_and_nothing_else(tmp_path: Path, first: str, second: str) -> None:
    async with gateway_chain(tmp_path, first) as row:
        talk = pair_client(second, row.second)
        lost = {name for name in BROUGHT if name not in talk.can_bring or not await brought(row, talk, name)}
    sides = [table(first).client_support, table(second).client_support]
    assert lost == {name for name in BROUGHT if {side[name] for side in sides} != {SupportLevel.FULL}}
