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

    def called(self, told: ReceivedEvent, voice: ThreadDecoder) -> list[BackendEvent]:
        call, scope_id = _read_call(told), voice.scribe.writer.scope_id
        ask = read_ask(call, [*voice.scribe.open_calls.values()])
        if isinstance(ask, m.QuestionAsk) and ask.call is None and voice.scribe.writer.in_message:
            call = replace(call, origin=m.ToolOrigin.BUILTIN)  # a call of the agent, which only its question shows
            self.asks.told(told.id, replace(ask, call=call), scope_id)
            self._questions.add(told.id)
            return voice.call(call)
        if ask is not None and told.id:
            self.asks.told(told.id, ask, scope_id)
            return []
        self.asks.made(call, scope_id)
        return voice.call(call)

    def returned(self, told: ReceivedEvent) -> list[BackendEvent]:
        """Also the results of clients: CAS sends them once, when they come in."""
        call_id = next((told.text(name) for name in CALL_ID_FIELDS if told.text(name)), "")
        self.asks.settled(call_id)
        if call_id in self._questions and told.type == "user.custom_tool_result":
            self._answers[call_id] = told
            return []
        self._answers.pop(call_id, None)
        voice = self._threads.voice_of_call(call_id) or self._threads.voice(told)
        content = simplified_content(tuple(map(self._filed, told.content())))
        return voice.returned(call_id, content, is_error=told.body.get("is_error") is True)

    def answered(self) -> list[BackendEvent]:
        """The results of questions that the server has left to who answered them."""
        self._questions, answers = set(), [*self._answers.values()]
        return [said for told in answers for said in self.returned(told)]

    def _filed(self, part: m.AnyPart) -> m.AnyPart:
        """A file in a result, with the facts of its delivery."""
        if not isinstance(part, m.FilePart) or part.file_id not in self._files:
            return part
        known = self._files.pop(part.file_id)
        return replace(part, media_type=part.media_type or known.media_type, size=known.size)

    def delivered(self, told: ReceivedEvent) -> list[BackendEvent]:
        """A file; the result that follows has it too, as a rule."""
        file_id, size = told.text("file_id"), told.body.get("size")
        if file_id:
            self._files[file_id] = m.FilePart(
                name=told.text("original_filename") or file_id, file_id=file_id,
                media_type=told.text("content_type") or None, size=size if isinstance(size, int) else None,
            )
        return []

    def left_over(self) -> list[BackendEvent]:
        """Files that no result has had."""
        return [
            m.CustomEvent(topic="artifact_delivered", payload=_artifact_payload(file)) for file in self._files.values()
        ]


def _read_call(told: ReceivedEvent) -> m.ToolCall:
    name, origin = told.text("name"), ORIGINS[told.type]
    if not name:
        raise told.malformed("it has no name")
    return m.ToolCall(
        call_id=told.id, name=name, input=dict(told.object("input")), origin=origin,
        permission=meanings().permissions.get(told.text("evaluated_permission"), m.Permission.ALLOW),
        server=(told.text("mcp_server_name") or None) if origin is m.ToolOrigin.MCP else None,
    )


def _artifact_payload(file: m.FilePart) -> dict[str, Any]:
    return {"file_id": file.file_id, "name": file.name, "media_type": file.media_type, "size": file.size}
