"""Servers whose histories are not what was said."""

from collections.abc import AsyncIterator
from typing import Any

from conformance.faults.damage import without_nulls
from conformance.faults.fault import fault
from conformance.faults.ledger import Refusal, Session, as_blocks, text_of
from conformance.faults.performer import Performer
from conformance.faults.reference import ReferenceServer
from conformance.faults.telling import Entered, Happening, Returned
from conformance.faults.wire import NewSession, ToolPermission, UserMessage

SAID = "history.what_was_said_is_kept_exactly"
CALLED = "history.calls_and_results_are_kept_exactly"


@fault("AAP-HIST-01", cases="history.only_the_asked_type_is_given")
class BothHistoriesAtOnce(ReferenceServer):
    """Both types are given whichever is asked for."""

    def history(self, session: Session, kind: str) -> dict[str, Any]:
        return super().history(session, "full") | super().history(session, "compacted")


@fault("AAP-HIST-01", cases="history.only_the_asked_type_is_given")
class BareHistory(ReferenceServer):
    """The messages are not under the name of their type."""

    def history(self, session: Session, kind: str) -> dict[str, Any]:
        return {"messages": session.history}


@fault("AAP-HIST-02", cases="history.a_history_must_be_asked_for_rightly")
class AnyHistoryTypeTaken(ReferenceServer):
    """A missing or unknown type is taken for full."""

    def check_history_type(self, session: Session, kind: str) -> None:
        if kind in ("full", "compacted"):
            super().check_history_type(session, kind)


@fault("AAP-HIST-02", cases="history.an_undeclared_history_is_a_404")
class UndeclaredHistoryIs400(ReferenceServer):
    """A type the agent does not declare is a 400."""

    def check_history_type(self, session: Session, kind: str) -> None:
        if kind not in self.declared(session.agent, "history"):
            raise Refusal(400, "no such history")


@fault("AAP-HIST-03", cases=SAID)
class TrimmedMessages(ReferenceServer):
    """Blanks at the ends of a message are lost."""

    def remembered(self, message: UserMessage) -> dict[str, Any]:
        told = super().remembered(message)
        return told | {"content": told["content"].strip()} if isinstance(told["content"], str) else told


@fault("AAP-HIST-03", cases=SAID)
class FlattenedMessages(ReferenceServer):
    """A message of several blocks is kept as one text."""

    def remembered(self, message: UserMessage) -> dict[str, Any]:
        return {"role": "user", "content": text_of(super().remembered(message)["content"])}


@fault("AAP-HIST-03", cases=SAID)
class LastMessagesOnly(ReferenceServer):
    """The full history is cut to its last two messages."""

    def history(self, session: Session, kind: str) -> dict[str, Any]:
        return {kind: session.history[-2:]}


class _Recording(Performer):
    """Writes permissions down as if they were messages."""

    async def decide(self, session: Session, message: ToolPermission) -> AsyncIterator[Happening]:
        name = message.toolCallId
        session.history.append({"role": "tool", "toolCallId": name, "content": "tool_permission granted"})
        async for happening in super().decide(session, message):
            yield happening


@fault("AAP-HIST-03", cases=CALLED)
class PermissionsInHistory(ReferenceServer):
    """Permissions are kept in the history."""

    performer_type = _Recording


class _Forgetting(Performer):
    """Tells results, and does not keep them."""

    async def run(self, session: Session, call: dict[str, Any]) -> AsyncIterator[Happening]:
        result = {"toolCallId": call["toolCallId"], "content": self.result(call)}
        yield Returned(result)
        yield Entered({"role": "tool", **result})


@fault("AAP-HIST-03", cases=CALLED)
class ResultsForgotten(ReferenceServer):
    """Results of server tools are not in the history."""

    performer_type = _Forgetting


class _Mangling(Performer):
    """Keeps only the first block of what a client's tool has found."""

    def receive(self, session: Session, message: dict[str, Any]) -> None:
        content = message["content"]
        super().receive(session, message | {"content": content[:1] if isinstance(content, list) else content})


@fault("AAP-HIST-03", cases="history.a_result_of_blocks_is_kept_exactly")
class ResultsCutToOneBlock(ReferenceServer):
    """Of a client's result in several blocks only the first is kept."""

    performer_type = _Mangling


@fault("AAP-HIST-04", cases="""
    history.a_client_can_resume_from_the_history history.a_permission_can_be_given_from_the_history""")
class OpenCallsHidden(ReferenceServer):
    """Calls appear in the history only once they are answered."""

    def history(self, session: Session, kind: str) -> dict[str, Any]:
        return {kind: session.history[:-1] if session.pending else session.history}


@fault("AAP-HIST-03", cases="history.the_clients_words_are_kept_as_they_were_sent")
class StringsBecomeBlocks(ReferenceServer):
    """A message that came as a string is kept as a block."""

    def remembered(self, message: UserMessage) -> dict[str, Any]:
        told = super().remembered(message)
        return told | {"content": as_blocks(told["content"])}


class _Thrifty(Performer):
    """Clears the results of earlier turns away to save room."""

    def hear(self, session: Session, message: dict[str, Any]) -> None:
        for earlier in session.history:
            if earlier["role"] == "tool":
                earlier["content"] = "[cleared]"
        super().hear(session, message)


@fault("AAP-HIST-03", cases="history.a_history_only_grows")
class EarlierResultsCleared(ReferenceServer):
    """Results of earlier turns are replaced in the full history once the next turn begins."""

    performer_type = _Thrifty


@fault("AAP-HIST-03", cases="history.inputs_come_back_as_they_came")
class NullsLeftOutOfInputs(ReferenceServer):
    """Members of inputs that are null are not kept."""

    def seed_history(self, new: NewSession) -> list[dict[str, Any]]:
        return [without_nulls(message) for message in super().seed_history(new)]


@fault("AAP-HIST-04", cases="history.a_new_session_resumes_from_the_history")
class SeededCallsForgotten(ReferenceServer):
    """Calls that a seeded history leaves open cannot be answered."""

    def left_open(self, session: Session) -> dict[str, dict[str, Any]]:
        return {}
