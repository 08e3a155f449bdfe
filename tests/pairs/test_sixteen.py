"""Sixteen pairs: whoever talks to an agent through two dialects hears what it said, but for what the tables declare."""

import asyncio
import re
from pathlib import Path

import pytest

from gateway.backends.directives import READERS
from mappings.language import FEATURES, Level, Table
from tests.pairs.facts import Facts, of_heard, of_log
from tests.pairs.relaying import Row, in_a_row
from tests.pairs.talking import PAINT, converse
from tests.tables import DIALECTS, table

DIRECTIVES = [
    "hello there", "/think why", "/tool clock", '/tool calc {"expression": "6*7"} well',
    '/tool search {"query": "dragoman"}', '/tool search {"wrong": 1}', "/permit", "/parallel", "/ask", "/fork",
    "/fork-ask", "/continue", "/rollback", "/fail", "/fail-start", "/refuse", "/max-tokens", "/max-steps", "/slow 3",
    "/burst 200", "/annotate", "/bridge", "/ui", "/image", "/plan", "/card", "/title Trip", "/compact", "/json",
    "/client-tool", "/provider-tool",
]
REFUSED = ["/permit", "/parallel", "/continue"]
"""What is asked here is not granted."""
STOPPED = "/slow 60"
NOT_HEARD = ("images_in", "files", "history_seed", "structured_output")
"""What goes the other way; tested by itself."""
AT_ONCE = 7


async def both(
    row: Row, dialect: str, number: int, text: str, stop_at: int = 0, kindly: bool = True,
) -> tuple[Facts, Facts]:
    """The original and what the client heard of it."""
    mark, client = f"({dialect}{number})", row.client(dialect)
    try:
        heard = of_heard(await converse(client, f"{mark} {text}", stop_at=stop_at, kindly=kindly))
    finally:
        await client.close()
    return of_log(*await row.original(mark)), heard


async def lost(row: Row, dialect: str) -> dict[str, list[str]]:
    """The features that did not arrive as they were, each with the directives where they did not and why."""
    gate, found = asyncio.Semaphore(AT_ONCE), dict[str, list[str]]()

    async def one(number: int, text: str, stop_at: int = 0, kindly: bool = True) -> None:
        async with gate:
            original, heard = await both(row, dialect, number, text, stop_at, kindly)
        for feature in ("interrupts", "stop_reasons") if stop_at else original:
            was = original[feature]
            if heard[feature] != was and feature not in excused(original):
                found.setdefault(feature, []).append(f"{text}: was {short(was)}, heard {short(heard[feature])}")
        if not await row.has_tools(f"({dialect}{number})", PAINT.name):
            found.setdefault("client_tools", []).append(f"{text}: the client's tool was not declared to the agent")

    await asyncio.gather(
        *(one(number, text) for number, text in enumerate(DIRECTIVES)), one(100, STOPPED, 2),
        *(one(number, text, kindly=False) for number, text in enumerate(REFUSED, 200)),
    )
    return found


def excused(original: Facts) -> tuple[str, ...]:
    """Where sub-agents are not heard, what they ask for is asked as the agent's own, and what they cost is not told."""
    return ("tool_calls", "tool_results", "parallel_tools", "usage") if original["subagents"] else ()


def short(value: object) -> str:
    return re.sub(r"\s+", " ", repr(value))[:200]


def declared(first: Table, second: Table) -> set[str]:
    """What the tables of the two say is lost on the way, for a client that reads all that is told.

    A picture that the first tells in words goes through the second as words, for a client that knows them for one.
    """
    lost = {name for name in FEATURES if {first.heard[name], second.heard[name]} != {Level.FULL}}
    in_words = {first.support["images_out"], second.support["images_out"]} == {Level.FALLBACK}
    is_read_back = in_words and second.heard["images_out"] is Level.FULL
    return lost - {"images_out"} if is_read_back else lost


def test_every_directive_is_tried() -> None:
    assert {text.split()[0].removeprefix("/") for text in DIRECTIVES} >= READERS.keys()


@pytest.mark.parametrize("second", DIALECTS)
@pytest.mark.parametrize("first", DIALECTS)
async def test_what_is_declared_lost_is_lost_and_nothing_else(tmp_path: Path, first: str, second: str) -> None:
    async with in_a_row(tmp_path, first) as row:
        found = await lost(row, second)
    expected = declared(table(first), table(second)) - set(NOT_HEARD)
    surprises = {name: words for name, words in found.items() if name not in expected}
    assert surprises == {}, f"lost between {first} and {second}, and not declared"
    kept = sorted(expected - found.keys())
    assert kept == [], f"declared lost between {first} and {second}, and yet it arrives"

