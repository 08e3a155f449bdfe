"""The state of one turn of the demo agent, and what its directives have in common."""

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

import gateway.model as m
from gateway.backends.tool_executor import ToolExecutor
from gateway.backends.tools import Tool, enabled_tools
from gateway.client import BackendEvents, EventWriter
from gateway.json_values import JsonObject
from gateway.ports import BackendEvent, Clock, Sleep, Turn

from .directive_parser import ParsedMessage, parse_message

MODEL, CONTEXT_WINDOW = "demo-1", 200_000
LONG_TEXT = 200_000
"""The words of a longer text are estimated, not counted."""


class DemoTurn:
    """One turn of the demo agent. A message opens with the first event that needs it and ends before every ask."""

    def __init__(
        self, turn: Turn, command: m.SendMessage, tools: Mapping[str, Tool], *,
        clock: Clock, sleep: Sleep, delay: float = 0.0,
    ) -> None:
        self.turn, self.command, self.tools = turn, command, tools
        self.settings = turn.settings
        self.sleep, self.delay, self.clock = sleep, delay, clock
        self.writer = EventWriter(turn, clock=clock)
        self.script: ParsedMessage = parse_message(m.text_of(command.content))
        self.enabled: dict[str, m.Permission] = enabled_tools(turn)
        self.notes: list[str] = []
        """The lines of the final message."""
        self.annotations: list[tuple[m.AnnotationTopic, Any]] = []
        self.json = command.output_schema is not None
        self.has_ended = False
        """Whether the turn ends without a reply."""
        self._input_words = count_words(m.text_of(command.content))
        self._spent, self._messages = m.Usage(), 0

    def open_message(self) -> list[BackendEvent]:
        """Start a message if none is open."""
        if self.writer.in_message:
            return []
        return [self.writer.start_message(model=MODEL, context_window=CONTEXT_WINDOW)]

    def close_message(self, stop_reason: m.StopReason) -> list[BackendEvent]:
        """End the open message, if any, after its annotations."""
        if not self.writer.in_message:
            return []
        usage = count_usage(self.writer, self._input_words)
        self._spent, self._messages = self._spent + usage, self._messages + 1
        remarks, self.annotations = self.annotations, []
        annotated = [
            self.writer.annotate(topic, self._billed(content) if topic is m.AnnotationTopic.BILLING else content)
            for topic, content in remarks
        ]
        return [*annotated, self.writer.end_message(stop_reason=stop_reason, usage=usage)]

    def _billed(self, content: Mapping[str, object]) -> dict[str, object]:
        """The bill of the whole turn, with the message that is about to end."""
        spent, total = self._spent, self._spent.input_tokens + self._spent.output_tokens + self._spent.thinking_tokens
        return {
            **content, "prompt_tokens": spent.input_tokens, "completion_tokens": spent.output_tokens,
            "thinking_tokens": spent.thinking_tokens, "total_tokens": total, "llm_calls": self._messages,
        }

    def call(
        self, name: str, input: JsonObject, permission: m.Permission = m.Permission.ALLOW,
        origin: m.ToolOrigin = m.ToolOrigin.BUILTIN,
    ) -> BackendEvents:
        """One tool call from its message to its result."""
        return self.run_calls([*self.open_message(), *self.write_call(name, input, permission, origin)])

    def write_call(
        self, name: str, input: JsonObject, permission: m.Permission, origin: m.ToolOrigin
    ) -> list[BackendEvent]:
        tool = self.tools.get(name)
        title = tool.spec.title if tool is not None else None
        server = "demo" if origin is m.ToolOrigin.MCP else None
        return self.writer.call(name, input, permission=permission, origin=origin, display_name=title, server=server)

    async def run_calls(self, written: list[BackendEvent]) -> BackendEvents:
        """Emit the message with its calls, execute them, and note their results."""
        for event in (*written, *self.close_message(m.StopReason.TOOL_USE)):
            yield event
        executor = ToolExecutor(self.turn, self.writer, self.tools, clock=self.clock)
        async with aclosing(executor.run()) as events:
            async for event in events:
                yield event
        for call in self.writer.calls:
            if (result := executor.results.get(call.call_id)) is not None:
                self.note_result(call.name, result)

    def note_result(self, name: str, result: m.ToolReturned) -> None:
        text = m.text_of(result.content)
        self.notes.append(f"{name} failed: {text}" if result.is_error else f"{name} returned {text}")
        self._input_words += count_words(text)

    # -- the reply ------------------------------------------------------------------------------------------------

    def reply(self) -> str:
        """The final text: the notes, then the text of the message."""
        lines = list(self.notes)
        if (text := _with_attachments(self.script.text, self.command.content)) or not lines:
            greeting = self.settings.options.get("greeting") or "You said:"
            lines.append(f"{greeting} {text or '(nothing)'}")
        reply = "\n".join(lines)
        return reply.upper() if self.settings.options.get("mood") == "loud" else reply


def _with_attachments(text: str, content: m.Content) -> str:
    """The text, and the number of its images and files."""
    if isinstance(content, str):
        return text
    parts = m.parts_of(content)
    counts = {name: sum(isinstance(part, kind) for part in parts) for name, kind in _ATTACHMENTS.items()}
    seen = [f"[{count} {kind}{'s' if count > 1 else ''}]" for kind, count in counts.items() if count]
    return " ".join(filter(None, (text, *seen)))


def count_usage(writer: EventWriter, input_words: int) -> m.Usage:
    """The usage of a message, with one token per word."""
    words = thinking = 0
    for kind, text in writer.texts:
        words += (count := count_words(text))
        thinking += count if kind is m.BlockKind.THINKING else 0
    return m.Usage(input_tokens=input_words, output_tokens=words + len(writer.calls), thinking_tokens=thinking)


def count_words(text: str) -> int:
    """The number of words; estimated for a very long text."""
    return len(text.split()) if len(text) <= LONG_TEXT else len(text[:LONG_TEXT].split()) * len(text) // LONG_TEXT


_ATTACHMENTS = {"image": m.ImagePart, "file": m.FilePart}


def compaction(turn: Turn) -> m.SessionCompacted:
    """The history in one sentence."""
    history = turn.history
    last = m.text_of(history[-1].content).strip() if history else ""
    summary = f"{len(history)} messages were exchanged." + (f" The last one was: {last[:80]}" if last else "")
    command = turn.command
    return m.SessionCompacted(
        compaction_id=turn.mint("cmp"),
        summary=summary,
        preview=summary[:40],
        archived=len(history),
        tokens_before=sum(count_words(m.text_of(entry.content)) for entry in history),
        tokens_after=count_words(summary),
        trigger=command.trigger if isinstance(command, m.Compact) else m.CompactionTrigger.MANUAL,
    )
