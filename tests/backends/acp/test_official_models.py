"""The Agent Client Protocol's own package as judge: of what the agent of the tests says, and of what we say to it."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from acp import connect_to_agent, schema, text_block
from acp.meta import CLIENT_METHODS

import gateway.model as m
from gateway.backends.acp.wire import PROTOCOL_VERSION
from tests.backends.acp.test_backend import Turn, interrupted
from tests.support.backends.acp_turns import AGENT, backend, call, played, printed, progress, text
from tests.support.backends.official_models import validation_problems

LOOK = {"toolCallId": "c1", "title": "List files", "kind": "execute", "status": "pending", "rawInput": {"a": 1}}
DIFF = {"type": "diff", "path": "/a", "oldText": "x\n", "newText": "y\n"}
PLAN = {"sessionUpdate": "plan", "entries": [
    {"content": "Look", "priority": "high", "status": "completed"},
    {"content": "Leap", "priority": "low", "status": "pending"},
]}
TOLD: list[Any] = [
    text("hm", kind="agent_thought_chunk"), text("Hel"), text("lo", messageId="m2"),
    call("c1", status="pending", rawInput={"path": "a"}), progress("c1", status="in_progress", content=printed("one")),
    progress("c1", status="completed", content=[*printed("one", "two"), DIFF], rawOutput={"found": 1}),
    call("c2", status="failed"), ["update", PLAN], ["update", {"sessionUpdate": "session_info_update", "title": "A"}],
    ["update", {"sessionUpdate": "agent_message_chunk", "content": {
        "type": "image", "data": "AAAA", "mimeType": "image/png"}}],
    ["update", {"sessionUpdate": "agent_message_chunk", "content": {
        "type": "resource_link", "name": "notes", "uri": "file:///n"}}],
    ["update", {"sessionUpdate": "available_commands_update", "availableCommands": []}],
]
"""All that the agent of the tests can tell, as the protocol has it."""


class Listener:
    """A client of the protocol's own package: it allows everything, and keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.told.append(update)

    async def request_permission(self, options: Any, **_: Any) -> schema.RequestPermissionResponse:
        allowed = schema.AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return schema.RequestPermissionResponse(outcome=allowed)

    async def read_text_file(self, path: str, **_: Any) -> schema.ReadTextFileResponse:
        return schema.ReadTextFileResponse(content=f"what is in {path}")

    async def write_text_file(self, **_: Any) -> schema.WriteTextFileResponse:
        return schema.WriteTextFileResponse()

    def on_connect(self, conn: Any) -> None:
        pass


