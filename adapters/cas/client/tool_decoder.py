"""Decodes tool uses of CAS: calls, asks, results, and files that are delivered in between."""

from typing import Any

from msgspec.structs import replace

import gateway.model as m
from gateway.ports import BackendEvent

from .ask_readers import OpenAsks, read_ask
from .readers import ReceivedEvent, meanings, simplified_content
from .thread_decoder import ThreadDecoder, ThreadDecoders

ORIGINS = {
    "agent.tool_use": m.ToolOrigin.BUILTIN,
    "agent.mcp_tool_use": m.ToolOrigin.MCP,
    "agent.custom_tool_use": m.ToolOrigin.CLIENT,
}
CALL_ID_FIELDS = ("tool_use_id", "mcp_tool_use_id", "custom_tool_use_id")
"""Where a result names its call."""


class ToolDecoder:
    """The calls of one turn. The id of a call is the id of its event."""

    def __init__(self, threads: ThreadDecoders) -> None:
        self.asks = OpenAsks()
        self._threads = threads
        self._files: dict[str, m.FilePart] = {}
        self._questions: set[str] = set()
        """The calls that their questions stand for; a server may send results of them beside the answers."""
        self._answers: dict[str, ReceivedEvent] = {}

    def called(self, received: ReceivedEvent, thread: ThreadDecoder) -> list[BackendEvent]:
        call, scope_id = _read_call(received), thread.assembler.writer.scope_id
        ask = read_ask(call, [*thread.assembler.open_calls.values()])
        if isinstance(ask, m.QuestionAsk) and ask.call is None and thread.assembler.writer.in_message:
            call = replace(call, origin=m.ToolOrigin.BUILTIN)  # a call of the agent, which only its question shows
            self.asks.told(received.id, replace(ask, call=call), scope_id)
            self._questions.add(received.id)
            return thread.call(call)
        if ask is not None and received.id:
            self.asks.told(received.id, ask, scope_id)
            return []
        self.asks.made(call, scope_id)
        return thread.call(call)

    def returned(self, received: ReceivedEvent) -> list[BackendEvent]:
        """Also the results of clients: CAS sends them once, when they come in."""
        call_id = next((received.text(name) for name in CALL_ID_FIELDS if received.text(name)), "")
        self.asks.settled(call_id)
        if call_id in self._questions and received.type == "user.custom_tool_result":
            self._answers[call_id] = received
            return []
        self._answers.pop(call_id, None)
        thread = self._threads.thread_of_call(call_id) or self._threads.thread_of(received)
        content = simplified_content(tuple(map(self._filed, received.content())))
        return thread.returned(call_id, content, is_error=received.body.get("is_error") is True)

    def answered(self) -> list[BackendEvent]:
        """The results of questions that the server has left to who answered them."""
        self._questions, answers = set(), [*self._answers.values()]
        return [event for received in answers for event in self.returned(received)]

    def _filed(self, part: m.AnyPart) -> m.AnyPart:
        """A file in a result, with the facts of its delivery."""
        if not isinstance(part, m.FilePart) or part.file_id not in self._files:
            return part
        known = self._files.pop(part.file_id)
        return replace(part, media_type=part.media_type or known.media_type, size=known.size)

    def delivered(self, received: ReceivedEvent) -> list[BackendEvent]:
        """A file; the result that follows has it too, as a rule."""
        file_id, size = received.text("file_id"), received.body.get("size")
        if file_id:
            self._files[file_id] = m.FilePart(
                name=received.text("original_filename") or file_id, file_id=file_id,
                media_type=received.text("content_type") or None, size=size if isinstance(size, int) else None,
            )
        return []

    def left_over(self) -> list[BackendEvent]:
        """Files that no result has had."""
        return [
            m.CustomEvent(topic="artifact_delivered", payload=_artifact_payload(file)) for file in self._files.values()
        ]


def _read_call(received: ReceivedEvent) -> m.ToolCall:
    name, origin = received.text("name"), ORIGINS[received.type]
    if not name:
        raise received.malformed("it has no name")
    return m.ToolCall(
        call_id=received.id, name=name, input=dict(received.object("input")), origin=origin,
        permission=meanings().permissions.get(received.text("evaluated_permission"), m.Permission.ALLOW),
        server=(received.text("mcp_server_name") or None) if origin is m.ToolOrigin.MCP else None,
    )


def _artifact_payload(file: m.FilePart) -> dict[str, Any]:
    return {"file_id": file.file_id, "name": file.name, "media_type": file.media_type, "size": file.size}
