"""Turns as the examiners see them: one answer, streamed or whole, and what can be asked of it.

Turns are read with tolerance: what departs from a shape or from the order is noted under the requirement that it
breaks, and the reading goes on. Who then asks for what cannot be read is told which requirement is to blame.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from conformance.aap.exchange import Exchange, Message, of_events, of_messages
from conformance.kit import expect
from conformance.kit.departures import Departure, Departures
from conformance.kit.expect import Failed, NotTestable
from conformance.kit.http import Reply, Stream
from conformance.kit.schemas import Schemas
from conformance.kit.sse import ServerEvent

STREAMED = ("delta", "message")
GRACE = 1.0
OF_BOTH = frozenset({"turn_start", "tool_call", "tool_result", "turn_stop"})
VOCABULARY = {
    "delta": OF_BOTH | {"text_delta", "thinking_delta"},
    "message": OF_BOTH | {"text", "thinking"},
}
OF_ONE_MODE = frozenset({"text_delta", "thinking_delta", "text", "thinking"})
REASONS = ("end_turn", "tool_use", "max_tokens", "refusal", "error")
DECIDED_BY = {
    "turn_start": "AAP-SSE-01",
    "text_delta": "AAP-SSE-02",
    "thinking_delta": "AAP-SSE-02",
    "text": "AAP-SSE-03",
    "thinking": "AAP-SSE-03",
    "tool_call": "AAP-SSE-04",
    "tool_result": "AAP-SSE-05",
    "turn_stop": "AAP-SSE-06",
}
"""The requirement that the data of an event are held to."""
RUNS, ENDS, REASON, TELLS, WHOLE = "AAP-TURN-01", "AAP-SSE-01", "AAP-SSE-06", "AAP-SSE-08", "AAP-NONE-01"
WORDS = ("text", "thinking")
BLOCKS = (re.compile(r"/content/\d+"), "AAP-TOOL-05")
PARTS_OF_BODY = ((re.compile("/stopReason"), REASON), (re.compile(r"/messages/\d+/content/\d+"), BLOCKS[1]))

Event = tuple[str, Mapping[str, Any]]
Parts = Iterable[tuple[re.Pattern[str], str]]


@dataclass(frozen=True)
class Turn:
    """What came of one POST to /turns."""

    mode: str
    asked: str
    events: tuple[Event, ...] = ()
    body: Mapping[str, Any] | None = None
    due: str = RUNS
    """The requirement by which the agent has to go on."""
    ends: str = ENDS
    """The requirement by which its stream ends in good order."""
    damage: Departure | None = None
    """What keeps what was said in it from being read."""

    @property
    def is_overrun(self) -> bool:
        """Whether its stream goes on after turn_stop: then it may lack what comes there."""
        return len(self.told) < len(self.events)

    @property
    def stop(self) -> str:
        """The stop reason."""
        if self.damage is not None and self.damage.owner == ENDS:
            self.expect_readable()
        told = [self.body] if self.body is not None else self.named("turn_stop")
        expect.that(bool(told), f"the stream of {self.asked} to end with turn_stop", self.names, self.ends)
        with expect.owned(REASON):
            expect.member(f"the stop reason of {self.asked}", REASONS, told[-1].get("stopReason"))
        return str(told[-1]["stopReason"])

    @property
    def names(self) -> list[str]:
        """The names of the events, runs of the same name said once."""
        found = [name for name, _ in self.events]
        return [name for place, name in enumerate(found) if place == 0 or name != found[place - 1]]

    @property
    def messages(self) -> list[Any]:
        """The messages of a turn in the mode none."""
        self.expect_readable()
        return list((self.body or {})["messages"])

    @property
    def exchange(self) -> Exchange:
        self.expect_readable()
        if self.body is not None:
            return of_messages(self.body["messages"])
        strange = sorted(set(self.names).intersection(OF_ONE_MODE) - VOCABULARY[self.mode])
        expect.that(not strange, f"no events of another mode in the mode {self.mode}", strange, spoken_in(self.mode))
        return of_events(self.told)

    def expect_readable(self) -> None:
        """Fail for who is to blame unless all that was said can be read."""
        if self.damage is not None:
            raise Failed(self.damage.expected, self.damage.seen, self.damage.owner)

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The tool calls made, in order; a call that is told twice is one call."""
        found: list[dict[str, Any]] = []
        for kind, *told in self.exchange.said:
            call = dict(zip(("toolCallId", "name", "input"), told, strict=False))
            if kind == "call" and call not in found:
                found.append(call)
        return found

    @property
    def open_calls(self) -> list[dict[str, Any]]:
        """The calls that had no result in this turn."""
        results = self.exchange.results
        return [call for call in self.calls if call["toolCallId"] not in results]

    @property
    def told(self) -> tuple[Event, ...]:
        """The events up to the first turn_stop; what follows it is no part of the turn."""
        names = [name for name, _ in self.events]
        return self.events[: names.index("turn_stop") + 1] if "turn_stop" in names else self.events

    def named(self, name: str) -> list[Mapping[str, Any]]:
        return [body for found, body in self.told if found == name]

    def call(self, tool: str, owner: str | None = None) -> dict[str, Any]:
        """The call of this tool; the profile promises there is one, and an owner must tell it."""
        for call in self.calls:
            if call["name"] == tool:
                return call
        promised = f"{self.asked} to call the tool `{tool}`, as the profile promises"
        if owner is not None:
            raise Failed(promised, expect.show(self.shown), owner)
        raise NotTestable(f"expected {promised}; seen: {expect.show(self.shown)}")

    def stopped(self, *reasons: str, owner: str | None = None) -> "Turn":
        """Expect one of these stop reasons; another one is the owner's failure, or that of who names reasons."""
        seen = self.stop
        if seen == "error" and owner is None and "error" not in reasons:
            raise NotTestable(f"{self.asked} failed, though the profile promises that it stops with {reasons[0]}")
        expected = f"{self.asked} to stop with {' or '.join(reasons)}"
        expect.that(seen in reasons, expected, self.shown, owner or _who_names(reasons, seen))
        return self

    def spoke(self, kept: Iterable[Message] = ()) -> "Turn":
        """Expect that the agent said something; if the messages kept of the turn have words, the mode lacks them."""
        is_kept = any(item[0] in WORDS for item in of_messages(kept).said)
        owner = spoken_in(self.mode) if is_kept else self.due
        expect.that(bool(self.exchange.said), f"{self.asked} to let the agent say something", self.shown, owner)
        return self

    @property
    def shown(self) -> Any:
        if self.body is not None:
            return dict(self.body)
        return {"events": self.names, "stopReason": [body.get("stopReason") for body in self.named("turn_stop")]}


