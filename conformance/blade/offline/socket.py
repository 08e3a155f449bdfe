"""Section socket: the transport, who hears what, and the events beside a chat's own."""

from collections.abc import Iterator
from typing import Any

from conformance.blade.chat import EVENTS
from conformance.blade.offline.packets import Link, Packet
from conformance.blade.offline.view import BladeView
from conformance.blade.schema_owners import SCHEMAS
from conformance.blade.socket import OTHERS
from conformance.kit import expect
from conformance.offline.recording import Exchange
from conformance.offline.rule import rule

Found = Iterator[Exchange | str]


def _session(packet: Packet) -> str | None:
    return packet.body.get("session_id") if isinstance(packet.body, dict) else None


@rule("BL-WS-01", needs="connection")
def packets_are_engine_io_4(view: BladeView) -> Found:
    """The handshake is an open packet with sid and ping times, and CONNECT is answered in the default namespace."""
    for link in view.links:
        if link.opened is not None:
            yield link.exchange
            expect.equal("the version asked for", "4", link.exchange.param("EIO") or "4")
            expect.subset("the open packet", {"sid", "upgrades", "pingInterval", "pingTimeout"}, link.opened)
            connected = [it for it in link.packets if it.kind == "0" and not it.is_sent]
            for packet in connected:
                is_right = isinstance(packet.body, dict) and "sid" in packet.body
                expect.that(is_right, "40 with a sid", packet.body)


@rule("BL-WS-02", needs="CONNECT without a token, beside others with one")
def a_connection_needs_a_token(view: BladeView) -> Found:
    """A CONNECT without a token is refused where others bring one."""
    sent = [(link, it) for link in view.links for it in link.packets if it.is_sent and it.kind == "0"]
    has_tokens = any(isinstance(it.body, dict) and it.body.get("token") for _, it in sent)
    for link, packet in sent:
        token = packet.body.get("token") if isinstance(packet.body, dict) else None
        answers = [it for it in link.packets if not it.is_sent and it.kind in "04" and it.order >= packet.order]
        if has_tokens and not isinstance(token, str) and answers:
            yield packet.place
            expect.equal("the answer to CONNECT", "4", answers[0].kind)


def _subscribed(link: Link, session: str, order: int) -> bool:
    """Whether the connection had asked to hear the session by then, or had sent something to it."""
    names = ("session:subscribe", "chat:send")
    on = [it.order for it in link.sent(*names) if _session(it) == session and it.order < order]
    off = [it.order for it in link.sent("session:unsubscribe") if _session(it) == session and it.order < order]
    return bool(on) and (not off or max(on) > max(off) or _is_unanswered(link, max(off), order))


def _is_unanswered(link: Link, off: int, order: int) -> bool:
    """What was on its way when the connection unsubscribed may still come."""
    packet = next(it for it in link.sent("session:unsubscribe") if it.order == off)
    ack = link.acknowledgement(packet)
    return ack is None or order < ack.order


@rule("BL-WS-03", "BL-WS-04", needs="event of a chat")
def only_subscribers_hear_a_chat(view: BladeView) -> Found:
    """A connection hears the chats of sessions it subscribed to or sent to, and of no others."""
    for link in view.links:
        for packet in link.heard(*EVENTS):
            session = _session(packet)
            if session is not None:
                yield packet.place
                names = [it.name for it in link.sent("session:unsubscribe") if it.order < packet.order]
                owner = "BL-WS-04" if names else "BL-WS-03"
                expect.that(_subscribed(link, session, packet.order), "a subscription to the session", session, owner)


@rule("BL-WS-03", needs="chat that several connections heard")
def subscribers_hear_the_same(view: BladeView) -> Found:
    """Every subscriber hears the same events in the same order."""
    heard: dict[tuple[str, str], Any] = {}
    for spoken in view.whole:
        turns = [turn.turn_id for turn in spoken.chat.turns]
        key = (spoken.session, turns[0] if turns else "")
        if key in heard:
            yield spoken.place
            expect.equal("what the other subscriber heard", heard[key], spoken.chat.events)
        heard.setdefault(key, spoken.chat.events)


