"""Turns as the examiners see them: one answer, streamed or whole, and what can be asked of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.aap.exchange import Exchange, of_events, of_messages
from conformance.kit import expect
from conformance.kit.expect import Failed
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

Event = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Turn:
    """What came of one POST to /turns."""

    mode: str
    asked: str
    events: tuple[Event, ...] = ()
    body: Mapping[str, Any] | None = None

    @property
    def stop(self) -> str:
        """The stop reason."""
        if self.body is not None:
            return str(self.body["stopReason"])
        stops = self.named("turn_stop")
        expect.that(bool(stops), f"the stream of {self.asked} to end with turn_stop", self.names)
        return str(stops[-1]["stopReason"])

    @property
    def names(self) -> list[str]:
        """The names of the events, runs of the same name said once."""
        found = [name for name, _ in self.events]
        return [name for place, name in enumerate(found) if place == 0 or name != found[place - 1]]

    @property
    def exchange(self) -> Exchange:
        return of_messages(self.body["messages"]) if self.body is not None else of_events(self.events)

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The tool calls made, in order."""
        found = [item for item in self.exchange.said if item[0] == "call"]
        return [{"toolCallId": item[1], "name": item[2], "input": item[3]} for item in found]

    @property
    def open_calls(self) -> list[dict[str, Any]]:
        """The calls that had no result in this turn."""
        results = self.exchange.results
        return [call for call in self.calls if call["toolCallId"] not in results]

    def named(self, name: str) -> list[Mapping[str, Any]]:
        return [body for found, body in self.events if found == name]

    def call(self, tool: str) -> dict[str, Any]:
        """The call of this tool; the profile promises there is one."""
        found = [call for call in self.calls if call["name"] == tool]
        expect.that(bool(found), f"{self.asked} to call the tool `{tool}`, as the profile promises", self.shown)
        return found[0]

    def stopped(self, *reasons: str) -> "Turn":
        """Expect one of these stop reasons."""
        expect.that(self.stop in reasons, f"{self.asked} to stop with {' or '.join(reasons)}", self.shown)
        return self

    def spoke(self) -> "Turn":
        """Expect that the agent said something."""
        expect.that(bool(self.exchange.said), f"{self.asked} to let the agent say something", self.shown)
        return self

    @property
    def shown(self) -> Any:
        if self.body is not None:
            return dict(self.body)
        return {"events": self.names, "stopReason": [body.get("stopReason") for body in self.named("turn_stop")]}


def whole_turn(reply: Reply, schemas: Schemas) -> Turn:
    """The turn in a JSON answer."""
    body = expect.status(reply, 200).json()
    schemas.fit("turn", body, f"the answer to {reply.asked}")
    return Turn("none", reply.asked, body=body)


async def streamed_turn(stream: Stream, mode: str, schemas: Schemas) -> Turn:
    """The turn in an event stream, read to its end."""
    await opened(stream)
    events: list[Event] = []
    with stream.waits.goal("turn_stop"):
        while not (events and events[-1][0] == "turn_stop"):
            event = await next_event(stream, schemas)
            if event is None:
                break
            events.append(event)
    if events and events[-1][0] == "turn_stop":
        events += await _afterwards(stream, schemas)
    return Turn(mode, f"{stream.asked} ({mode})", tuple(events))


async def opened(stream: Stream) -> Stream:
    """Expect an event stream."""
    if not stream.is_event_stream:
        reply = await stream.whole()
        expect.fail(f"{stream.asked} to be answered with 200 text/event-stream", f"{reply.content_type} {reply.told}")
    return stream


async def next_event(stream: Stream, schemas: Schemas) -> Event | None:
    """The next event, its data parsed and checked; None at the end."""
    return _checked(await stream.next(), schemas)


def events_of(told: Iterable[ServerEvent], schemas: Schemas) -> tuple[Event, ...]:
    """The events of a finished stream, each checked."""
    return tuple(event for event in (_checked(item, schemas) for item in told) if event is not None)


async def _afterwards(stream: Stream, schemas: Schemas) -> list[Event]:
    """Whatever still follows a turn_stop; a server may leave the connection open for a while."""
    events: list[Event] = []
    try:
        while (event := _checked(await stream.next(within=GRACE), schemas)) is not None:
            events.append(event)
    except Failed as failure:
        if "nothing more came" not in failure.seen:
            raise
    return events


def _checked(event: Any, schemas: Schemas) -> Event | None:
    if event is None:
        return None
    what = f"the data of the event `{event.event}`"
    body = expect.parsed(event.data, what)
    expect.that(isinstance(body, dict), f"{what} to be an object", event.data)
    if f"event.{event.event}" in schemas.names:
        schemas.fit(f"event.{event.event}", body, what)
    return event.event, body