def spoken_in(mode: str) -> str:
    """The requirement that says how text and thinking come in a mode."""
    return {"delta": DECIDED_BY["text_delta"], "message": DECIDED_BY["text"]}.get(mode, WHOLE)


def told_by(mode: str, told: Exchange, kept: Exchange) -> str:
    """The requirement that a mode breaks if it tells a turn otherwise than the history keeps it."""
    if mode not in STREAMED:
        return WHOLE
    if told.calls != kept.calls:
        return DECIDED_BY["tool_call"]
    lacking = {item[0] for item in kept.said}.difference(item[0] for item in told.said).intersection(WORDS)
    return spoken_in(mode) if lacking or told.words == kept.words else TELLS


def _who_names(wanted: Collection[str], seen: str) -> str:
    """The requirement that tells these stop reasons apart."""
    if "error" in wanted:
        return "AAP-SSE-09"
    return "AAP-SSE-07" if "tool_use" in (*wanted, seen) else REASON


class TurnReader:
    """Reads turns, notes what departs from their shapes and their order, and goes on."""

    def __init__(self, schemas: Schemas, departures: Departures) -> None:
        self._schemas = schemas
        self._departures = departures

    def whole(self, reply: Reply, due: str = RUNS) -> Turn:
        """The turn in a JSON answer."""
        expect_taken(reply, due)
        if reply.content_type != "application/json":
            self._departures.note(WHOLE, f"{reply.asked} to be answered with application/json", reply.content_type)
        with expect.owned(WHOLE):
            body = expect.keyed(f"the answer to {reply.asked}", reply.json())
        found = misfits(self._schemas, "turn", body, f"the answer to {reply.asked}", WHOLE, PARTS_OF_BODY)
        self._departures.adopt(found)
        damage = next((item for item in found if item.owner != REASON), None)
        return Turn("none", reply.asked, body=body, due=due, damage=damage)

    async def streamed(self, stream: Stream, mode: str, due: str = RUNS, ends: str = ENDS) -> Turn:
        """The turn in an event stream, read to its end; `ends` is the requirement that it ends in good order."""
        await self.opened(stream, due)
        asked, read = f"{stream.asked} ({mode})", EventReader(self._schemas)
        late: list[str] = []
        try:
            with self._departures.noting(ends):
                with stream.waits.goal("turn_stop"):
                    while read.last != "turn_stop":
                        is_there = read.take(await stream.next())
                        expect.that(is_there, f"the stream of {asked} to end with turn_stop", read.names[-3:])
                late = await self._afterwards(stream, read)
        finally:
            self._departures.adopt(read.departures)
        if late:
            self._departures.note(ENDS, f"turn_stop to be the last event of {asked}", late[-3:])
        damage = read.damage
        if not read.events:
            damage = Departure(ENDS, f"events in the stream of {asked}", "none")
        return Turn(mode, asked, tuple(read.events), due=due, ends=ends, damage=damage)

    async def opened(self, stream: Stream, due: str = RUNS) -> Stream:
        """Expect an answer that can be read as an event stream."""
        if stream.status != 200:
            expect_taken(await stream.whole(), due)
        if not stream.is_event_stream:
            kind = stream.headers.get("Content-Type", "")
            self._departures.note(ENDS, f"{stream.asked} to be answered with 200 text/event-stream", kind)
        return stream

    async def next(self, stream: Stream) -> Event | None:
        """The next event; None at the end."""
        read = EventReader(self._schemas)
        with expect.owned(ENDS):
            read.take(await stream.next())
        self._departures.adopt(read.departures)
        return read.events[0] if read.events else None

    def recorded(self, told: Iterable[ServerEvent], mode: str, asked: str) -> Turn:
        """The turn in the events of a finished stream."""
        read = EventReader(self._schemas)
        for item in told:
            read.take(item)
        self._departures.adopt(read.departures)
        return Turn(mode, asked, tuple(read.events), damage=read.damage)

    async def _afterwards(self, stream: Stream, read: "EventReader") -> list[str]:
        """The names of what still follows a turn_stop; a server may leave the connection open for a while."""
        before = len(read.events)
        try:
            while read.take(await stream.next(within=GRACE)):
                pass
        except Failed as failure:
            if "nothing more came" not in failure.seen:
                raise
        return read.names[before:]


