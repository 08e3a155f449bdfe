"""Section socket: the transport, who hears what, and the events beside a chat's own."""

from typing import Any
from uuid import uuid4

from conformance.blade.chat import EVENTS, Chat
from conformance.blade.conversation import Conversation
from conformance.blade.event_order import turns_are_whole
from conformance.blade.examination import BladeExamination
from conformance.blade.scene import pairs, scene
from conformance.blade.snapshot import text_of
from conformance.blade.turn import compacted
from conformance.kit import expect, socketio
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable
from conformance.kit.socketio import Link, Rejected

PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
UNUSED = ("model", "output_schema", "whatif", "replay_decision", "runtime_env", "askuser_answer", "mode")


@requirement("BL-WS-01")
async def every_transport_is_served(exam: BladeExamination) -> None:
    """A chat runs over polling alone, over websocket alone, and over polling that upgrades."""
    session = await exam.session()
    for transports in (("polling",), ("websocket",), socketio.BOTH):
        talk = Conversation(exam, session, await exam.link(transports=transports))
        expect.equal("the transport in the end", transports[-1], talk.link.transport)
        await talk.subscribe()
        await talk.play("text")


@requirement("BL-WS-01")
async def packets_are_engine_io_4(exam: BladeExamination) -> None:
    """The handshake is an open packet with sid and ping times, and CONNECT is answered in the default namespace."""
    auth = {"token": exam.http.key} if exam.http.key is not None else {}
    async with socketio.raw(exam.http) as socket:
        opened = socketio.unpacked(await socket.next_text() or "", "0")
        expect.keyed("the open packet", opened, "sid", "upgrades", "pingInterval", "pingTimeout")
        await socket.send_text(socketio.packet("0", auth))
        connected = socketio.unpacked(await socket.next_text() or "", "40")
        expect.that(isinstance(connected, dict) and "sid" in connected, "40 with a sid", connected)
    opened = socketio.unpacked((await socketio.polled(exam.http))[0], "0")
    offered = expect.keyed("the open packet of polling", opened, "upgrades")["upgrades"]
    expect.subset("the upgrades polling offers", ["websocket"], offered)


MALFORMED = (
    '42["chat:send"]',
    '42["chat:send",null]',
    '42["chat:send","hello"]',
    '42["chat:send",[]]',
    '42["no:such:event",{}]',
    '42["session:subscribe",7]',
)


@requirement("BL-WS-01")
async def malformed_events_do_no_harm(exam: BladeExamination) -> None:
    """After events without a body, with a wrong body and with an unknown name the server goes on serving others."""
    talk = await exam.open()
    auth = {"token": exam.http.key} if exam.http.key is not None else {}
    async with socketio.raw(exam.http) as socket:
        await socket.next_text()
        await socket.send_text(socketio.packet("0", auth))
        socketio.unpacked(await socket.next_text() or "", "40")
        await talk.play("text")
        for text in MALFORMED:
            await socket.send_text(text)
        await talk.play("text", owner="BL-WS-01")
    await (await exam.another(talk)).play("text", owner="BL-WS-01")


@requirement("BL-WS-02")
async def a_connection_needs_a_token(exam: BladeExamination) -> None:
    """No auth, an empty one, and a wrong token are refused with connect_error; the right one is taken."""
    if exam.http.key is None:
        raise NotTestable("the examiners were given no key")
    for auth in (None, {}, {"token": f"sk-blade-v2-{uuid4().hex}"}, {"token": 7}):
        try:
            await exam.stack.enter_async_context(socketio.connect(exam.http, auth))
        except Rejected:
            continue
        expect.fail(f"CONNECT with the auth {expect.show(auth)} to be refused", "it was taken")
    expect.that((await exam.link()).is_open, "the right token to be taken", "a closed connection")


async def _chats_of_its_own(exam: BladeExamination, link: Link) -> None:
    """A whole chat in another session: whatever was to come over this connection before has come."""
    other = Conversation(exam, await exam.session(), link)
    await other.subscribe()
    await other.play("text")


def _of(talk: Conversation, link: Link, since: int = 0) -> list[str]:
    """The flow events of this session that a connection heard."""
    flow = [item for item in link.heard[since:] if item.name in EVENTS and isinstance(item.body, dict)]
    return [item.name for item in flow if item.body.get("session_id") == talk.session]


def told(chat: Chat) -> list[str]:
    """The flow as it was sent, whatever may be wrong with it."""
    return [f"{name} {body!r}" for name, body in chat.events]


@requirement("BL-WS-03")
async def subscribers_hear_a_chat(exam: BladeExamination) -> None:
    """Every subscriber hears the same events in the same order as the one who sent the message."""
    talk = await exam.open()
    other = await exam.another(talk)
    chat = await talk.play("tool")
    heard = await other.listen("BL-WS-03")
    expect.equal("what the other subscriber heard", told(chat), told(heard))


@requirement("BL-WS-03")
async def only_subscribers_hear_a_chat(exam: BladeExamination) -> None:
    """A connection that has subscribed to another session, or to none, hears nothing of this one."""
    talk = await exam.open()
    stranger, idle = await exam.open(), await exam.link()
    await talk.play("text")
    for link in (stranger.link, idle):
        await _chats_of_its_own(exam, link)
        heard = _of(talk, link)
        expect.equal("what is heard of a session nobody subscribed to", [], heard)


@requirement("BL-WS-04")
async def who_unsubscribes_hears_no_more(exam: BladeExamination) -> None:
    """After session:unsubscribe a connection hears nothing of the session, while others still do."""
    talk = await exam.open()
    other = await exam.another(talk)
    await talk.play("text")
    await other.listen("BL-WS-03")
    await other.unsubscribe()
    other.link.forget()
    before = len(other.link.heard)
    await talk.play("text")
    await _chats_of_its_own(exam, other.link)
    expect.equal("what is heard after session:unsubscribe", [], _of(talk, other.link, before))


