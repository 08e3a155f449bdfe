"""Section turns: what was posted, what was refused, and one turn at a time."""

import re
from collections.abc import Iterator
from typing import Any

from conformance.aap.agent import MODES
from conformance.aap.examination import SCHEMAS
from conformance.aap.offline.view import AapView, RecordedTurn, denied
from conformance.aap.turn import STREAMED
from conformance.kit import expect
from conformance.offline.recording import Exchange, mapping
from conformance.offline.rule import rule

Found = Iterator[Exchange | str]
ROLES = {"user", "tool", "tool_permission"}
OVER = "turn_stop"
KNOWN = re.compile(
    r"GET /(meta|sessions|sessions/[^/]+(/history)?)/?|POST /sessions(/[^/]+/turns)?/?|DELETE /sessions/[^/]+/?"
)
OF_PROXIES = (407, 413, 431, 502, 503, 504)


@rule("AAP-TURN-01", needs="accepted turn")
def a_turn_is_answered_in_its_mode(view: AapView) -> Found:
    """delta and message are answered with an event stream, none and nothing said with JSON."""
    for turn in view.turns:
        if turn.is_accepted and turn.mode in MODES:
            yield turn.exchange
            wanted = "text/event-stream" if turn.mode in STREAMED else "application/json"
            expect.equal(f"the content type in the mode {turn.mode}", wanted, turn.exchange.content_type)


@rule("AAP-TURN-05", needs="turn in an unknown mode")
def a_turn_needs_a_known_mode(view: AapView) -> Found:
    """An unknown mode, or one that the agent does not declare, is a 4xx."""
    for turn in view.turns:
        is_there = not view.deleted_before(turn.session, turn.exchange.order) and not denied(turn.exchange)
        sent = turn.exchange.sent
        if is_there and isinstance(sent, dict) and sent.get("stream", "none") not in _modes(view, turn):
            yield turn.exchange
            expect.refused(turn.exchange.reply, "the agent does not declare this mode")


@rule("AAP-TURN-02", needs="turn with one message of text, in a session where nothing else was going on")
def right_messages_are_taken(view: AapView) -> Found:
    """One user message of text, in a declared mode, is taken where no turn runs and no call is open."""
    for turn in view.turns:
        item, sent = turn.exchange, mapping(turn.exchange.sent)
        is_known = turn.session in view.created and view.agent_of(turn.session) is not None
        is_text = turn.roles == {"user"} and [type(message.get("content")) for message in turn.messages] == [str]
        is_bare = set(sent) <= {"messages", "stream"} and turn.mode in _modes(view, turn)
        if not (is_known and is_text and is_bare) or denied(item) or view.leaves_before(turn.session, item.ended):
            continue
        if turn.is_accepted or (view.pending(turn) == [] and view.quiet(turn.session, item.order, item.ended)):
            yield item
            expect.status(item.reply, 200)


def _modes(view: AapView, turn: RecordedTurn) -> tuple[str, ...]:
    agent = view.agent_of(turn.session)
    return agent.modes if agent is not None else MODES


def _problem(view: AapView, turn: RecordedTurn) -> str | None:
    """What is wrong with the messages of a turn, if anything."""
    messages: Any = mapping(turn.exchange.sent).get("messages")
    if not isinstance(messages, list) or not messages:
        return "there are no messages"
    roles = [item.get("role") if isinstance(item, dict) else None for item in messages]
    if not set(roles) <= ROLES:
        return "a message has a role that a client cannot have"
    if "user" in roles and len(roles) > 1:
        return "a turn takes one user message, or answers"
    pending = view.pending(turn)
    answers = {item.get("toolCallId") for item in turn.messages if item.get("role") != "user"}
    if answers and pending is not None and answers - {call["toolCallId"] for call in pending}:
        return "it answers a call that is not pending"
    return None


@rule("AAP-TURN-06", needs="turn with wrong messages")
def wrong_messages_are_refused(view: AapView) -> Found:
    """No messages, a strange role, several user messages, or an answer to a call that is not pending: a 4xx."""
    for turn in view.turns:
        is_object = isinstance(turn.exchange.sent, dict) and not denied(turn.exchange)
        problem = _problem(view, turn) if is_object else None
        if problem is not None:
            yield turn.exchange
            expect.refused(turn.exchange.reply, problem)


