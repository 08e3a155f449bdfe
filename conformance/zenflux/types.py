"""Section types: content blocks, conversations, messages, session infos and request bodies as the data models say."""

from typing import Any

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.frames import FILE
from conformance.zenflux.run import TOOL_USES
from conformance.zenflux.run_contents import as_blocks, as_text, plain
from conformance.zenflux.sample_runs import STREAM, UNSTREAMED, approved, given, kept, rejected, told, watched


async def _kept(exam: ZenfluxExamination, situation: str) -> list[dict[str, Any]]:
    """The content blocks the conversation keeps of a run; none where it keeps texts."""
    found = await kept(exam, situation, UNSTREAMED)
    return [block for message in found for block in as_blocks(message["content"]) or []]


@requirement("ZF-TYPE-01")
async def kept_blocks_have_their_members(exam: ZenfluxExamination) -> None:
    """A kept reply is text, or text, thinking (with signature), tool_use, tool_result and image blocks, each whole."""
    for situation in given(exam, "thinking", "tool", "text"):
        run, blocks = await told(exam, situation, UNSTREAMED), await _kept(exam, situation)
        thoughts = [block.said for block in run.blocks("thinking")]
        with expect.owned("ZF-EV-33"):
            calls = [[block.start["id"], block.start["name"], plain(block.input)] for block in run.blocks(*TOOL_USES)]
        for block in blocks:
            if block["type"] == "thinking":
                expect.member("a thought in a kept reply", thoughts, block["thinking"])
            elif block["type"] in TOOL_USES:
                found = [block["id"], block["name"], plain(block["input"])]
                expect.that(found in calls, f"a kept call to be one of {calls}", found)
            elif block["type"] == "tool_result":
                ids = [name for name, _, _ in calls]
                expect.that(block["tool_use_id"] in ids, f"the result of one of the calls {ids}", block)
    if exam.profile.prompts.image is not None:
        run = await told(exam, "image")
        await exam.history(run.conversation_id)


@requirement("ZF-TYPE-04", "ZF-HTTP-3.1-05")
async def a_session_can_be_looked_at(exam: ZenfluxExamination) -> None:
    """GET /session/{id} of a running session has all of SessionInfo: its own id, and active true."""
    found = await watched(exam)
    data = found.info.done()
    exam.described("session_info", data, "the data of GET /session/{id}")
    said = [data["session_id"], data["active"]]
    expect.that(said == [found.run.session_id, True], "its own id, and active true", data, "ZF-HTTP-3.1-05")


@requirement("ZF-TYPE-05")
async def a_conversation_has_its_members(exam: ZenfluxExamination) -> None:
    """A conversation has id, title, user_id, created_at and updated_at wherever it is shown."""
    made = await exam.conversation("Members")
    shown = await exam.read("conversation", f"/conversations/{made['id']}")
    said = {name: shown[name] for name in ("user_id", "created_at")}
    expect.equal("the conversation", {name: made[name] for name in said}, said)


@requirement("ZF-TYPE-06")
async def messages_have_their_members(exam: ZenfluxExamination) -> None:
    """The user's message and the reply are kept whole: id, conversation_id, role, content, status, time, metadata."""
    run = await told(exam, "text", UNSTREAMED)
    found = await kept(exam, "text", UNSTREAMED)
    replies = [message for message in found if message["role"] == "assistant"]
    owners = {message["conversation_id"] for message in found}
    expect.equal("the conversation of the messages", {run.conversation_id}, owners)
    ids = [message["id"] for message in found]
    expect.that(len(set(ids)) == len(ids), "an id for each message", ids)
    expect.equal("what the reply says", run.text, "".join(as_text(message["content"]) for message in replies))


@requirement("ZF-TYPE-07")
async def a_whole_chat_request_is_taken(exam: ZenfluxExamination) -> None:
    """POST /chat takes every member of ChatRequest, in the spelling of the specification."""
    await told(exam, "text", STREAM)
    made = await exam.conversation()
    more: dict[str, Any] = {"conversationId": made["id"], "messageId": exam.stranger(), "backgroundTasks": []}
    more |= {"files": [FILE], "variables": {"locale": "zh-CN"}, "owner": "ZF-TYPE-07"}
    run = await exam.streamed("text", **more)
    expect.equal("the conversation of the run", made["id"], run.conversation_id)


@requirement("ZF-TYPE-08")
async def a_confirmation_is_a_response_with_metadata(exam: ZenfluxExamination) -> None:
    """A confirmation is {response, metadata}, whether it approves or rejects."""
    (await approved(exam)).answers["posted"].done()
    (await rejected(exam)).answers["posted"].done("ZF-TYPE-08")
