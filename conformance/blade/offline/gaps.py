"""Section gap: what the specification leaves open, settled as most clients expect it."""

from collections.abc import Iterator

from conformance.blade.chat import ASK
from conformance.blade.offline.view import BladeView
from conformance.blade.schema_owners import SCHEMAS, expect_shape
from conformance.blade.snapshot import read
from conformance.kit import expect
from conformance.offline.recording import Exchange, mapping
from conformance.offline.rule import rule

Found = Iterator[Exchange | str]


@rule("BL-GAP-02", needs="chat on a connection that never subscribed")
def who_sends_hears(view: BladeView) -> Found:
    """A connection that never subscribed hears the chat it starts, to its end."""
    for link in view.links:
        named = [it.body.get("session_id") for it in link.sent("session:subscribe") if isinstance(it.body, dict)]
        for spoken in view.spoken:
            if spoken.link is link and spoken.session not in named and link.sent("chat:send"):
                yield spoken.place
                names = [it.name for it in spoken.packets]
                is_cut = link.packets[-1].order == spoken.packets[-1].order
                expect.that(names[-1] == "chat:end" or is_cut, "chat:end", names[-1])


@rule("BL-GAP-03", needs="chat:send without session_id or message")
def incomplete_messages_are_refused_in_words(view: BladeView) -> Found:
    """Without session_id or without message: a system:error that names no session, and no chat."""
    for link, packet in view.sends:
        body = packet.body if isinstance(packet.body, dict) else {}
        is_incomplete = not body.get("session_id") or not (body.get("message") or body.get("askuser_answer"))
        later = [it for it in link.heard("chat:start", "system:error") if it.order > packet.order]
        if isinstance(packet.body, dict) and is_incomplete and later:
            yield packet.place
            expect.equal("what came of it", "system:error", later[0].name)
            SCHEMAS.fit("event.system-error", later[0].body, "system:error")
            expect.equal("the session_id of the error", None, later[0].body.get("session_id"))


@rule("BL-GAP-05", needs="chat that ended with a question")
def a_pause_is_named(view: BladeView) -> Found:
    """chat:end has pause_tool builtin:AskUserQuestion and pause_tool_data with the call and its arguments."""
    for spoken in view.completed:
        asked = [call for call in spoken.chat.calls if call["tool_name"] == ASK]
        if asked:
            yield spoken.place
            end = spoken.chat.end
            expect.equal("pause_tool", f"builtin:{ASK}", end.get("pause_tool"))
            data = end.get("pause_tool_data") or {}
            expect.equal("tool_call_id", asked[-1]["id"], data.get("tool_call_id"))
            told = read(asked[-1]["arguments"])
            wanted = told.get("questions") if isinstance(told, dict) else None
            expect.equal("questions", wanted, (data.get("arguments") or {}).get("questions"))


@rule("BL-GAP-10", needs="chat")
def every_event_names_its_session(view: BladeView) -> Found:
    """turn:start is complete, and every event of the flow has the session_id."""
    for spoken in view.whole:
        yield spoken.place
        for name, body in spoken.chat.events:
            expect.equal(f"the session_id of {name}", spoken.session, body.get("session_id"))
        for turn in spoken.chat.turns:
            if turn.start is not None:
                expect_shape("event.turn-start.full", turn.start, f"turn:start of {turn.turn_id}")


@rule("BL-GAP-14", needs="chat that an answer started, with the messages right after it")
def an_answer_is_kept(view: BladeView) -> Found:
    """The messages show the answer as the user's, and the question as done."""
    for spoken in view.completed:
        found = view.history(spoken.session, spoken.end) if spoken.is_answer else None
        if found is None:
            continue
        yield spoken.place
        name = spoken.asked["askuser_answer"].get("tool_call_id")
        blocks = [it for turn in found[1] for it in turn["blocks"] if it["type"] == "ask_user_answer"]
        mine = [it for it in blocks if (it.get("content") or {}).get("tool_call_id") == name]
        expect.that(len(mine) == 1, "one ask_user_answer block", blocks)
        statuses = [call["status"] for turn in found[1] for call in turn["tool_calls"] if call["id"] == name]
        expect.that(statuses in ([], ["done"]), "the question to be done", statuses)


