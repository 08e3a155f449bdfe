"""Section socket, continued: stopping a chat."""

from contextlib import suppress
from typing import Any

from conformance.blade.conversation import QUIET, Conversation
from conformance.blade.examination import BladeExamination
from conformance.blade.scene import pairs
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import Failed
from conformance.kit.socketio import SocketEvent


async def _under_way(exam: BladeExamination) -> Conversation:
    talk = await exam.open()
    await talk.send(exam.profile.prompt("slow"))
    return talk


async def _speaking(talk: Conversation) -> list[SocketEvent]:
    """The events up to the first patch of the agent's turn; the user's turn may be streamed before it."""
    heard = await talk.until("turn:start")
    while heard[-1].body.get("role") != "assistant":
        heard += await talk.until("turn:start")
    return heard + await talk.until("turn:patch")


@requirement("BL-WS-06")
async def a_stopped_chat_is_interrupted(exam: BladeExamination) -> None:
    """chat:stop in the middle gives turn:end (interrupted), chat:end (interrupted), and keeps what was said."""
    talk = await _under_way(exam)
    first = await _speaking(talk)
    await talk.link.emit("chat:stop", {"session_id": talk.session})
    rest = await talk.listen()
    chat = type(rest)((*first, *rest.heard)).ended("interrupted")
    expect.equal("the status of turn:end", "interrupted", chat.reply.final["status"])
    for turn, kept in pairs(chat, await talk.messages()):
        if turn is chat.reply:
            expect.equal("the status in the history", "interrupted", kept["status"])


@requirement("BL-WS-06")
async def a_stop_may_come_from_elsewhere_and_twice(exam: BladeExamination) -> None:
    """Another connection can stop the chat, again and again; the chat ends once, and the next one runs."""
    talk = await _under_way(exam)
    other = await exam.another(talk)
    await _speaking(talk)
    for _ in range(3):
        await other.link.emit("chat:stop", {"session_id": talk.session})
    (await talk.listen()).ended("interrupted")
    chat = await talk.play("text", owner="BL-WS-06")
    expect.that("turn:start" in chat.names, "one chat:end for all stops, and then another chat", chat.shown)


@requirement("BL-WS-06")
async def a_question_is_stopped_once(exam: BladeExamination) -> None:
    """chat:stop while a question is open ends it, with one chat:end if any; the next chat runs."""
    talk = await exam.open()
    await talk.play("ask")
    await talk.stop()
    await talk.send(exam.profile.prompt("text"))
    names: list[str] = []
    with expect.owned("BL-FLOW-01"):
        while names[-2:-1] != ["chat:start"]:
            names.append((await talk.hear()).name)
    expect.that(names.count("chat:end") <= 1, "one chat:end at most for one chat:stop", names)


@requirement("BL-WS-06")
async def a_run_is_stopped_by_its_id(exam: BladeExamination) -> None:
    """chat:stop that names the chat_run_id chat:send was acknowledged with, if it was, ends that chat."""
    talk = await exam.open()
    ack: Any = None
    with suppress(Failed):
        sent = {"session_id": talk.session, "message": exam.profile.prompt("slow")}
        ack = await talk.link.call("chat:send", sent, within=QUIET)
    named = {name: ack[name] for name in ("chat_run_id",) if isinstance(ack, dict) and ack.get(name)}
    await _speaking(talk)
    await talk.link.emit("chat:stop", {"session_id": talk.session, **named})
    (await talk.listen()).ended("interrupted")


@requirement("BL-GAP-22")
async def a_stop_is_acknowledged(exam: BladeExamination) -> None:
    """chat:stop is acknowledged with a status while a chat runs and while none does."""
    talk = await _under_way(exam)
    await _speaking(talk)
    ack = await talk.link.call("chat:stop", {"session_id": talk.session})
    exam.read("ack.stop", ack, "the acknowledgement of chat:stop")
    await talk.listen()
    again = await talk.link.call("chat:stop", {"session_id": talk.session})
    exam.read("ack.stop", again, "the acknowledgement of chat:stop on an idle session")
