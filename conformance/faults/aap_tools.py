"""Servers that run, ask for or answer tools wrongly."""

from collections.abc import AsyncIterator
from typing import Any

from conformance.faults.fault import fault
from conformance.faults.ledger import Refusal, Session, text_of
from conformance.faults.performer import Performer
from conformance.faults.reference import ReferenceServer
from conformance.faults.script import SERVER_TOOLS
from conformance.faults.telling import Called, Entered, Happening, Returned, Stopped
from conformance.faults.wire import NewTurn, ToolMessage, ToolPermission, UserMessage

CLIENT = "tools.a_client_tool_is_answered_by_the_client"
GRANTED = "tools.a_granted_tool_is_run_by_the_server"
DENIED = "tools.a_denied_tool_is_not_run"
THREE = "tools.three_kinds_at_once"
IMAGES = "tools.images_are_taken_if_declared"
FORMS = "tools.images_of_another_form_are_refused"
BLOCKS = "tools.results_may_be_text_or_blocks"


class _Forgetful(Performer):
    def receive(self, session: Session, message: dict[str, Any]) -> None:
        session.pending.pop(message["toolCallId"])


@fault("AAP-TOOL-01", cases=CLIENT)
class ClientResultForgotten(ReferenceServer):
    """A client's result is not kept."""

    performer_type = _Forgetful


class _Speechless(Performer):
    def receive(self, session: Session, message: dict[str, Any]) -> None:
        super().receive(session, message)
        session.script.moves[:] = session.script.moves[-1:]


@fault("AAP-TOOL-01", cases=CLIENT)
class SilentAfterResult(ReferenceServer):
    """The agent has nothing to say to a client's result."""

    performer_type = _Speechless


class _Blithe(Performer):
    def stop_reason(self, session: Session, reason: str) -> str:
        return "end_turn" if reason == "tool_use" else reason


@fault("AAP-TOOL-01", "AAP-TOOL-02", "AAP-SSE-07", cases=f"""
    {CLIENT} {GRANTED} streaming.a_tool_use_stop_waits_for_the_client""")
class EndTurnWithOpenCalls(ReferenceServer):
    """A turn with open calls stops with end_turn."""

    performer_type = _Blithe


class _Trusting(Performer):
    def needs_client(self, session: Session, call: dict[str, Any]) -> bool:
        return call["name"] not in SERVER_TOOLS


@fault("AAP-TOOL-02", "AAP-TOOL-03", cases=f"{GRANTED} {DENIED} tools.trust_must_be_given")
class PermissionNeverAsked(ReferenceServer):
    """Server tools run without permission."""

    performer_type = _Trusting


class _Idle(Performer):
    async def decide(self, session: Session, message: ToolPermission) -> AsyncIterator[Happening]:
        call = session.pending.pop(message.toolCallId)
        entry = {"role": "tool", "toolCallId": call["toolCallId"], "content": "granted"}
        session.history.append(entry)
        yield Entered({"role": "assistant", "content": []})


@fault("AAP-TOOL-02", cases=GRANTED)
class GrantedNotRun(ReferenceServer):
    """A granted tool is not run."""

    performer_type = _Idle


class _Deaf(Performer):
    async def decide(self, session: Session, message: ToolPermission) -> AsyncIterator[Happening]:
        async for happening in super().decide(session, message.model_copy(update={"granted": True})):
            yield happening


@fault("AAP-TOOL-02", cases=DENIED)
class DeniedAndRun(ReferenceServer):
    """A denied tool runs all the same."""

    performer_type = _Deaf


class _Discreet(Performer):
    def deny(self, session: Session, call: dict[str, Any], reason: str | None) -> None:
        return None


@fault("AAP-TOOL-02", cases=DENIED)
class DenialForgotten(ReferenceServer):
    """A denial leaves no trace in the history."""

    performer_type = _Discreet


class _Wary(Performer):
    def needs_client(self, session: Session, call: dict[str, Any]) -> bool:
        return True


@fault("AAP-TOOL-03", "AAP-TOOL-04", "AAP-SSE-07", cases=f"""
    tools.a_trusted_tool_runs_inline {THREE} streaming.a_tool_use_stop_waits_for_the_client""")
class TrustIgnored(ReferenceServer):
    """Trusted tools need permission too."""

    performer_type = _Wary


@fault("AAP-TOOL-04", cases=THREE)
class OneAnswerAtATime(ReferenceServer):
    """Several answers in one POST are refused."""

    def check_answers(self, session: Session, turn: NewTurn) -> None:
        super().check_answers(session, turn)
        if len(turn.messages) > 1:
            raise Refusal(400, "one answer at a time")


