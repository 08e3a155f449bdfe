"""Two dialects in a row: whoever talks to an agent through both is told what it said, but for what the tables declare.

The first dialect is heard by the gateway itself, and held to what its table says of that (`heard`). The client of the
second is one that has only read that dialect's documents, and its reading is held to what the wire carries (`support`).
"""

import asyncio
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Protocol

import gateway.model as m
from mappings.language import FEATURES, SupportLevel, Table
from tests.support.dialect_parts import part
from tests.support.dialect_tables import table
from tests.support.directives import REFUSED, STOPPED, directives
from tests.support.gateway_server import Served
from tests.support.pairs.answer_texts import PAINT, PAINTED
from tests.support.pairs.comparison import NOT_TOLD, Comparison
from tests.support.pairs.facts import FactCounter, counted
from tests.support.pairs.reader import TurnReader
from tests.support.pairs.two_gateways import GatewayChain, gateway_chain

PATIENCE = 50.0
DIRECTIVES = directives()
AT_ONCE = 7


class PairClient(Protocol):
    """A client of one dialect that knows only the documents of the dialect; `pair_client.py` in its folder has it."""

    can_bring: Collection[str]
    """What it can send along with a message."""

    async def converse(
        self, text: str, *, stop_at: int = 0, kindly: bool = True, brings: str = "",
    ) -> TurnReader:
        """Say this in a new session, answer whatever is asked, and tell what was heard.

        The turn is stopped after `stop_at` deltas, if that is not 0; `kindly` is whether everything is granted.
        """


def pair_client(dialect: str, served: Served) -> PairClient:
    """A client of this dialect at this gateway."""
    client: PairClient = part(dialect, "pair_client").PairClient(served)
    return client


class Pair:
    """Two dialects in a row, and what is found lost on the way, each with the directives where it was and why."""

    def __init__(self, row: GatewayChain, first: str, second: str) -> None:
        self.row, self.first, self.second = row, table(first), table(second)
        self.name, self.talk = second, pair_client(second, row.second)
        self.levels = {name: {self.first.client_support[name], self.second.support[name]} for name in FEATURES}
        self.halfway = {name: {self.first.client_support[name]} for name in FEATURES}
        self.found: dict[str, list[str]] = {}
        self.unheard: dict[str, list[str]] = {}
        self.seen: set[str] = set()
        self.wrong: list[str] = []

    async def try_all(self) -> None:
        gate = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(
            *(self._try(gate, number, text) for number, text in enumerate(DIRECTIVES)),
            self._try(gate, 100, STOPPED, stop_at=2),
            *(self._try(gate, number, text, kindly=False) for number, text in enumerate(REFUSED, 200)),
        )

    async def _try(
        self, gate: asyncio.Semaphore, number: int, text: str, stop_at: int = 0, kindly: bool = True,
    ) -> None:
        mark = f"({self.name}{number})"
        async with gate, asyncio.timeout(PATIENCE):
            reading = await self.talk.converse(f"{mark} {text}", stop_at=stop_at, kindly=kindly)
            records, turn_id = await self.row.original(mark)
            between = counted(*await self.row.between(mark))
        original = counted(records, turn_id)
        if stop_at:
            self._stopped(text, original, reading)
        else:
            self._compare(text, original, between, reading)
        for feature in misunderstood(records, turn_id, kindly):
            self._lose(feature, f"{text}: the agent was not told what the client has answered")
        is_there, is_here = await self.row.knows(mark, PAINT["name"])
        if not is_there:
            self._lose("client_tools", f"{text}: the client's tool was not declared to the agent")
        if is_here and not is_there:
            self.unheard.setdefault("client_tools", []).append(f"{text}: the tool was not declared")

    def _lose(self, feature: str, words: str) -> None:
        self.found.setdefault(feature, []).append(words)

    def _compare(self, text: str, original: FactCounter, between: FactCounter, reading: TurnReader) -> None:
        whole = Comparison(original, reading, self.levels, self.second)
        self.seen |= {feature for feature, was in original.facts().items() if was}
        for feature, was, now in whole.lost():
            self._lose(feature, f"{text}: was {short(was)}, told {short(now)}")
        for feature, was, now in Comparison(original, between, self.halfway, None).lost():
            self.unheard.setdefault(feature, []).append(f"{text}: was {short(was)}, heard {short(now)}")
        raw = "".join((*reading.raw, *reading.texts))
        for feature, level in self.second.support.items():
            if feature in NOT_TOLD:
                continue
            if level is SupportLevel.DROPPED and whole.leaked(feature):
                self.wrong.append(f"{text}: {feature} is declared dropped and is told")
            if (
                level is SupportLevel.FALLBACK
                and self.first.client_support[feature] is SupportLevel.FULL
                and whole.untold(raw, feature)
            ):
                self.wrong.append(f"{text}: {feature} is declared to be told in another form, and is not told at all")

    def _stopped(self, text: str, original: FactCounter, reading: TurnReader) -> None:
        """The agent has to stop, and the client has to be told so."""
        told, was = reading.facts(), original.facts()
        if not (told["interrupts"] and was["interrupts"]):
            self._lose("interrupts", f"{text}: stopped {was['interrupts']}, told {told['interrupts']}")
        if told["stop_reasons"] != was["stop_reasons"]:
            self._lose("stop_reasons", f"{text}: was {was['stop_reasons']}, told {told['stop_reasons']}")


