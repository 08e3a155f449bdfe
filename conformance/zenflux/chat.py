"""Section chat: POST /chat as a stream and as one answer."""

from typing import Any

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.conversations import talked
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.management_common import ABSENT
from conformance.zenflux.rest_calls import BASE
from conformance.zenflux.run_contents import as_text
from conformance.zenflux.sample_runs import STREAM, UNSTREAMED, given, told, whole_chat

BAD_BODIES: tuple[tuple[bytes, str], ...] = (
    (b"", "the body is empty"),
    (b'{"message": ', "the JSON breaks off"),
    (b"[]", "the body is no object"),
    (b'"hello"', "the body is no object"),
    (b"{}", "it has neither message nor user"),
    (b"\xff\xfe", "the body is not UTF-8"),
)


@requirement("ZF-HTTP-3.1-01")
async def a_chat_is_streamed(exam: ZenfluxExamination) -> None:
    """With stream true, or nothing said, the answer is a text/event-stream that tells the run."""
    for situation in given(exam, "text", "thinking", "tool"):
        run = await told(exam, situation, STREAM)
        expect.that(bool(run.text), "text in the stream", run.names)
    async with exam.sse(exam.profile.prompt("text"), stream=...) as (run, _):
        expect.that(await run.next() is not None, "events in a stream that was not asked for", run.names)


@requirement("ZF-HTTP-3.1-01")
async def a_chat_is_answered_at_once(exam: ZenfluxExamination) -> None:
    """With stream false the answer is JSON in the wrapper."""
    data = (await whole_chat(exam)).done()
    expect.that(data is not None, "data in the answer", data)


@requirement("ZF-GEN-04")
async def bad_bodies_are_errors_in_the_wrapper(exam: ZenfluxExamination) -> None:
    """Whatever is wrong with the body of POST /chat, the answer is {code: 4xx, message, data: null}."""
    for body, why in BAD_BODIES:
        await _refused(exam, why, body=body)
    for change in ({"message": 7}, {"userId": None}, {"message": None}):
        wrong = {"message": "Hello", "userId": exam.user, "stream": False} | change
        await _refused(exam, f"it has {change}", wrong)


async def _refused(exam: ZenfluxExamination, why: str, json: Any = ..., **more: Any) -> None:
    """Expect an error of the client's; a stream is none."""
    (await exam.ask("POST", "/chat", json, **more)).refused(why)


@requirement("ZF-GEN-04")
async def unknown_things_are_errors_in_the_wrapper(exam: ZenfluxExamination) -> None:
    """Where unknown sessions, conversations and requests are errors, these are {code, message, data: null}."""
    name = exam.stranger()
    for method, path in (
        ("GET", f"/session/{name}"),
        ("DELETE", f"/session/{name}"),
        ("POST", f"/session/{name}/stop"),
        ("GET", f"/conversations/{name}"),
        ("PUT", f"/conversations/{name}?title=x"),
        ("DELETE", f"/conversations/{name}"),
        *((method, f"/human-confirmation/{name}") for method in ("GET", "DELETE") if exam.profile.has_confirmations),
    ):
        await exam.ask(method, path)


@requirement("ZF-GEN-03")
async def every_answer_is_wrapped(exam: ZenfluxExamination) -> None:
    """All endpoints answer with {code: 200, message, data}: sessions, conversations, confirmations, models, chat."""
    made = (await exam.conversation())["id"]
    optional = ("/human-confirmation/pending", "/models")
    offered = [path for path in optional if (await exam.http.ask("GET", BASE + path)).status not in ABSENT]
    for path in (
        "/sessions",
        f"/conversations?user_id={exam.user}",
        f"/conversations/{made}",
        f"/conversations/{made}/messages",
        f"/conversations/{made}/summary",
        f"/conversations/search?user_id={exam.user}&q=Examined",
        "/health",
        *offered,
    ):
        await exam.ask("GET", path)
    await whole_chat(exam)


@requirement("G-ZF-19")
async def an_answer_at_once_is_complete(exam: ZenfluxExamination) -> None:
    """Without streaming data has task_id, session_id, conversation_id, message_id, content, status and usage."""
    data = (await whole_chat(exam)).done()
    exam.schemas.fit("chat_answer", data, "the data of POST /chat")
    expect.subset("the data", ["task_id", "session_id", "conversation_id", "status"], data)
    expect.equal("task_id, which is the session's", data["session_id"], data["task_id"])
    expect.member("status", ("completed", "running"), data["status"])
    if data["status"] == "completed":
        expect.subset("the data", ["message_id", "content", "usage"], data)
        run = await told(exam, "text", UNSTREAMED)
        if exam.profile.repeatable:
            expect.equal("the content", run.text, as_text(data["content"]))


@requirement("G-ZF-20")
async def both_spellings_are_taken(exam: ZenfluxExamination) -> None:
    """POST /chat takes user_id, conversation_id, message_id and the rest in snake_case as well as in camelCase."""
    (await whole_chat(exam)).done()
    made, named = (await exam.conversation())["id"], exam.stranger()
    body = {"user_id": exam.user, "conversation_id": made, "background_tasks": [], "message_id": named}
    answer = await exam.chat_at_once(exam.profile.prompt("text"), userId=..., **body)
    expect.that(answer.is_done, "a request in snake_case to be taken", answer.reply.told)
    await _expect_kept(exam, made, named, "ZF-TYPE-07" if await _is_always_new(exam) else None)


async def _is_always_new(exam: ZenfluxExamination) -> bool:
    """Whether a chat that names its conversation as the specification spells it is in another one."""
    talk = await talked(exam)
    return len([message for message in talk.after if message["role"] == "user"]) < len(talk.words)


@requirement("G-ZF-20")
async def a_message_has_the_id_it_was_given(exam: ZenfluxExamination) -> None:
    """The user's message, and no other, is kept under the messageId it was sent with."""
    made, name = (await exam.conversation())["id"], exam.stranger()
    (await exam.chat_at_once(exam.profile.prompt("text"), conversationId=made, messageId=name)).done()
    await _expect_kept(exam, made, name, "ZF-TYPE-07")


async def _expect_kept(exam: ZenfluxExamination, conversation: str, name: str, owner: str | None = None) -> None:
    """Expect the message of the user, and no other, to be kept under its id; the owner is that of the conversation."""
    history = await exam.history(conversation)
    expect.that(bool(history), "the messages in the conversation that was named", history, owner)
    is_whole = any(message["role"] == "user" for message in history)
    expect.that(is_whole, "a message of the user", history, "ZF-HTTP-3.2-06")
    said = [message["role"] for message in history if message["id"] == name]
    expect.equal("the messages of this id", ["user"], said)


@requirement("G-ZF-21")
async def streams_are_framed_plainly(exam: ZenfluxExamination) -> None:
    """Lines end in LF, events are data without an event line, and the last is done with its body."""
    run = await told(exam, "tool", STREAM)
    expect.that(b"\r" not in run.raw, "lines that end in LF only", run.raw[:200].decode("utf-8", "replace"))
    done = [event for event in run.told if event.event == "done"]
    expect.that(bool(done), "done at the end of the stream", run.names, "ZF-EV-36")
    named = [item.event for item in run.told if "event" in item.fields and item.event != "done"]
    expect.equal("events with an event line, but done", [], named)
    body = expect.parsed(done[-1].data, "the data of done")
    exam.schemas.fit("event.done", body, "the data of done")
    expect.equal("its type", "done", body.get("type"))