class _Holding(Performer):
    async def call(self, session: Session, said: list[dict[str, Any]], tools: Any) -> AsyncIterator[Happening]:
        found = [item async for item in super().call(session, said, tools)]
        waits = len([item for item in found if isinstance(item, Called)]) > 1
        for item in found:
            if not (waits and (isinstance(item, Returned) or _is_result(item))):
                yield item


def _is_result(happening: Happening) -> bool:
    return isinstance(happening, Entered) and happening.message["role"] == "tool"


@fault("AAP-TOOL-04", cases=THREE)
class InlineResultHeldBack(ReferenceServer):
    """With parallel calls the trusted one's result is not told."""

    performer_type = _Holding


class _Stepwise(Performer):
    async def go_on(self, session: Session) -> AsyncIterator[Happening]:
        if session.pending or len(session.history) < 3 or session.history[-1]["role"] != "tool":
            async for happening in super().go_on(session):
                yield happening
        else:
            yield Stopped("tool_use")


@fault("AAP-TOOL-04", cases=THREE)
class StopsOnceMore(ReferenceServer):
    """After the answers the turn stops again before it goes on."""

    performer_type = _Stepwise


@fault("AAP-TOOL-04", cases="tools.answers_of_both_kinds_come_in_any_order")
class ResultsBeforePermissions(ReferenceServer):
    """Answers are taken only with the results before the permissions."""

    def check_answers(self, session: Session, turn: NewTurn) -> None:
        super().check_answers(session, turn)
        roles = [message.role for message in turn.messages]
        if roles != sorted(roles):
            raise Refusal(400, "results first")


class _Reasoning(Performer):
    def enter(self, session: Session, said: list[dict[str, Any]]) -> Entered:
        entered = super().enter(session, said)
        for block in entered.message["content"]:
            block["type"] = "reasoning" if block["type"] == "thinking" else block["type"]
        return entered


@fault("AAP-TOOL-05", cases="tools.content_is_made_of_known_blocks")
class ReasoningBlocks(ReferenceServer):
    """Thoughts are blocks of a kind the protocol does not have."""

    performer_type = _Reasoning


class _Nameless(Performer):
    def enter(self, session: Session, said: list[dict[str, Any]]) -> Entered:
        named = [block | {"id": block["toolCallId"]} if "toolCallId" in block else block for block in said]
        kept = [{key: value for key, value in block.items() if key != "toolCallId"} for block in named]
        return super().enter(session, kept)


@fault("AAP-TOOL-05", cases="tools.content_is_made_of_known_blocks")
class CallsByAnotherName(ReferenceServer):
    """tool_use blocks call their id `id`."""

    performer_type = _Nameless


@fault("AAP-TOOL-05", cases=IMAGES)
class AnyImageTaken(ReferenceServer):
    """Images are taken whatever is declared."""

    def check_images(self, session: Session, message: UserMessage) -> None:
        return None


@fault("AAP-TOOL-05", cases=IMAGES)
class NoImageTaken(ReferenceServer):
    """Images are refused whatever is declared."""

    def check_images(self, session: Session, message: UserMessage) -> None:
        if not isinstance(message.content, str) and any(block.type == "image" for block in message.content):
            raise Refusal(400, "no images")


@fault("AAP-TOOL-05", cases=IMAGES)
class ImagesLost(ReferenceServer):
    """Images are taken and not kept."""

    def remembered(self, message: UserMessage) -> dict[str, Any]:
        told = super().remembered(message)
        if isinstance(told["content"], str):
            return told
        return told | {"content": [block for block in told["content"] if block["type"] != "image"]}


@fault("AAP-TOOL-06", cases=BLOCKS)
class BlocksRefused(ReferenceServer):
    """Results must be strings."""

    def check_answers(self, session: Session, turn: NewTurn) -> None:
        super().check_answers(session, turn)
        if any(isinstance(item, ToolMessage) and not isinstance(item.content, str) for item in turn.messages):
            raise Refusal(400, "a result is a string")


class _Flattening(Performer):
    def receive(self, session: Session, message: dict[str, Any]) -> None:
        super().receive(session, message | {"content": text_of(message["content"])})


@fault("AAP-TOOL-06", cases=BLOCKS)
class BlocksFlattened(ReferenceServer):
    """Results in blocks are kept as one string."""

    performer_type = _Flattening


@fault("AAP-TOOL-05", cases=FORMS)
class AnyDataTaken(ReferenceServer):
    """Whatever begins with data: is taken for an image."""

    def check_image(self, url: str) -> None:
        if not url.startswith("data:"):
            super().check_image(url)


@fault("AAP-TOOL-05", cases=FORMS)
class AnyAddressTaken(ReferenceServer):
    """Whatever begins with https:// is taken for an address."""

    def check_image(self, url: str) -> None:
        if not url.startswith("https://"):
            super().check_image(url)
