"""A small AG-UI agent: it counts what it is told in its state, and asks the application for the weather."""

import json
import sys
from collections.abc import Iterator
from uuid import uuid4

from ag_ui.core import (
    BaseEvent,
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)
from ag_ui.encoder import EventEncoder
from aiohttp import web


def run(asked: RunAgentInput) -> Iterator[BaseEvent]:
    """The events of one run; what follows a tool call of the application's comes with the next."""
    last = asked.messages[-1]
    yield RunStartedEvent(thread_id=asked.thread_id, run_id=asked.run_id)
    if last.role == "tool":
        yield from say(f"The weather is {last.content}.")
    elif "weather" in str(last.content) and any(tool.name == "weather" for tool in asked.tools or ()):
        call_id = uuid4().hex
        yield ToolCallStartEvent(tool_call_id=call_id, tool_call_name="weather")
        yield ToolCallArgsEvent(tool_call_id=call_id, delta=json.dumps({"city": "Rome"}))
        yield ToolCallEndEvent(tool_call_id=call_id)
    else:
        count = (asked.state or {}).get("count", 0) + 1
        yield StateSnapshotEvent(snapshot={"count": count})
        yield from say(f"That was number {count}: {last.content}")
    yield RunFinishedEvent(thread_id=asked.thread_id, run_id=asked.run_id)


def say(text: str) -> Iterator[BaseEvent]:
    message_id = uuid4().hex
    yield TextMessageStartEvent(message_id=message_id, role="assistant")
    for word in text.split(" "):
        yield TextMessageContentEvent(message_id=message_id, delta=f"{word} ")
    yield TextMessageEndEvent(message_id=message_id)


async def answer(request: web.Request) -> web.StreamResponse:
    asked, encoder = RunAgentInput.model_validate_json(await request.read()), EventEncoder()
    response = web.StreamResponse(headers={"Content-Type": encoder.get_content_type()})
    await response.prepare(request)
    for event in run(asked):
        await response.write(encoder.encode(event).encode())
    return response


def app() -> web.Application:
    made = web.Application()
    made.router.add_post("/agent", answer)
    return made


if __name__ == "__main__":
    web.run_app(app(), host="127.0.0.1", port=int(sys.argv[1]) if len(sys.argv) > 1 else 18950)
