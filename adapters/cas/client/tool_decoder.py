"""Decodes tool uses of CAS: calls, asks, results, and files that are delivered in between."""

from typing import Any

from msgspec.structs import replace

import gateway.model as m
from gateway.client import decodes
from gateway.json_values import JsonObject
from gateway.ports import BackendEvent

from .readers import OpenAsks, ReceivedEvent, read_ask, read_parts, simplified_content
from .thread_decoder import ThreadDecoder, ThreadDecoders

ORIGINS = {
    "call.builtin": m.ToolOrigin.BUILTIN,
    "call.mcp": m.ToolOrigin.MCP,
    "call.client": m.ToolOrigin.CLIENT,
}
CLIENT_RESULT = "input.accepted.return_result"


class ToolDecoder:
    """The calls of one turn. The id of a call is the id of its event."""

    def __init__(self, threads: ThreadDecoders) -> None:
        self.asks = OpenAsks()
        self._threads = threads
        self._files: dict[str, m.FilePart] = {}
        self._questions: set[str] = set()
        """The calls that their questions stand for; a server may send results of them beside the answers."""
        self._answers: dict[str, ReceivedEvent] = {}

    @decodes(*ORIGINS)
    def called(self, event: ReceivedEvent, /, call: Any, server: str | None = None) -> list[BackendEvent]:
        thread = self._threads.thread_of(event)
        return [] if thread.over else self._call(event, thread, m.ToolCall(
            call_id=event.id, name=call["name"], input=call["input"] or {}, origin=ORIGINS[event.cue],
            permission=call["permission"] or m.Permission.ALLOW, server=server or None,
        ))

    def _call(self, event: ReceivedEvent, thread: ThreadDecoder, call: m.ToolCall) -> list[BackendEvent]:
        scope_id = thread.assembler.writer.scope_id
        ask = read_ask(call, [*thread.assembler.open_calls.values()])
        if isinstance(ask, m.QuestionAsk) and ask.call is None and thread.assembler.writer.in_message:
            call = replace(call, origin=m.ToolOrigin.BUILTIN)  # a call of the agent, which only its question shows
            self.asks.add(event.id, replace(ask, call=call), scope_id)
            self._questions.add(event.id)
            return thread.call(call)
        if ask is not None and event.id:
            self.asks.add(event.id, ask, scope_id)
            return []
        self.asks.made(call, scope_id)
        return thread.call(call)

    @decodes(CLIENT_RESULT, "tool.returned", "tool.returned.mcp")
    def returned(
        self, event: ReceivedEvent, /, answers: str | None, content: Any, is_error: bool | None,
    ) -> list[BackendEvent]:
        """Also the results of clients: CAS sends them once, when they come in."""
        call_id = answers or ""
        self.asks.settled(call_id)
        if call_id in self._questions and event.cue == CLIENT_RESULT:
            self._answers[call_id] = event
            return []
        self._answers.pop(call_id, None)
        thread = self._threads.thread_of_call(call_id) or self._threads.thread_of(event)
        content = simplified_content(tuple(map(self._filed, read_parts(content))))
        return thread.returned(call_id, content, is_error=bool(is_error))

    def answered(self) -> list[BackendEvent]:
        """The results of questions that the server has left to who answered them."""
        self._questions, answers = set(), [*self._answers.values()]
        return [one for event in answers for one in self.returned(event, **event.given)]

    def _filed(self, part: m.AnyPart) -> m.AnyPart:
        """A file in a result, with the facts of its delivery."""
        if not isinstance(part, m.FilePart) or part.file_id not in self._files:
            return part
        known = self._files.pop(part.file_id)
        return replace(part, media_type=part.media_type or known.media_type, size=known.size)

    @decodes("artifact.delivered")
    def delivered(self, event: ReceivedEvent, /, file: Any) -> list[BackendEvent]:
        """A file; the result that follows has it too, as a rule."""
        if file_id := file["file_id"]:
            self._files[file_id] = m.FilePart(
                name=file["name"] or file_id, file_id=file_id, media_type=file["media_type"] or None, size=file["size"])
        return []

    def left_over(self) -> list[BackendEvent]:
        """Files that no result has had."""
        return [
            m.CustomEvent(topic="artifact_delivered", payload=_artifact_payload(file)) for file in self._files.values()
        ]


def _artifact_payload(file: m.FilePart) -> JsonObject:
    return {"file_id": file.file_id, "name": file.name, "media_type": file.media_type, "size": file.size}
