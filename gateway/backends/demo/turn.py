"""Where the demo agent acts: its pen, its tools, and the few things its directives have in common."""

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

import gateway.model as m
from gateway.backends.tool_executor import ToolExecutor
from gateway.backends.tools import Tool, enabled_tools
from gateway.client import BackendEvents, EventWriter
from gateway.ports import BackendEvent, Clock, Sleep, Turn

from .directive_parser import ParsedMessage, parse_message

MODEL, CONTEXT_WINDOW = "demo-1", 200_000
LONG_TEXT = 200_000
"""The words of a text of more characters than that are not counted one by one."""


class DemoTurn:
    """One turn of the demo agent. Messages open when something is to be said and end when something must be awaited."""

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
        """What the final message has to tell, line by line."""
        self.annotations: list[tuple[m.AnnotationTopic, Any]] = []
        self.json = command.output_schema is not None
        self.has_ended = False
        """Nothing more is to be done, not even to reply."""
        self._heard = count_words(m.text_of(command.content))
        self._spent, self._messages = m.Usage(), 0

    def open_message(self) -> list[BackendEvent]:
        """A message to write in, begun where none is open."""
        if self.writer.in_message:
            return []
        return [self.writer.start_message(model=MODEL, context_window=CONTEXT_WINDOW)]

    def close_message(self, stop_reason: m.StopReason) -> list[BackendEvent]:
        """The message, if one is open, ends with what is to be remarked on it."""
        if not self.writer.in_message:
            return []
        usage = count_usage(self.writer, self._heard)
        self._spent, self._messages = self._spent + usage, self._messages + 1
        remarks, self.annotations = self.annotations, []
        annotated = [
            self.writer.annotate(topic, self._billed(content) if topic is m.AnnotationTopic.BILLING else content)
            for topic, content in remarks
        ]
        return [*annotated, self.writer.end_message(stop_reason=stop_reason, usage=usage)]

    def _billed(self, content: dict[str, Any]) -> dict[str, Any]:
        """A bill is of the whole turn, up to and with the message that is about to end."""
        spent, total = self._spent, self._spent.input_tokens + self._spent.output_tokens + self._spent.thinking_tokens
        return {
            **content, "prompt_tokens": spent.input_tokens, "completion_tokens": spent.output_tokens,
            "thinking_tokens": spent.thinking_tokens, "total_tokens": total, "llm_calls": self._messages,
        }

    async def call(
        self, name: str, input: dict[str, Any], permission: m.Permission = m.Permission.ALLOW,
        origin: m.ToolOrigin = m.ToolOrigin.BUILTIN,
    ) -> BackendEvents:
        """One tool call from its message to its result."""
        for said in (*self.open_message(), *self.write_call(name, input, permission, origin)):
            yield said
        async with aclosing(self.run_calls()) as round:
            async for said in round:
                yield said

    def write_call(
        self, name: str, input: dict[str, Any], permission: m.Permission, origin: m.ToolOrigin
    ) -> list[BackendEvent]:
        tool = self.tools.get(name)
        title = tool.spec.title if tool is not None else None
        server = "demo" if origin is m.ToolOrigin.MCP else None
        return self.writer.call(name, input, permission=permission, origin=origin, display_name=title, server=server)

    async def run_calls(self) -> BackendEvents:
        """End the message with its calls, carry them out, and note what they gave back."""
        for said in self.close_message(m.StopReason.TOOL_USE):
            yield said
        round = ToolExecutor(self.turn, self.writer, self.tools, clock=self.clock)
        async with aclosing(round.run()) as events:
            async for said in events:
                yield said
        for call in self.writer.calls:
            if (back := round.results.get(call.call_id)) is not None:
                self.note_result(call.name, back)

    def note_result(self, name: str, back: m.ToolReturned) -> None:
        text = m.text_of(back.content)
        self.notes.append(f"{name} failed: {text}" if back.is_error else f"{name} returned {text}")
        self._heard += count_words(text)

    # -- the reply ------------------------------------------------------------------------------------------------

    def reply(self) -> str:
        """What the turn ends with: its notes, then the words it was given."""
        lines = list(self.notes)
        if (text := _with_attachments(self.script.text, self.command.content)) or not lines:
            greeting = self.settings.options.get("greeting") or "You said:"
            lines.append(f"{greeting} {text or '(nothing)'}")
        reply = "\n".join(lines)
        return reply.upper() if self.settings.options.get("mood") == "loud" else reply


def _with_attachments(text: str, content: m.Content) -> str:
    """The words, and how many pictures and files came with them."""
    parts = m.parts_of(content)
    counts = {name: sum(isinstance(part, kind) for part in parts) for name, kind in _ATTACHMENTS.items()}
    seen = [f"[{count} {kind}{'s' if count > 1 else ''}]" for kind, count in counts.items() if count]
    return " ".join(filter(None, (text, *seen)))


def count_usage(pen: EventWriter, heard: int) -> m.Usage:
    """Usage by the word: what was heard, what the message said, and what of it was thought."""
    thought = sum(count_words(text) for kind, text in pen.texts if kind is m.BlockKind.THINKING)
    said = sum(count_words(text) for kind, text in pen.texts if kind is not m.BlockKind.THINKING)
    return m.Usage(input_tokens=heard, output_tokens=said + thought + len(pen.calls), thinking_tokens=thought)


def count_words(text: str) -> int:
    """How many words a text has; those of a very long one are estimated."""
    return len(text.split()) if len(text) <= LONG_TEXT else len(text[:LONG_TEXT].split()) * len(text) // LONG_TEXT


_ATTACHMENTS = {"image": m.ImagePart, "file": m.FilePart}


def compaction(turn: Turn) -> m.SessionCompacted:
    """The history in a sentence, and what was saved by it."""
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