@requirement("BL-WS-05")
async def messages_may_be_parts(exam: BladeExamination) -> None:
    """A string, a list of text parts, and a list with a picture and a file are taken."""
    text = {"type": "text", "text": exam.profile.prompt("text")}
    plain = (await scene(exam, "text")).chat()
    turns_are_whole(plain)
    usual = [text_of(turn.final) for turn in plain.users]
    is_kept = any(text["text"] in said for said in usual)
    picture = {"type": "image_url", "image_url": {"url": PICTURE}}
    paper = {"type": "file", "name": "note.txt", "data": "SGVsbG8="}
    talk = await exam.open()
    for message in ([text], [text, picture], [text, paper]):
        chat = await talk.say(message, "BL-WS-05")
        said = "".join(text_of(turn.final) for turn in chat.users)
        expect.that(is_kept, "the text of a plain message in the user's turn", usual, "BL-BLK-14")
        expect.that(text["text"] in said, "the text of the parts in the user's turn", said)


@requirement("BL-WS-05")
async def unused_fields_may_be_null(exam: BladeExamination) -> None:
    """Fields that are null are as good as absent, and unknown ones do no harm."""
    (await scene(exam, "text")).chat()
    talk = await exam.open()
    nothing: dict[str, Any] = dict.fromkeys(UNUSED)
    more: dict[str, Any] = {"mode": "executing", "runtime_env": {"A": "b"}, "refs": [], "app_context": {}}
    for given in (nothing | {"headless": False}, more):
        chat = await talk.play("text", owner="BL-WS-05", **given)
        expect.that(chat.is_ended, "chat:end", chat.shown, "BL-FLOW-01")


@requirement("BL-WS-07")
async def a_compaction_is_acknowledged(exam: BladeExamination) -> None:
    """chat:compact is acknowledged with a status, an error for an unknown session; the history shows the summary."""
    found = await compacted(exam)
    ack = exam.read("ack.compact", found.ack, "the acknowledgement of chat:compact")
    if ack["status"] == "ok":
        kinds = [turn["kind"] for turn in found.kept]
        expect.that("compaction" in kinds, "a turn of the kind compaction in the history", kinds)
    link = await exam.link()
    answer = await link.call("chat:compact", {"session_id": exam.stranger()})
    strange = exam.read("ack.compact", answer, "the acknowledgement of chat:compact for an unknown session")
    expect.equal("its status", "error", strange["status"])


@requirement("BL-WS-07")
async def a_compacted_session_goes_on(exam: BladeExamination) -> None:
    """After a compaction the session is talked in as before."""
    talk = await exam.open()
    for _ in range(2):
        await talk.play("text")
    ack = await talk.link.call("chat:compact", {"session_id": talk.session})
    if not isinstance(ack, dict) or ack.get("status") != "ok":
        raise NotTestable(f"the server would not compact: {expect.show(ack)}")
    chat = await talk.play("text", owner="BL-WS-07")
    pairs(chat, kept := await talk.messages())
    known = [turn["turn_id"] for turn in kept]
    told = [turn.turn_id for turn in chat.turns]
    expect.that(all(name in known for name in told), "the new turns in the history", known, "BL-FLOW-31")


@requirement("BL-WS-08")
async def a_chat_end_says_how_it_ended(exam: BladeExamination) -> None:
    """completed and failed are told apart; without headless there is no result."""
    for situation, status in (("text", "completed"), ("tool", "completed"), ("fail", "failed")):
        chat = (await scene(exam, situation)).chat()
        end = exam.read("event.chat-end.full", dict(chat.end), "chat:end")
        expect.equal(f"the status of chat:end ({situation})", status, end["status"])
        if status == "completed":
            expect.equal("finish_reason", "completed", end.get("finish_reason"))
            expect.equal("result without headless", None, end["result"])
        elif end.get("finish_reason") == "tool_error":
            results = [item["status"] for item in chat.results]
            expect.subset("the results of tools, where one ended the chat", ["error"], results)


@requirement("BL-WS-09")
async def other_events_are_complete(exam: BladeExamination) -> None:
    """Whatever else is told beside a chat - updates, files, errors, notices - has the documented members."""
    talk = await exam.open()
    for situation in exam.profile.having(("annotate", "fail")):
        await talk.play(situation)
    await exam.http.ask("PATCH", talk.path, {"intent": "Renamed"})
    await exam.http.ask("PUT", f"{talk.path}/files/note.txt", {"content": "Hello"})
    await talk.link.emit("chat:send", {"session_id": exam.stranger(), "message": "Hello"})
    await talk.verdict()
    await talk.play("text")
    for item in talk.link.heard:
        schema = f"event.{item.name.replace(':', '-')}"
        if item.name not in EVENTS and not item.name.startswith("chat:") and schema in OTHERS:
            exam.read(schema, item.body, f"the event {item.name}")


OTHERS = frozenset(
    f"event.{name}" for name in ("session-updated", "workspace-files_changed", "system-error", "system-notification")
)


@requirement("BL-WS-10")
async def planning_calls_no_tools(exam: BladeExamination) -> None:
    """In the mode planning a prompt that would call a tool calls none; in executing, and by default, it does."""
    (await scene(exam, "tool")).chat().call()
    talk = await exam.open()
    chat = await talk.play("tool", mode="planning")
    expect.equal("calls while planning", [], [call["tool_name"] for call in chat.calls])
    (await talk.play("tool", mode="executing")).call()
