"""Section chat: POST /chat as a stream and as one answer."""

from typing import Any

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.examination import ZenfluxExamination

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
    """With stream true, or nothing said, the answer is a text/event-stream that tells the run from its start."""
    for situation in ("text", "thinking", "tool"):
        run = await exam.streamed(situation)
        expect.equal("the first event", "session_start", run.events[0].type)
        expect.that(bool(run.text), "text in the stream", run.names)
        expect.member("the last event", ("message_stop", "session_end"), run.events[-1].type)
    async with exam.sse(exam.profile.prompt("text"), stream=...) as (run, _):
        await run.until("message_stop")


@requirement("ZF-HTTP-3.1-01")
async def a_chat_is_answered_at_once(exam: ZenfluxExamination) -> None:
    """With stream false the answer is JSON in the wrapper, with the conversation the chat belongs to."""
    data = await _whole(exam)
    kept = await exam.read("conversation", f"/conversations/{data['conversation_id']}")
    expect.equal("the user of the conversation", exam.user, kept["user_id"])


async def _whole(exam: ZenfluxExamination) -> dict[str, Any]:
    body = {"message": exam.profile.prompt("text"), "userId": exam.user, "stream": False}
    return await exam.send("chat_answer", "/chat", body)


@requirement("ZF-GEN-04")
async def bad_bodies_are_errors_in_the_wrapper(exam: ZenfluxExamination) -> None:
    """Whatever is wrong with the body of POST /chat, the answer is {code: 4xx, message, data: null}."""
    for body, why in BAD_BODIES:
        (await exam.ask("POST", "/chat", body=body)).refused(why)
    for change in ({"message": 7}, {"userId": None}, {"message": None}):
        wrong = {"message": "Hello", "userId": exam.user, "stream": False} | change
        (await exam.ask("POST", "/chat", wrong)).refused(f"it has {change}")


@requirement("ZF-GEN-04")
async def unknown_things_are_errors_in_the_wrapper(exam: ZenfluxExamination) -> None:
    """Unknown sessions, conversations, requests and paths are answered with {code: 4xx, message, data: null}."""
    name = exam.stranger()
    for method, path in (
        ("GET", f"/session/{name}"),
        ("DELETE", f"/session/{name}"),
        ("POST", f"/session/{name}/stop"),
        ("GET", f"/conversations/{name}"),
        ("PUT", f"/conversations/{name}?title=x"),
        ("DELETE", f"/conversations/{name}"),
        ("GET", f"/human-confirmation/{name}"),
        ("DELETE", f"/human-confirmation/{name}"),
        ("GET", "/no-such-place"),
    ):
        (await exam.ask(method, path)).refused("it names something unknown")


@requirement("ZF-GEN-03")
async def every_answer_is_wrapped(exam: ZenfluxExamination) -> None:
    """All endpoints answer with {code: 200, message, data}: sessions, conversations, confirmations, models, chat."""
    made = (await exam.conversation())["id"]
    for path in (
        "/sessions",
        f"/conversations?user_id={exam.user}",
        f"/conversations/{made}",
        f"/conversations/{made}/messages",
        f"/conversations/{made}/summary",
        f"/conversations/search?user_id={exam.user}&q=Examined",
        "/human-confirmation/pending",
        "/models",
    ):
        (await exam.ask("GET", path)).done()
    await _whole(exam)


@requirement("G-ZF-19")
async def an_answer_at_once_is_complete(exam: ZenfluxExamination) -> None:
    """Without streaming data has task_id, session_id, conversation_id, message_id, content, status and usage."""
    data = await _whole(exam)
    expect.subset("the data", ["task_id", "session_id", "conversation_id", "status"], data)
    expect.equal("task_id, which is the session's", data["session_id"], data["task_id"])
    expect.member("status", ("completed", "running"), data["status"])
    if data["status"] == "completed":
        expect.subset("the data", ["message_id", "content", "usage"], data)
        run = await exam.told("text")
        if exam.profile.repeatable:
            said = data["content"]
            text = said if isinstance(said, str) else "".join(block.get("text", "") for block in said)
            expect.equal("the content", run.text, text)


@requirement("G-ZF-20")
async def both_spellings_are_taken(exam: ZenfluxExamination) -> None:
    """POST /chat takes user_id, conversation_id, message_id and the rest in snake_case as well as in camelCase."""
    made, named = (await exam.conversation())["id"], exam.stranger()
    body = {"user_id": exam.user, "conversation_id": made, "background_tasks": [], "message_id": named}
    asked = {"message": exam.profile.prompt("text"), "stream": False} | body
    data = await exam.send("chat_answer", "/chat?format=zenflux", asked)
    expect.equal("the conversation", made, data["conversation_id"])
    kept = await exam.history(made)
    said = [message["content"] for message in kept if message["role"] == "user"]
    expect.equal("what the user said", [exam.profile.prompt("text")], said)
    expect.subset("the ids of the messages", [named], [message["id"] for message in kept])


@requirement("G-ZF-20")
async def a_message_has_the_id_it_was_given(exam: ZenfluxExamination) -> None:
    """The user's message, and no other, is kept under the messageId it was sent with."""
    made, name = (await exam.conversation())["id"], exam.stranger()
    body = {"message": exam.profile.prompt("text"), "userId": exam.user, "conversationId": made, "messageId": name}
    await exam.post("/chat?format=zenflux", body | {"stream": False})
    kept = [message["role"] for message in await exam.history(made) if message["id"] == name]
    expect.equal("the messages of this id", ["user"], kept)


@requirement("G-ZF-21")
async def streams_are_framed_plainly(exam: ZenfluxExamination) -> None:
    """Lines end in LF, events are data without an event line, and the last is done with its body."""
    told, raw = await exam.framed("tool")
    expect.that(b"\r" not in raw, "lines that end in LF only", raw[:200].decode("utf-8", "replace"))
    named = [item.event for item in told[:-1] if "event" in item.fields]
    expect.equal("events with an event line, before the last", [], named)
    expect.equal("the last event", ["done"], [item.event for item in told[-1:]])
    body = expect.parsed(told[-1].data, "the data of done")
    exam.schemas.fit("event.done", body, "the data of done")
    expect.equal("its type", "done", body.get("type"))
