"""Section history: what was said in the recording is what the histories on it hold."""

from collections.abc import Iterator
from typing import Any

from conformance.aap.agent import HISTORY_TYPES
from conformance.aap.examination import SCHEMAS
from conformance.aap.exchange import blocks, exact, of_messages
from conformance.aap.offline.view import AapView, RecordedTurn, denied
from conformance.kit import expect
from conformance.offline.recording import Exchange, mapping, mappings
from conformance.offline.rule import rule

Found = Iterator[Exchange | str]


@rule("AAP-HIST-01", needs="history that was given")
def only_the_asked_type_is_given(view: AapView) -> Found:
    """A history that is given holds the asked type and no other."""
    for item, _ in view.histories:
        if item.status == 200:
            yield item
            SCHEMAS.fit("history", item.reply.json(), f"the answer to {item.asked}")
            expect.equal("the types in the answer", [item.param("type")], sorted(item.json["history"]))


@rule("AAP-HIST-05", needs="history of a known session that was asked for without a known type")
def a_history_must_be_asked_for_rightly(view: AapView) -> Found:
    """No type, or an unknown one, is a 400."""
    for item, session in view.histories:
        is_there = session in view.created and not view.deleted_before(session, item.ended)
        if is_there and item.param("type") not in HISTORY_TYPES and not denied(item):
            yield item
            expect.status(item.reply, 400)


@rule("AAP-HIST-02", needs="refused history of a known type")
def an_undeclared_history_is_a_404(view: AapView) -> Found:
    """A type the agent does not declare, and whatever is not there, is a 404."""
    for item, session in view.histories:
        kind, agent = item.param("type"), view.agent_of(session)
        is_undeclared = agent is not None and kind not in agent.history_types
        if kind in HISTORY_TYPES and not denied(item) and (is_undeclared or item.is_refused):
            yield item
            expect.status(item.reply, 404)


@rule("AAP-HIST-03", needs="full history of a session whose turns are all in the recording, in the mode none")
def what_was_said_is_kept_exactly(view: AapView) -> Found:
    """The full history is what was posted and answered, in order and to the letter."""
    for item, session, kept in view.full:
        told = _told(view, session, item)
        if told is not None:
            users = [message for message in exact(kept) if message["role"] == "user"]
            if len(users) > sum(message["role"] == "user" for message in exact(told)):
                continue  # somebody else has spoken, or what was refused is kept, which another rule judges
            yield item
            if leaves_out(told, kept):
                expect.fail("turns in the mode none to tell all that the history has", exact(told), "AAP-NONE-01")
            expect.equal("the full history", exact(told), exact(kept))


def leaves_out(told: list[Any], kept: list[Any]) -> bool:
    """Whether what was told lacks something of the agent's that is kept, and has nothing else that is not."""
    said, there = of_messages(told).said, iter(of_messages(kept).said)
    return said != of_messages(kept).said and all(any(item == other for other in there) for item in said)


def _told(view: AapView, session: str, item: Exchange) -> list[Any] | None:
    """All that was said in the session before this moment, if the recording shows it exactly."""
    made = view.created.get(session)
    before = [turn for turn in view.turns_of(session) if turn.exchange.order < item.ended and turn.is_accepted]
    is_known = all(_is_exact(turn, item) and _is_plain(turn) and not abandons(view, turn) for turn in before)
    if made is None or not before or not is_known:
        return None
    said = list(mappings(made.sent.get("messages")))
    for turn in before:
        said += [message for message in turn.messages if message.get("role") != "tool_permission"]
        said += turn.exchange.json["messages"]
    return said


def _is_exact(turn: RecordedTurn, item: Exchange) -> bool:
    """Whether a turn is over, told in messages, and adds nothing of its own (a denial does) to the history."""
    is_denial = any(message.get("granted") is False for message in turn.messages)
    is_told = turn.told is not None and turn.mode == "none" and turn.told.stop != "error"
    return is_told and not is_denial and turn.exchange.ended < item.order


def _is_plain(turn: RecordedTurn) -> bool:
    """Whether what the client sent is what the protocol lets it send: what becomes of the rest is up to the server."""
    sent = [{name: value for name, value in message.items() if name != "granted"} for message in turn.messages]
    kept = [message for message in sent if message.get("role") != "tool_permission"]
    return not SCHEMAS.problems("history", {"history": {"full": kept}})


def abandons(view: AapView, turn: RecordedTurn) -> bool:
    """Whether the user spoke while calls were open: what the history then has as their results is up to the server."""
    return turn.roles == {"user"} and bool(view.pending(turn))


@rule("AAP-HIST-03", needs="full history")
def permissions_are_not_kept(view: AapView) -> Found:
    """No tool_permission message is in a history."""
    for item, _ in view.histories:
        if item.status == 200 and item.param("type") == "full":
            yield item
            kept = mappings(mapping(mapping(item.json).get("history")).get("full"))
            expect.that("tool_permission" not in [it.get("role") for it in kept], "no tool_permission in it", kept)


@rule("AAP-HIST-04", needs="full history of a session whose turn had stopped with tool_use")
def open_calls_end_the_history(view: AapView) -> Found:
    """After a tool_use stop the history ends with the calls that are open, with their ids, names and inputs."""
    for turn, told in view.told:
        kept = view.kept(turn) if told.stop == "tool_use" and told.open_calls else None
        if kept is not None:
            yield turn.exchange
            expect.that(bool(kept), "the turn in the history", kept)
            found = [dict(block) for it in kept if it["role"] == "assistant" for block in blocks(it["content"])]
            calls = {block["toolCallId"]: block for block in found if block["type"] == "tool_use"}
            for call in told.open_calls:
                same = {name: calls.get(call["toolCallId"], {}).get(name) for name in call}
                expect.equal("the open call in the history", call, same)
            answered = {it.get("toolCallId") for it in kept if it["role"] == "tool"}
            expect.that(bool(set(calls) - answered), "a call without a result at the end of the history", kept[-1])
