"""A small agent of the Agent Client Protocol: it keeps a notebook, and asks before it writes in it."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

from acp import (
    PROTOCOL_VERSION,
    RequestError,
    run_agent,
    start_tool_call,
    text_block,
    tool_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_tool_call,
)
from acp.schema import (
    AllowedOutcome,
    InitializeResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    ToolCallUpdate,
)

OPTIONS = [
    PermissionOption(option_id="write", name="Write it down", kind="allow_once"),
    PermissionOption(option_id="forget", name="Forget it", kind="reject_once"),
]


class Clerk:
    """`note TEXT` writes into notes.txt, `read` reads it; anything else is only heard."""

    def __init__(self) -> None:
        self.folders: dict[str, Path] = {}
        self.client: Any = None

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **more: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=PROTOCOL_VERSION)

    async def new_session(self, cwd: str, **more: Any) -> NewSessionResponse:
        session_id = uuid4().hex
        self.folders[session_id] = Path(cwd)
        return NewSessionResponse(session_id=session_id)

    async def prompt(self, session_id: str, prompt: list[Any], **more: Any) -> PromptResponse:
        said = " ".join(block.text for block in prompt if block.type == "text")
        verb, _, words = said.partition(" ")
        if verb == "note":
            await self.note(session_id, words)
        elif verb == "read":
            await self.read(session_id)
        else:
            await self.say(session_id, f"I heard: {said}")
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **more: Any) -> None:
        """Nothing here takes long enough."""

    async def note(self, session_id: str, words: str) -> None:
        await self.client.session_update(session_id, update_agent_thought_text("That should be written down."))
        call_id, path = uuid4().hex, str(self.folders[session_id] / "notes.txt")
        given = {"path": path, "content": words}
        begun = start_tool_call(call_id, "Write into notes.txt", kind="edit", status="pending", raw_input=given)
        await self.client.session_update(session_id, begun)
        answer = await self.client.request_permission(
            session_id, ToolCallUpdate(tool_call_id=call_id, title="Write into notes.txt", kind="edit"), OPTIONS)
        if isinstance(answer.outcome, AllowedOutcome) and answer.outcome.option_id == "write":
            await self.client.write_text_file(session_id, path, words)
            await self.done(session_id, call_id, "completed", "written")
            await self.say(session_id, "It is written.")
        else:
            await self.done(session_id, call_id, "failed", "not allowed")
            await self.say(session_id, "Then I shall forget it.")

    async def read(self, session_id: str) -> None:
        call_id, path = uuid4().hex, str(self.folders[session_id] / "notes.txt")
        given = {"path": path}
        begun = start_tool_call(call_id, "Read notes.txt", kind="read", status="in_progress", raw_input=given)
        await self.client.session_update(session_id, begun)
        try:
            found = await self.client.read_text_file(session_id, path)
        except RequestError:
            await self.done(session_id, call_id, "failed", "there is no such file")
            await self.say(session_id, "There are no notes yet.")
            return
        await self.done(session_id, call_id, "completed", found.content)
        await self.say(session_id, f"The notes say: {found.content}")

    async def say(self, session_id: str, text: str) -> None:
        for word in text.split(" "):
            await self.client.session_update(session_id, update_agent_message_text(f"{word} "))

    async def done(self, session_id: str, call_id: str, status: Any, result: str) -> None:
        await self.client.session_update(
            session_id, update_tool_call(call_id, status=status, content=[tool_content(text_block(result))]))


if __name__ == "__main__":
    asyncio.run(run_agent(Clerk()))