@rule("AAP-TURN-06", needs="history before and after a turn that was refused")
def a_refused_turn_changes_nothing(view: AapView) -> Found:
    """Between two looks at the full history, with nothing but refusals between them, it does not change."""
    last: dict[str, tuple[Exchange, Any]] = {}
    for item, session, kept in view.full:
        before = last.get(session)
        if before is not None and view.quiet(session, before[0].order, item.ended):
            refused = [it.exchange for it in view.turns_of(session) if it.exchange.is_refused]
            if any(before[0].ended < it.order and it.ended < item.order for it in refused):
                yield item
                expect.equal("the history after a refusal", before[1], kept)
        last[session] = (item, kept)


@rule("AAP-TURN-04", needs="turn that was posted while another one of its session ran")
def one_turn_at_a_time(view: AapView) -> Found:
    """While a turn runs another is refused with 409, and the first comes to its end."""
    for turn in view.turns:
        item = turn.exchange
        for other in view.turns_of(turn.session):
            if other.is_accepted and other is not turn and _spans(other, item) and not denied(item):
                yield item
                expect.status(item.reply, 409)
                names = [told.event.event for told in other.exchange.events]
                is_whole = other.exchange.is_whole
                expect.that(not is_whole or names[-1:] == [OVER], "the first turn to come to its end", names[-3:])


def _spans(turn: RecordedTurn, item: Exchange) -> bool:
    """Whether the turn was told before the other request and went on after its answer."""
    orders = [told.order for told in turn.exchange.events if told.event.event != OVER]
    return bool(orders) and orders[0] < item.order and orders[-1] > item.answered > 0


@rule("AAP-ERR-01", needs="request that was refused")
def refusals_are_said_in_words(view: AapView) -> Found:
    """Every 4xx and 5xx has a JSON body {error} that says in words what is wrong.

    What the protocol does not know, and what a proxy answers in the server's place, is nobody's matter here.
    """
    for item in view.recording.exchanges:
        is_known = KNOWN.fullmatch(f"{item.method} {item.path}") is not None
        if (item.status or 0) >= 400 and item.is_whole and is_known and item.status not in OF_PROXIES:
            yield item
            SCHEMAS.fit("error", item.reply.json(), f"the body of the refusal of {item.asked}")


@rule("AAP-SESS-06", needs="turn that brings two tools of one name")
def a_turn_cannot_bring_a_clash(view: AapView) -> Found:
    """A turn whose tools clash with each other or with those enabled is refused."""
    for turn in view.turns:
        setup = view.setup(turn.session, turn.exchange.order - 1)
        if setup is None or denied(turn.exchange) or not isinstance(turn.exchange.sent, dict):
            continue
        setup.change(turn.exchange.sent)
        names = [*setup.tools, *(str(tool.get("name")) for tool in setup.client_tools)]
        if len(set(names)) < len(names):
            yield turn.exchange
            expect.refused(turn.exchange.reply, "two tools have one name")


@rule("AAP-ERR-01", needs="list of sessions that was refused")
def a_list_is_refused_for_who_asks(view: AapView) -> Found:
    """GET /sessions is refused with 400 for its cursor, or with a status that is about who asks, and no other."""
    for item in view.lists:
        if item.is_refused:
            yield item
            for_cursor = (404, 410) if item.param("after") is not None else ()
            expect.that(item.status in (400, 401, 403, 422, 429, *for_cursor), "a matching status", item.reply.told)


@rule("AAP-ERR-01", needs="request whose body is not a JSON object")
def malformed_bodies_are_the_clients_error(view: AapView) -> Found:
    """A body that is not a JSON object is a 4xx."""
    posted = [*view.creations, *(turn.exchange for turn in view.turns)]
    for item in posted:
        if not isinstance(item.sent, dict) and not item.is_short:
            yield item
            expect.refused(item.reply, "the body is not a JSON object")