def misunderstood(records: list[m.Record], turn_id: str, kindly: bool) -> list[str]:
    """The asks to which the agent got another answer than the client gave."""
    commands = [record.event.command for record in records
                if record.turn_id == turn_id and isinstance(record.event, m.InputAccepted)]
    return [feature for command in commands for feature, is_right in [_understood(command, kindly)] if not is_right]


def _understood(command: object, kindly: bool) -> tuple[str, bool]:
    match command:
        case m.DecidePermission(granted=granted):
            return "permissions", granted is kindly
        case m.ContinueTurn(proceed=proceed):
            return "continuations", proceed is kindly
        case m.ReturnResult(content=content, is_error=is_error):
            return "client_tools", (m.text_of(content), is_error) == (PAINTED, False)
        case m.RollBack(option=option):
            return "rollbacks", option == "step"
    return "", True


def short(value: object) -> str:
    return re.sub(r"\s+", " ", repr(value))[:200]


def declared(first: Table, second: Table) -> set[str]:
    """What the tables of the two say is lost on the way."""
    return lesser(first.client_support) | lesser(second.support)


def lesser(levels: Mapping[str, SupportLevel]) -> set[str]:
    return {name for name, level in levels.items() if level is not SupportLevel.FULL}


async def misdeclared(folder: Path, first: str, second: str) -> dict[str, Any]:
    """What the tables of the two do not say as it is: nothing is lost but what is declared, and all of that."""
    async with gateway_chain(folder, first) as row:
        pair = Pair(row, first, second)
        await pair.try_all()
    between, heard = f"between {first} and {second}", f"where {first} is heard"
    cannot = {"client_tools"} if table(second).support["client_tools"] is not SupportLevel.FULL else set()
    found = {"told as it must not be": pair.wrong}
    found |= _misdeclared(pair.found, declared(table(first), table(second)), set(), between)
    found |= _misdeclared(pair.unheard, lesser(table(first).client_support), cannot, heard)
    return {name: words for name, words in found.items() if words}


def _misdeclared(found: dict[str, list[str]], expected: set[str], never: set[str], where: str) -> dict[str, Any]:
    """But for what can never come about here."""
    return {
        f"lost {where}, and not declared": {name: words for name, words in found.items() if name not in expected},
        f"declared lost {where}, and yet it arrives": sorted(expected - found.keys() - never - set(NOT_TOLD)),
    }