@asynccontextmanager
async def talking(listener: Listener, *flags: str) -> AsyncIterator[tuple[Any, list[bytes]]]:
    """The agent of the tests with the protocol's own client, and the lines it wrote."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", str(AGENT), *flags, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    lines, heard = list[bytes](), asyncio.StreamReader()

    async def pass_on(source: asyncio.StreamReader) -> None:
        async for line in source:
            lines.append(line)
            heard.feed_data(line)
        heard.feed_eof()

    passing = asyncio.create_task(pass_on(process.stdout))
    try:
        async with asyncio.timeout(60), connect_to_agent(listener, process.stdin, heard) as agent:  # type: ignore[arg-type]
            yield agent, lines
    finally:
        process.kill()
        await process.wait()
        await passing


ANSWERS = (schema.InitializeResponse, schema.NewSessionResponse, schema.PromptResponse, schema.LoadSessionResponse)
SAID: dict[str, Any] = {
    "session/update": schema.SessionNotification, "session/request_permission": schema.RequestPermissionRequest,
    "fs/read_text_file": schema.ReadTextFileRequest, "fs/write_text_file": schema.WriteTextFileRequest,
}


def unknown(line: bytes | str, shape: Any) -> list[str]:
    """What the shape does not know in a message, and what JSON-RPC does not."""
    message = json.loads(line)
    assert message["jsonrpc"] == "2.0"
    body = "params" if "method" in message else "error" if "error" in message else "result"
    assert message.keys() <= {"jsonrpc", "id", "method", body}
    return validation_problems(shape, json.dumps(message[body]), strict=False)


async def test_the_agent_of_the_tests_speaks_the_protocol(tmp_path: Path) -> None:
    listener = Listener()
    async with talking(listener, "--load", "--images") as (agent, lines):
        first = await agent.initialize(protocol_version=PROTOCOL_VERSION)
        opened = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        steps = [*TOLD, ["permission", LOOK], ["request", "fs/read_text_file", {"path": "/a", "line": 1, "limit": 2}],
                 ["request", "fs/write_text_file", {"path": "/a", "content": "x"}],
                 ["stop", "max_tokens", {"usage": {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}}]]
        prompted = await agent.prompt(session_id=opened.session_id, prompt=[text_block(json.dumps(steps))])
        await agent.load_session(session_id=opened.session_id, cwd=str(tmp_path), mcp_servers=[])
    assert (first.protocol_version, prompted.stop_reason, prompted.usage.output_tokens) == (1, "max_tokens", 2)
    assert [one.session_update for one in listener.told[:len(TOLD)]] == [step[1]["sessionUpdate"] for step in TOLD]
    assert "what is in /a" in listener.told[len(TOLD) + 1].content.text
    answers = iter(ANSWERS)
    shapes = [SAID.get(json.loads(line).get("method")) or next(answers) for line in lines]
    assert [place for line, shape in zip(lines, shapes, strict=True) for place in unknown(line, shape)] == []
    assert {*SAID} <= {*CLIENT_METHODS.values()} and {*SAID.values()} <= {*shapes} and {*ANSWERS} <= {*shapes}


@pytest.mark.parametrize("wrong", [
    {"sessionUpdate": "agent_message_chunk", "content": "text"}, {"sessionUpdate": "tool_call", "title": "no id"},
    {"sessionUpdate": "tool_call", "toolCallId": "a", "title": "x", "status": "running"}, {"sessionUpdate": "news"},
    {"sessionUpdate": "plan", "entries": [{"content": "Look"}]},
    {"sessionUpdate": "tool_call", "toolCallId": "a", "title": "x", "colour": "red"},
])
def test_the_judge_notices_what_is_wrong(wrong: dict[str, Any]) -> None:
    line = json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": wrong}})
    assert not fits(line, schema.SessionNotification)


def fits(line: str, shape: Any) -> bool:
    try:
        return unknown(line, shape) == []
    except ValueError:
        return False


# -- what we say ------------------------------------------------------------------------------------------------------

ASKED: dict[str, Any] = {
    "initialize": schema.InitializeRequest, "authenticate": schema.AuthenticateRequest,
    "session/new": schema.NewSessionRequest, "session/load": schema.LoadSessionRequest,
    "session/prompt": schema.PromptRequest, "session/cancel": schema.CancelNotification,
}


async def test_we_speak_the_protocol(tmp_path: Path) -> None:
    record, mine = tmp_path / "heard.jsonl", dict[str, Any]()
    parts = (m.TextPart(text="see"), m.ImagePart(url="data:image/gif;base64,R0lGOD=="),
             m.FilePart(name="note.txt", url="data:text/plain,hello"))
    settings = m.Settings(system="Be brief.", mcp_servers=(
        {"name": "wiki", "url": "https://example.org/mcp", "headers": {"X-Key": "k"}},))
    flags = "--load", "--images", f"--record={record}"
    async with backend(tmp_path, *flags, auth_method="any") as made:
        await played(made, m.SendMessage(content=parts), metadata=mine, settings=settings)
        await played(made, ["permission", LOOK], metadata=mine)
        reading = [["request", "fs/read_text_file", {"path": path}] for path in ("note.txt", "no")]
        await played(made, *reading, ["request", "fs/write_text_file", {"path": "b", "content": "x"}], metadata=mine)
        await interrupted(made, Turn(["say", "one "], ["hang"], metadata=mine), "block.delta")
    async with backend(tmp_path, *flags, auth_method="any") as made:
        await played(made, ["say", "again"], metadata=mine)
    asked, answered = dict[str, list[str]](), list[str]()
    for line in record.read_text().splitlines():
        if method := json.loads(line).get("method"):
            asked.setdefault(method, []).append(line)
        else:
            answered.append(line)
    assert asked.keys() == ASKED.keys()
    assert [place for method in asked for line in asked[method] for place in unknown(line, ASKED[method])] == []
    shapes = (schema.RequestPermissionResponse, schema.ReadTextFileResponse, schema.Error, schema.WriteTextFileResponse)
    assert [unknown(line, shape) for line, shape in zip(answered, shapes, strict=True)] == [[]] * len(shapes)
    assert mine[m.PRIVATE]["acp"]