@rule("BL-WS-04", needs="session:unsubscribe, and a later chat")
def who_unsubscribes_hears_no_more(view: BladeView) -> Found:
    """After session:unsubscribe a connection hears nothing of the session."""
    for link in view.links:
        for packet in link.sent("session:unsubscribe"):
            later = [it for it in link.heard(*EVENTS) if it.order > packet.order]
            if later:
                yield packet.place
                mine = [it for it in later if _session(it) == _session(packet)]
                lost = [it for it in mine if not _subscribed(link, str(_session(packet)), it.order)]
                expect.equal("events after session:unsubscribe", [], [it.name for it in lost])


@rule("BL-WS-05", needs="chat:send with parts, or with unused fields")
def messages_may_be_parts(view: BladeView) -> Found:
    """A message in parts is in the user's turn; fields that are null do no harm."""
    for spoken in view.whole:
        message = spoken.asked.get("message")
        parts = [it for it in message if isinstance(it, dict)] if isinstance(message, list) else []
        words = [str(it.get("text")) for it in parts if it.get("type") == "text"]
        if words or any(value is None for value in spoken.asked.values()):
            yield spoken.place
            said = "".join(str(it.get("content")) for turn in spoken.chat.users for it in turn.final["blocks"])
            expect.that(all(word in said for word in words), "the text of the parts in the user's turn", said)


@rule("BL-WS-07", needs="chat:compact that was acknowledged")
def a_compaction_is_acknowledged(view: BladeView) -> Found:
    """chat:compact is acknowledged with a status; once it is ok, the history shows the summary."""
    for link in view.links:
        for packet in link.sent("chat:compact"):
            ack = link.acknowledgement(packet)
            if ack is None:
                continue
            yield packet.place
            SCHEMAS.fit("ack.compact", ack.body, "the acknowledgement of chat:compact")
            found = view.history(str(_session(packet)), ack.order)
            if ack.body["status"] == "ok" and found is not None:
                kinds = [turn["kind"] for turn in found[1]]
                expect.that("compaction" in kinds, "a turn of the kind compaction in the history", kinds)


@rule("BL-WS-08", needs="chat:end")
def a_chat_end_says_how_it_ended(view: BladeView) -> Found:
    """chat:end has its members; without headless there is no result."""
    for spoken in view.spoken:
        if spoken.packets[-1].name == "chat:end":
            yield spoken.place
            SCHEMAS.fit("event.chat-end.full", spoken.packets[-1].body, "chat:end")
            resumed = view.earlier(spoken) if spoken.is_answer else []
            if spoken.asked and not any(it.asked.get("headless") for it in (spoken, *resumed)):
                expect.equal("result without headless", None, spoken.packets[-1].body["result"])


@rule("BL-WS-09", needs="event beside the chats")
def other_events_are_complete(view: BladeView) -> Found:
    """session:updated, workspace:files_changed, system:error and system:notification have their members."""
    for _, packet in view.heard:
        schema = f"event.{packet.name.replace(':', '-')}"
        if schema in OTHERS:
            yield packet.place
            SCHEMAS.fit(schema, packet.body, f"the event {packet.name}")


@rule("BL-WS-10", needs="chat in the mode planning")
def planning_calls_no_tools(view: BladeView) -> Found:
    """In the mode planning the agent calls no tools."""
    for spoken in view.whole:
        if spoken.asked.get("mode") == "planning":
            yield spoken.place
            expect.equal("calls while planning", [], [call["tool_name"] for call in spoken.chat.calls])


@rule("BL-GAP-22", needs="chat:stop that was acknowledged")
def a_stop_is_acknowledged(view: BladeView) -> Found:
    """chat:stop is acknowledged with a status."""
    for link in view.links:
        for packet in link.sent("chat:stop"):
            ack = link.acknowledgement(packet)
            if ack is not None:
                yield packet.place
                SCHEMAS.fit("ack.stop", ack.body, "the acknowledgement of chat:stop")
