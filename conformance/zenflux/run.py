"""Runs: what came of one chat message, read as far as a case wants to read."""

from collections.abc import Awaitable, Callable
from typing import Any

from conformance.kit import expect
from conformance.kit.departures import Departures
from conformance.kit.expect import Failed, NotTestable, Unanswered
from conformance.kit.sse import ServerEvent
from conformance.kit.wait_limits import WaitLimits
from conformance.zenflux.event_shapes import BLOCKS
from conformance.zenflux.run_contents import Block, Event, Message, as_object, fold

OVER = ("session_end", "done")
STATUSES = ("completed", "failed", "cancelled")
SIGNALS = ("message_stop", "session_stopped", "session_end", "error")
TOOL_USES = ("tool_use", "server_tool_use")
Source = Callable[["Run"], Awaitable[Event | None]]


class Run:
    """The events of one run, in the order they came."""

    def __init__(
        self,
        asked: str,
        source: Source,
        is_socket: bool = True,
        waits: WaitLimits | None = None,
        departures: Departures | None = None,
    ) -> None:
        self.asked = asked
        self.is_socket = is_socket
        self.events: list[Event] = []
        self._named: dict[str, Event] = {}
        """The first event of each event_uuid."""
        self.session: str | None = None
        self.user = ""
        self.message = ""
        self.silence = "ZF-SEQ-01"
        """Whose it is that no event comes at all."""
        self.late: list[str] = []
        """What came after its end."""
        self.seconds = 0.0
        self.told: list[ServerEvent] = []
        """The server-sent events of a stream, to its very end."""
        self.raw = b""
        self.departures = departures or Departures()
        self._is_series = False
        """Whether any number has followed the one before it."""
        self._source = source
        self.waits = waits or WaitLimits()

    async def next(self) -> Event | None:
        """The next event; None when the stream has ended. One that is sent again is noted and passed over."""
        while (event := await self._source(self)) is not None and self._is_repeated(event):
            name = event.payload["event_uuid"]
            self.departures.note("ZF-ENV-02", f"one event with the event_uuid {name}", f"{event.type} again")
        if event is not None:
            self._note_what_is_missing(event)
            self.events.append(event)
            self._note_what_is_torn(event)
        return event

    def _note_what_is_missing(self, event: Event) -> None:
        """Note that an event is lost or out of place: its number breaks a series. What else fails may be due to that.

        On a socket, numbers may be left out where deltas were merged.
        """
        last = self.events[-1] if self.events else event
        before, number = last.payload.get("seq"), event.payload.get("seq")
        if last is event or type(before) is not int or type(number) is not int or event.session is None:
            return
        is_merged = self.is_socket and "content_delta" in (last.type, event.type)
        is_astray = number < before or (number > before + 1 and not is_merged)
        if is_astray and self._is_series and not self.departures.is_misled:
            expected, seen = f"event {before + 1} after {last.type}", f"{event.type}, number {number}"
            self.departures.note("ZF-ENV-03", expected, seen, is_misleading=True)
        self._is_series |= number == before + 1

    def _note_what_is_torn(self, event: Event) -> None:
        """Note deltas of a block that never began, and blocks that a run does not close though it is completed."""
        if event.type not in ("content_delta", "session_end") or event.session is None or self.departures.is_misled:
            return
        starts, stops, data = self._indexes("content_start"), self._indexes("content_stop"), event.data
        if event.type == "content_delta" and data.get("index") not in starts:
            expected = f"a block {data.get('index')} that began"
            self.departures.note("ZF-EV-30", expected, self.names, is_misleading=True)
        elif event.type == "session_end" and data.get("status") == "completed" and len(stops) < len(starts):
            self.departures.note("ZF-EV-34", f"the blocks {starts} to be closed", stops, is_misleading=True)

    def _indexes(self, kind: str) -> list[Any]:
        return [event.data.get("index") for event in self.of(kind)]

    def _is_repeated(self, event: Event) -> bool:
        """Whether it came before, to the letter."""
        name = event.payload.get("event_uuid")
        first = self._named.setdefault(name, event) if isinstance(name, str) else event
        return first is not event and first.payload == event.payload

    async def until(self, *types: str, owner: str | None = None) -> Event:
        """Read up to the first event of one of these types that has not been read yet.

        The owner demands it; without an owner it is the profile that promises it.
        """
        what = " or ".join(types)
        with expect.owned(owner or "ZF-SEQ-10"), self.waits.goal(what):
            while (event := await self.next()) is not None:
                if event.type in types:
                    return event
                if event.type in OVER:
                    break
        if owner is None:
            raise NotTestable(f"{self.asked} does not bring about {what}, as the profile says: {self.names}")
        return expect.fail(f"{what} in the run of {self.asked}", self.names, owner)

    async def finish(self, goal: str = "session_end") -> "Run":
        """Read to the end; where no session_end comes, to what came last, which is noted."""
        try:
            with self.waits.goal(goal):
                while not self.of("session_end") and await self.next() is not None:
                    pass
        except Unanswered:
            raise
        except Failed as failure:
            if not self.events or failure.owner is not None:
                failure.owner = failure.owner or self.silence
                raise
        if self.is_socket and not self.of("session_end"):
            self.departures.note("ZF-SEQ-08", f"the run of {self.asked} to end with session_end", self.names)
        return self

    async def completed(self) -> "Run":
        """Read to the end, which should be a good one; a run that broke cannot show what it was to show."""
        await self.finish()
        status = [event.data.get("status") for event in self.of("session_end")]
        if self.of("error"):
            errors = [dict(event.data) for event in self.of("error")]
            raise NotTestable(f"the run of {self.asked} ended with an error: {expect.show(errors)}")
        if status in (["failed"], ["cancelled"]):
            self.departures.note("ZF-EV-03", f"`completed` as the status at the end of {self.asked}", status[0])
        return self

    # -- what can be asked of it ---------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """The types of the events; a series of the same type is said once."""
        found = [event.type for event in self.events]
        return [name for place, name in enumerate(found) if place == 0 or name != found[place - 1]]

    def of(self, *types: str) -> list[Event]:
        return [event for event in self.events if event.type in types]

    @property
    def session_id(self) -> str:
        return self.events[0].session_id

    @property
    def conversation_id(self) -> str:
        return str(self.events[0].payload["conversation_id"])

    @property
    def status(self) -> str:
        """How the run ended, as session_end says."""
        told = self.of("session_end")[-1].data.get("status")
        expect.that(told in STATUSES, f"a status, one of {', '.join(STATUSES)}", told, "ZF-EV-03")
        return str(told)

    @property
    def messages(self) -> list[Message]:
        return fold(self.events)

    def blocks(self, *types: str) -> list[Block]:
        """All blocks, or those of these types, over all messages."""
        return [block for item in self.messages for block in item.blocks if not types or block.type in types]

    @property
    def text(self) -> str:
        return "".join(block.said for block in self.blocks("text"))

    def one(self, *types: str) -> Block:
        """The first block of one of these types; the profile promises there is one."""
        found = self.blocks(*types)
        kinds = [block.type for block in self.blocks()]
        if not found and types == ("tool_result",) and self.blocks(*TOOL_USES):
            expect.fail(f"{self.asked} to go on after the call with a tool_result", kinds, "ZF-SEQ-06")
        if not found:
            strange = [kind for kind in kinds if kind not in BLOCKS]
            expect.that(not strange, f"a block of {self.asked} to be {' or '.join(types)}", kinds, BLOCKS[types[0]])
            raise NotTestable(f"{self.asked} does not bring about {' or '.join(types)}, as the profile says: {kinds}")
        return found[0]

    def notes(self, topic: str) -> list[Any]:
        """The contents of the message_delta events of this sub-type."""
        return [event.data["content"] for event in self.of("message_delta") if event.data["type"] == topic]

    def note(self, topic: str) -> Any:
        """The first of them; the profile promises there is one."""
        found, kinds = self.notes(topic), [event.data["type"] for event in self.of("message_delta")]
        if not found:
            raise NotTestable(f"{self.asked} does not bring about `{topic}`, as the profile says: {kinds}")
        return found[0]

    @property
    def request(self) -> dict[str, Any]:
        """What the user is asked to confirm."""
        with expect.owned("ZF-EV-18"):
            found = as_object(self.note("confirmation_request"), "the content of a confirmation_request")
            name = found.get("request_id")
            expect.that(isinstance(name, str) and bool(name), "a confirmation_request to carry its request_id", found)
        return found

    async def until_note(self, topic: str) -> Any:
        """Read up to the message_delta of this sub-type, which the profile promises."""
        while not self.notes(topic):
            try:
                with self.waits.goal(f"a note {topic}"):
                    event = await self.next()
            except Unanswered:
                raise
            except Failed as failure:
                failure.owner = failure.owner or "ZF-SEQ-10"
                raise
            if event is None or event.type in OVER:
                return self.note(topic)
        return self.note(topic)
