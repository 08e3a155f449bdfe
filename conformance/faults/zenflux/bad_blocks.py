"""Servers whose blocks begin, grow or are kept wrongly."""

from collections.abc import Iterator
from typing import Any

from conformance.faults.fault import fault
from conformance.faults.zenflux.agent import Use
from conformance.faults.zenflux.editing import Editing, changed
from conformance.faults.zenflux.memory import Body, Session
from conformance.faults.zenflux.player import Telling, Told
from conformance.faults.zenflux.server import ZenfluxServer

INDEX = "blocks.blocks_open_and_close_by_index"
CALL = "blocks.a_call_begins_with_its_name"
RESULT = "blocks.a_result_names_its_call"
DELTAS = "blocks.deltas_are_plain_strings"
JSON = "blocks.the_deltas_of_a_call_form_json"
KEPT = "types.kept_blocks_have_their_members"


class _Starting(Editing):
    """Changes how blocks of one kind begin."""

    kind = ""

    def begun(self, block: Body) -> Body:
        raise NotImplementedError

    def edited(self, told: Told) -> Iterator[Told]:
        block = told.data.get("content_block", {})
        yield changed(told, content_block=self.begun(block)) if block.get("type") == self.kind else told


@fault("ZF-EV-24", "ZF-EV-34", cases=INDEX)
class FlatBlocks(Editing):
    """content_start is the block itself."""

    def edited(self, told: Told) -> Iterator[Told]:
        is_start = told.type == "content_start"
        yield Told(told.type, {"index": told.data["index"], **told.data["content_block"]}) if is_start else told


@fault("ZF-EV-34", cases=INDEX)
class ClosesTheFirst(Editing):
    """content_stop always has the index 0."""

    def edited(self, told: Told) -> Iterator[Told]:
        yield changed(told, index=0) if told.type == "content_stop" else told


@fault("ZF-EV-25", cases="blocks.a_text_begins_empty")
class TextAtOnce(_Starting):
    """A text block begins with text."""

    kind = "text"

    def begun(self, block: Body) -> Body:
        return block | {"text": "Well: "}


@fault("ZF-EV-26", cases="blocks.a_thought_begins_empty")
class ThoughtAsText(_Starting):
    """A thinking block has its thought in `text`."""

    kind = "thinking"

    def begun(self, block: Body) -> Body:
        return {"type": "thinking", "text": ""}


@fault("ZF-EV-27", "ZF-EV-29", cases=CALL)
class CallWithoutInput(_Starting):
    """A tool_use block has no input."""

    kind = "tool_use"

    def begun(self, block: Body) -> Body:
        return {name: value for name, value in block.items() if name != "input"}


@fault("ZF-EV-29", cases=CALL)
class ServerCallWithoutName(_Starting):
    """A server_tool_use block has no name."""

    kind = "tool_use"

    def begun(self, block: Body) -> Body:
        return {"type": "server_tool_use", "id": block["id"], "input": {}}


@fault("ZF-EV-27", cases=CALL)
class OneIdForAll(_Starting):
    """All calls have the same id."""

    kind = "tool_use"

    def begun(self, block: Body) -> Body:
        return block | {"id": "toolu_1"}


@fault("ZF-EV-28", "ZF-SEQ-07", cases=f"{RESULT} lifecycle.the_agent_goes_on_after_a_tool")
class ResultOfAnother(_Starting):
    """A tool_result names a call nobody made."""

    kind = "tool_result"

    def begun(self, block: Body) -> Body:
        return block | {"tool_use_id": "toolu_0"}


@fault("ZF-EV-28", cases=RESULT)
class ResultWithoutError(_Starting):
    """A tool_result does not say whether it is an error."""

    kind = "tool_result"

    def begun(self, block: Body) -> Body:
        return {name: value for name, value in block.items() if name != "is_error"}


@fault("ZF-EV-30", "ZF-EV-31", cases=DELTAS)
class TypedDeltas(Editing):
    """A delta is an object with a type."""

    def edited(self, told: Told) -> Iterator[Told]:
        is_delta = told.type == "content_delta"
        yield changed(told, delta={"type": "text_delta", "text": told.data["delta"]}) if is_delta else told

    def throttled(self, telling: Telling) -> Telling:
        return telling


@fault("ZF-EV-30", cases=DELTAS)
class StrayDeltas(Editing):
    """A delta belongs to a block that never began."""

    def edited(self, told: Told) -> Iterator[Told]:
        if told.type == "content_stop":
            yield Told("content_delta", {"index": told.data["index"] + 40, "delta": "?"})
        yield told


@fault("ZF-EV-31", cases=DELTAS)
class WholeTextsAgain(ZenfluxServer):
    """In a stream each delta repeats what was said before."""

    async def forwarded(self, session: Session) -> Telling:
        said = ""
        async for told in super().forwarded(session):
            said = said + told.data["delta"] if told.type == "content_delta" else ""
            yield changed(told, delta=said) if said else told


@fault("ZF-EV-33", cases=JSON)
class InputInPython(Editing):
    """The deltas of a call are not JSON."""

    def edited(self, told: Told) -> Iterator[Told]:
        is_delta = told.type == "content_delta"
        yield changed(told, delta=told.data["delta"].replace('"', "'")) if is_delta else told


@fault("ZF-EV-33", cases=JSON)
class InputForgotten(ZenfluxServer):
    """The conversation does not keep the input of a call."""

    async def use(self, session: Session, move: Use) -> Telling:
        async for told in super().use(session, move):
            session.blocks = [block | ({"input": {}} if "input" in block else {}) for block in session.blocks]
            yield told


@fault("G-ZF-17", cases="blocks.streams_are_not_throttled")
class ThrottledStreams(ZenfluxServer):
    """Streams are throttled as the socket is."""

    def forwarded(self, session: Session) -> Telling:
        return self.throttled(super().forwarded(session))


class _Keeping(ZenfluxServer):
    """Changes what is kept of a reply."""

    def kept(self, block: Body) -> Body:
        raise NotImplementedError

    def finish(self, session: Session, status: str) -> None:
        session.blocks = [self.kept(block) for block in session.blocks]
        super().finish(session, status)


@fault("ZF-TYPE-01", cases=KEPT)
class UnsignedThoughts(_Keeping):
    """Kept thoughts have no signature."""

    def kept(self, block: Body) -> Body:
        return {name: value for name, value in block.items() if name != "signature"}


@fault("ZF-TYPE-01", cases=KEPT)
class ImagesByUrl(_Keeping):
    """Kept images have an address instead of a source."""

    def kept(self, block: Body) -> Body:
        return {"type": "image", "url": "https://example.com/x.png"} if block["type"] == "image" else block


@fault("ZF-TYPE-01", cases=KEPT)
class OnlyTextKept(ZenfluxServer):
    """Only the text of a reply is kept."""

    def finish(self, session: Session, status: str) -> None:
        session.blocks = [block for block in session.blocks if block["type"] == "text"]
        super().finish(session, status)


@fault("ZF-TYPE-06", cases="types.messages_have_their_members")
class MessagesWithoutStatus(ZenfluxServer):
    """Kept messages have no status."""

    def page(self, *given: Any) -> Body:
        page = super().page(*given)
        kept = [{name: value for name, value in item.items() if name != "status"} for item in page["messages"]]
        return page | {"messages": kept}


@fault("ZF-TYPE-06", cases="types.messages_have_their_members")
class UserForgotten(ZenfluxServer):
    """What the user said is not kept."""

    def begin(self, params: Body, has_rounds: bool) -> Session:
        session = super().begin(params, has_rounds)
        session.conversation.messages.pop()
        return session