@rule("BL-GAP-15", needs="wrong answer to a question")
def a_wrong_answer_is_refused_in_words(view: BladeView) -> Found:
    """An answer to a call that nobody made is refused with a system:error that names the session."""
    known = {call["id"] for spoken in view.whole for call in spoken.chat.calls}
    for link, packet in view.sends:
        body = packet.body if isinstance(packet.body, dict) else {}
        answer = body.get("askuser_answer")
        later = [it for it in link.heard("chat:start", "system:error") if it.order > packet.order]
        if isinstance(answer, dict) and answer.get("tool_call_id") not in known and later:
            yield packet.place
            expect.equal("what came of it", "system:error", later[0].name)
            expect.equal("the session_id of the error", body.get("session_id"), later[0].body.get("session_id"))


@rule("BL-GAP-16", needs="message while a question was open, with the messages right after it")
def a_message_passes_over_a_question(view: BladeView) -> Found:
    """An ordinary message while a question is open cancels the question."""
    for spoken in view.completed:
        before = view.earlier(spoken)
        asked = [call["id"] for it in before[-1:] for call in it.chat.calls if call["tool_name"] == ASK]
        found = view.history(spoken.session, spoken.end) if asked and not spoken.is_answer else None
        if found is not None and before[-1].chat.end.get("pause_tool"):
            yield spoken.place
            kept = {call["id"]: call["status"] for turn in found[1] for call in turn["tool_calls"]}
            expect.equal("the status of the question", "cancelled", kept.get(asked[-1]))


@rule("BL-GAP-17", needs="message while a chat ran")
def a_busy_session_refuses(view: BladeView) -> Found:
    """A second message is refused with a system:error to its sender, and the running chat is not disturbed."""
    for spoken in view.whole:
        patches = [it.order for it in spoken.packets if it.name == "turn:patch"]
        for link, packet in view.sends:
            is_here = isinstance(packet.body, dict) and packet.body.get("session_id") == spoken.session
            if is_here and patches and patches[0] < packet.order < patches[-1]:
                errors = [it for it in link.heard("system:error") if packet.order < it.order]
                later = [it for it in link.heard() if it.order > spoken.end]
                if errors or later:
                    yield packet.place
                    expect.that(bool(errors), "a system:error", [it.name for it in later[:3]])
                    expect.equal("the session_id of the error", spoken.session, errors[0].body.get("session_id"))


@rule("BL-GAP-30", needs="event with a stream_sequence after another subscription of a connection")
def a_subscription_is_live(view: BladeView) -> Found:
    """A connection that subscribes again without resume is told nothing that it was told before."""
    for link in view.links:
        asked = [(it.order, mapping(it.body)) for it in link.sent("session:subscribe")]
        heard = [(it, mapping(it.body)) for it in link.heard() if "stream_sequence" in mapping(it.body)]
        for order, wanted in asked:
            same = [(it, body) for it, body in heard if body.get("session_id") == wanted.get("session_id")]
            mine = [(it, body["stream_sequence"]) for it, body in same]
            before = {number for it, number in mine if it.order < order}
            after = [(it, number) for it, number in mine if it.order > order]
            if before and after and not any(body.get("resume") for _, body in asked):
                yield after[0][0].place
                expect.equal("events that were told before", [], [number for _, number in after if number in before])


@rule("BL-GAP-31", needs="chat:send that was acknowledged")
def runs_are_acknowledged(view: BladeView) -> Found:
    """chat:send is acknowledged with a chat_run_id, and the chat:end that follows repeats it."""
    for link, packet in view.sends:
        ack = link.acknowledgement(packet)
        if ack is not None and isinstance(ack.body, dict) and ack.body.get("status") != "error":
            ends = [it for it in link.heard("chat:end") if it.order > packet.order]
            mine = [it for it in ends if isinstance(packet.body, dict) and isinstance(it.body, dict)]
            mine = [it for it in mine if it.body.get("session_id") == packet.body.get("session_id")]
            if mine:
                yield packet.place
                expect.that(bool(ack.body.get("chat_run_id")), "a chat_run_id", ack.body)
                expect.equal("the chat_run_id of chat:end", ack.body["chat_run_id"], mine[0].body.get("chat_run_id"))
