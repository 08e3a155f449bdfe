"""Servers whose events come in the wrong order, too often or not at all."""

from collections.abc import Iterator
from typing import Any

from conformance.faults.fault import fault
from conformance.faults.zenflux.agent import Use
from conformance.faults.zenflux.editing import Dropping, Editing, changed
from conformance.faults.zenflux.memory import Session
from conformance.faults.zenflux.player import Broken, Telling, Told
from conformance.faults.zenflux.server import ZenfluxServer

OPENING = "lifecycle.a_run_opens_in_order"
BLOCKS = "lifecycle.blocks_come_in_order"
DENSE = "lifecycle.indexes_are_dense"
CLOSING = "lifecycle.a_message_closes_in_order"
ON = "lifecycle.the_agent_goes_on_after_a_tool"
LAST = "lifecycle.session_end_is_the_last"
MIXED = "lifecycle.blocks_do_not_interleave"
SIGNAL = "lifecycle.every_run_has_its_end_signal"
ROUNDS = "lifecycle.rounds_share_their_indexes"
FAILED = "lifecycle.a_failed_run_is_closed"
PLACES = "lifecycle.conversation_events_have_their_place"


@fault("ZF-SEQ-01", "ZF-SEQ-02", "ZF-SEQ-03", cases=OPENING)
class NoSessionStart(Dropping):
    """A run does not say that it starts."""

    dropped = "session_start"


@fault("ZF-SEQ-02", "ZF-SEQ-03", "G-ZF-14", cases=f"{OPENING} lifecycle.a_known_conversation_is_introduced_too")
class NoConversationStart(Dropping):
    """The conversation is not introduced."""

    dropped = "conversation_start"


@fault("G-ZF-14", cases="lifecycle.a_known_conversation_is_introduced_too")
class OnlyNewConversations(ZenfluxServer):
    """Only a new conversation is introduced."""

    async def play(self, session: Session) -> Telling:
        is_known = len(session.conversation.messages) > 1 or session.conversation.title != "New conversation"
        async for told in super().play(session):
            if told.type != "conversation_start" or not is_known:
                yield told


@fault("ZF-SEQ-03", cases=OPENING)
class TitleFirst(Editing):
    """A title comes before the message."""

    def edited(self, told: Told) -> Iterator[Told]:
        if told.type == "message_start":
            yield Told("conversation_delta", {"conversation_id": told.data["conversation_id"], "title": "Early"})
        yield told


@fault("ZF-SEQ-04", cases=BLOCKS)
class ThinksAfterwards(ZenfluxServer):
    """A thought comes after the text."""

    async def perform(self, session: Session) -> Telling:
        held: list[Told] = []
        async for told in super().perform(session):
            kind = told.data.get("content_block", {}).get("type")
            if kind == "thinking" or (held and held[-1].type != "content_stop"):
                held.append(told)
                continue
            if told.type == "message_delta":
                for late in held:
                    yield changed(late, index=1)
                held = [Told("content_stop", {})] if held else []
            yield changed(told, index=0) if "index" in told.data and held else told


@fault("ZF-SEQ-04", cases=f"{BLOCKS} {DENSE}")
class IndexesFromOne(Editing):
    """The first block has the index 1."""

    def edited(self, told: Told) -> Iterator[Told]:
        yield changed(told, index=told.data["index"] + 1) if "index" in told.data else told


@fault("ZF-SEQ-04", cases=DENSE)
class IndexesWithGaps(Editing):
    """Every second index is left out."""

    def edited(self, told: Told) -> Iterator[Told]:
        yield changed(told, index=told.data["index"] * 2) if "index" in told.data else told


@fault("ZF-SEQ-05", cases=CLOSING)
class NoUsage(ZenfluxServer):
    """A message ends without message_delta."""

    def closed(self, session: Session, reason: str) -> Iterator[Told]:
        yield Told("message_stop", {})