class EventReader:
    """Reads the events of one stream with their data, and keeps what is wrong with the data.

    If no event at all can be read, it is not the data of each but the stream that is wrong.
    """

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self.events: list[Event] = []
        self._found: list[tuple[str, Departure]] = []
        self._unparsed = 0

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.events]

    @property
    def last(self) -> str | None:
        """The name of the latest event."""
        return self.events[-1][0] if self.events else None

    def take(self, event: ServerEvent | None) -> bool:
        """Read an event; whether there is one."""
        if event is None:
            return False
        owner, what = DECIDED_BY.get(event.event, ENDS), f"the data of the event `{event.event}`"
        body: dict[str, Any] = {}
        try:
            self._unparsed += 1
            body = expect.keyed(what, expect.parsed(event.data, what))
            self._unparsed -= 1
            if f"event.{event.event}" in self._schemas.names:
                self._schemas.fit(f"event.{event.event}", body, what)
        except Failed as failure:
            self._found.append((event.event, Departure(owner, failure.expected, failure.seen)))
        self.events.append((event.event, body))
        return True

    @property
    def _misframed(self) -> Departure | None:
        """What is wrong with the stream as a whole, if no event that the protocol knows can be read."""
        if self._found and self._unparsed == len(self.events):
            return replace(self._found[0][1], owner=ENDS)
        if self.events and not set(self.names).intersection(DECIDED_BY):
            return Departure(ENDS, "events of a turn in an event stream", expect.show(self.names))
        return None

    @property
    def departures(self) -> list[Departure]:
        """What is wrong with the events."""
        whole = self._misframed
        return [whole] if whole is not None else [found for _, found in self._found]

    @property
    def damage(self) -> Departure | None:
        """What keeps what was said from being read."""
        said = [found for name, found in self._found if name not in ("turn_start", "turn_stop")]
        return self._misframed or next(iter(said), None)


def expect_taken(reply: Reply, due: str) -> None:
    """Expect a turn to be taken; one that finds no room, though none runs, is a matter of its own."""
    with expect.owned("AAP-TURN-04" if reply.status == 409 else due):
        expect.status(reply, 200)


def misfits(schemas: Schemas, name: str, value: Any, what: str, owner: str, parts: Parts = ()) -> list[Departure]:
    """What keeps the value from fitting the schema, by who is to blame: the owner, or that of the part at fault."""
    try:
        schemas.fit(name, value, what)
    except Failed as failure:
        blamed = {_blamed(problem, owner, parts): problem for problem in reversed(schemas.problems(name, value))}
        return [Departure(who, failure.expected, expect.show(problem)) for who, problem in reversed(blamed.items())]
    return []


def _blamed(problem: str, owner: str, parts: Parts) -> str:
    return next((other for place, other in parts if place.match(problem)), owner)


def fitting(schemas: Schemas, name: str, value: Any, what: str, owner: str, parts: Parts = ()) -> None:
    """Fail for who is to blame unless the value fits the schema."""
    for found in misfits(schemas, name, value, what, owner, parts):
        raise Failed(found.expected, found.seen, found.owner)
