"""Runs: what came of one chat message, read as far as a case wants to read."""

from collections.abc import Awaitable, Callable
from typing import Any

from conformance.kit import expect
from conformance.kit.waits import Waits
from conformance.zenflux.run_contents import Block, Event, Message, as_object, fold

OVER = ("session_end", "done")
TOOL_USES = ("tool_use", "server_tool_use")
Source = Callable[["Run"], Awaitable[Event | None]]


class Run:
    """The events of one run, in the order they came."""

    def __init__(self, asked: str, source: Source, is_socket: bool = True, waits: Waits | None = None) -> None:
        self.asked = asked
        self.is_socket = is_socket
        self.events: list[Event] = []
        self.session: str | None = None
        self._source = source
        self._waits = waits or Waits()

    async def next(self) -> Event | None:
        """The next event; None when the stream has ended."""
        event = await self._source(self)
        if event is not None:
            self.events.append(event)
        return event

    async def until(self, *types: str) -> Event:
        """Read up to the first event of one of these types that has not been read yet."""
        with self._waits.goal(" or ".join(types)):
            while (event := await self.next()) is not None:
                if event.type in types:
                    return event
                if event.type in OVER:
                    break
        return expect.fail(f"{' or '.join(types)} in the run of {self.asked}", self.names)

    async def finish(self) -> "Run":
        """Read to the end."""
        with self._waits.goal("session_end"):
            while self.names[-1:] != ["session_end"] and await self.next() is not None:
                pass
        return self

    async def completed(self) -> "Run":
        """Read to the end, which must be a good one."""
        await self.finish()
        ends = self.of("session_end")
        expect.that(bool(ends), f"the run of {self.asked} to end with session_end", self.names)
        expect.equal(f"the status at the end of {self.asked}", "completed", ends[-1].data["status"])
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
        expect.that(bool(found), f"{self.asked} to bring about {' or '.join(types)}, as the profile says", kinds)
        return found[0]

    def notes(self, topic: str) -> list[Any]:
        """The contents of the message_delta events of this sub-type."""
        return [event.data["content"] for event in self.of("message_delta") if event.data["type"] == topic]

    def note(self, topic: str) -> Any:
        """The first of them; the profile promises there is one."""
        found, kinds = self.notes(topic), [event.data["type"] for event in self.of("message_delta")]
        expect.that(bool(found), f"{self.asked} to bring about a message_delta `{topic}`, as the profile says", kinds)
        return found[0]

    @property
    def request(self) -> dict[str, Any]:
        """What the user is asked to confirm."""
        found = as_object(self.note("confirmation_request"), "the content of a confirmation_request")
        name = found.get("request_id")
        expect.that(isinstance(name, str) and bool(name), "a confirmation_request to carry its request_id", found)
        return found

    async def until_note(self, topic: str) -> Any:
        """Read up to the message_delta of this sub-type."""
        while not self.notes(topic):
            await self.until("message_delta")
        return self.note(topic)