@fault("ZF-SEQ-05", cases=CLOSING)
class UsageTooLate(ZenfluxServer):
    """message_delta comes after message_stop."""

    def closed(self, session: Session, reason: str) -> Iterator[Told]:
        yield from reversed(list(super().closed(session, reason)))


@fault("ZF-SEQ-06", "ZF-SEQ-07", cases=ON)
class StopsAtTools(ZenfluxServer):
    """After a tool call the run is over."""

    async def use(self, session: Session, move: Use) -> Telling:
        async for told in super().use(session, move):
            yield told
            if told.type == "content_stop":
                break
        raise _Enough

    async def perform(self, session: Session) -> Telling:
        try:
            async for told in super().perform(session):
                yield told
        except _Enough:
            for told in self.closed(session, "tool_use"):
                yield told


class _Enough(Broken):
    """Nothing more is said."""


@fault("ZF-SEQ-07", cases=ON)
class ResultsLast(ZenfluxServer):
    """The text of the second round comes before the result."""

    async def perform(self, session: Session) -> Telling:
        held: list[Told] = []
        async for told in super().perform(session):
            kind = told.data.get("content_block", {}).get("type")
            if kind == "tool_result" or (held and held[-1].type != "content_stop"):
                held.append(told)
                continue
            if told.type == "message_delta":
                for late in held:
                    yield late
                held = []
            yield told


@fault("ZF-SEQ-08", "ZF-SEQ-10", cases=f"{LAST} {SIGNAL}")
class NoEnd(Dropping):
    """A run never says session_end."""

    dropped = "session_end"


@fault("ZF-SEQ-08", cases=LAST)
class WordsAfterTheEnd(Editing):
    """Something follows session_end."""

    def edited(self, told: Told) -> Iterator[Told]:
        yield told
        if told.type == "session_end":
            yield Told("message_delta", {"type": "usage", "content": {"stop_reason": "end_turn"}})


@fault("ZF-SEQ-09", cases=MIXED)
class NotesInBlocks(ZenfluxServer):
    """A note comes in the middle of a block."""

    async def block(self, session: Session, *given: Any) -> Telling:
        async for told in super().block(session, *given):
            yield told
            if told.type == "content_start":
                yield self.note("preface", "By the way.")


@fault("ZF-SEQ-09", cases=MIXED)
class OverlappingBlocks(ZenfluxServer):
    """A block is closed when the next has begun."""

    async def perform(self, session: Session) -> Telling:
        held: list[Told] = []
        async for told in super().perform(session):
            if told.type == "content_stop":
                held.append(told)
                continue
            is_next = told.type == "content_start"
            if is_next:
                yield told
            for late in held:
                yield late
            held = []
            if not is_next:
                yield told


@fault("ZF-SEQ-10", cases=SIGNAL)
class NoMessageStop(Dropping):
    """No message says that it is over."""

    dropped = "message_stop"


@fault("G-ZF-04", cases=ROUNDS)
class IndexesBeginAgain(ZenfluxServer):
    """Each message begins with the index 0."""

    def opened(self, session: Session) -> Told:
        session.index = 0
        return super().opened(session)


@fault("G-ZF-13", cases=FAILED)
class FailsWell(ZenfluxServer):
    """A failed run ends as completed."""

    def end(self, session: Session, status: str) -> Told:
        return super().end(session, "completed")


@fault("G-ZF-13", cases=FAILED)
class BlamesTheNetwork(Editing):
    """A failure of the agent's own is called a network error."""

    def edited(self, told: Told) -> Iterator[Told]:
        is_error = told.type == "error"
        yield changed(told, error={"type": "network_error", "message": "It broke."}) if is_error else told


@fault("G-ZF-15", cases=PLACES)
class ConversationStopsEarly(ZenfluxServer):
    """conversation_stop comes before the message."""

    async def perform(self, session: Session) -> Telling:
        yield Told("conversation_stop", {"conversation_id": session.conversation.id, "final_status": "completed"})
        async for told in super().perform(session):
            yield told
