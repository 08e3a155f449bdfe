"""Section types: content blocks, conversations, messages, session infos and request bodies as the data models say."""

from typing import Any

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.frames import FILE
from conformance.zenflux.run import TOOL_USES, Run


async def _kept(exam: ZenfluxExamination, run: Run) -> list[dict[str, Any]]:
    """The content blocks the conversation keeps of this run."""
    kept = [message for message in await exam.history(run.conversation_id) if isinstance(message["content"], list)]
    return [block for message in kept for block in message["content"]]


@requirement("ZF-TYPE-01")
async def kept_blocks_have_their_members(exam: ZenfluxExamination) -> None:
    """A kept reply is text, or text, thinking (with signature), tool_use, tool_result and image blocks, each whole."""
    run = await exam.told("thinking")
    thoughts = [block["thinking"] for block in await _kept(exam, run) if block["type"] == "thinking"]
    expect.equal("the thoughts in the kept reply", [block.said for block in run.blocks("thinking")], thoughts)
    run = await exam.told("tool")
    kept = await _kept(exam, run)
    calls = [[block["id"], block["name"]] for block in kept if block["type"] in TOOL_USES]
    told = [[block.start["id"], block.start["name"]] for block in run.blocks(*TOOL_USES)]
    expect.equal("the calls in the kept reply", told, calls)
    results = [[block["tool_use_id"], block["is_error"]] for block in kept if block["type"] == "tool_result"]
    expect.equal("the results in the kept reply", [[name, False] for name, _ in told], results)
    texts = "".join(block["text"] for block in kept if block["type"] == "text")
    expect.equal("the text in the kept reply", run.text, texts)
    if exam.profile.prompts.image is not None:
        await _kept(exam, await exam.told("image"))


@requirement("ZF-TYPE-04", "ZF-HTTP-3.1-05")
async def a_session_can_be_looked_at(exam: ZenfluxExamination) -> None:
    """GET /session/{id} of a running session has all of SessionInfo: its own id, and active true."""
    async with exam.line() as line:
        run = await line.tell("slow")
        await run.until("content_start")
        told = await exam.read("session_info", f"/session/{run.session_id}")
        await line.caught(run, is_elsewhere=True)
        expect.equal("session_id and active", [run.session_id, True], [told["session_id"], told["active"]])
        await run.completed()
    (await exam.ask("GET", f"/session/{exam.stranger()}")).refused("there is no such session")


@requirement("ZF-TYPE-05")
async def a_conversation_has_its_members(exam: ZenfluxExamination) -> None:
    """A conversation has id, title, user_id, created_at and updated_at wherever it is shown."""
    made = await exam.conversation("Members")
    shown = await exam.read("conversation", f"/conversations/{made['id']}")
    told = {name: shown[name] for name in ("id", "title", "user_id")}
    expect.equal("the conversation", {"id": made["id"], "title": "Members", "user_id": exam.user}, told)


@requirement("ZF-TYPE-06")
async def messages_have_their_members(exam: ZenfluxExamination) -> None:
    """The user's message and the reply are kept whole: id, conversation_id, role, content, status, time, metadata."""
    run = await exam.told("text")
    kept = await exam.history(run.conversation_id)
    expect.equal("the roles", ["user", "assistant"], [message["role"] for message in kept])
    expect.equal("the conversation of both", [run.conversation_id] * 2, [item["conversation_id"] for item in kept])
    expect.that(kept[0]["id"] != kept[1]["id"], "an id for each message", kept)
    texts = [_text(message["content"]) for message in kept]
    expect.equal("what was said", [exam.profile.prompt("text"), run.text], texts)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(block["text"] for block in content if block["type"] == "text")


@requirement("ZF-TYPE-07")
async def a_whole_chat_request_is_taken(exam: ZenfluxExamination) -> None:
    """POST /chat takes every member of ChatRequest, in the spelling of the specification."""
    made = await exam.conversation()
    more: dict[str, Any] = {"conversationId": made["id"], "messageId": exam.stranger(), "backgroundTasks": []}
    run = await exam.streamed("text", **more, files=[FILE], variables={"locale": "zh-CN"})
    expect.equal("the conversation of the run", made["id"], run.conversation_id)
    expect.equal("the users of the run", [exam.user], [event.data["user_id"] for event in run.of("session_start")])


@requirement("ZF-TYPE-08")
async def a_confirmation_is_a_response_with_metadata(exam: ZenfluxExamination) -> None:
    """A confirmation is {response, metadata}; metadata may be left out, a response may not."""
    for body in ({"response": "approve", "metadata": {"by": "examiners"}}, {"response": "reject"}):
        async with exam.line() as line:
            run = await line.tell("permit")
            await run.until_note("confirmation_request")
            answer = await exam.ask("POST", f"/human-confirmation/{run.session_id}", {"metadata": {}})
            answer.refused("there is no response")
            await exam.post(f"/human-confirmation/{run.session_id}", body)
            await run.completed()
