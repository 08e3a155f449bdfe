"""Where the demo agent acts: its pen, its tools, and the few things its directives have in common."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any

from gateway.model import (
    BlockKind,
    Content,
    FilePart,
    ImagePart,
    Permission,
    SendMessage,
    StopReason,
    ToolOrigin,
    ToolReturned,
    Topic,
    Usage,
    parts_of,
    text_of,
)
from gateway.ports import Clock, Said, Turn
from gateway.speech import Pen, Speech

from .directives import Script, parse
from .round import Round
from .tools import Tool, enabled

MODEL, CONTEXT_WINDOW = "demo-1", 200_000
LONG = 200_000
"""The words of a text of more characters than that are not counted one by one."""

Sleep = Callable[[float], Awaitable[None]]


class Stage:
    """One turn of the demo agent. Messages open when something is to be said and end when something must be awaited."""

    def __init__(
        self, turn: Turn, command: SendMessage, tools: Mapping[str, Tool], *,
        clock: Clock, sleep: Sleep, delay: float = 0.0,
    ) -> None:
        self.turn, self.command, self.tools = turn, command, tools
        self.settings = turn.settings
        self.sleep, self.delay, self.clock = sleep, delay, clock
        self.pen = Pen(turn, clock=clock)
        self.script: Script = parse(text_of(command.content))
        self.enabled: dict[str, Permission] = enabled(turn)
        self.notes: list[str] = []
        """What the final message has to tell, line by line."""
        self.remarks: list[tuple[Topic, Any]] = []
        self.json = command.output_schema is not None
        self.over = False
        """Nothing more is to be done, not even to reply."""
        self._heard = words(text_of(command.content))
        self._spent, self._messages = Usage(), 0

    def open(self) -> list[Said]:
        """A message to write in, begun where none is open."""
        if self.pen.in_message:
            return []
        return [self.pen.start_message(model=MODEL, context_window=CONTEXT_WINDOW)]

    def shut(self, stop_reason: StopReason) -> list[Said]:
        """The message, if one is open, ends with what is to be remarked on it."""
        if not self.pen.in_message:
            return []
        usage = spent(self.pen, self._heard)
        self._spent, self._messages = self._spent + usage, self._messages + 1
        remarks, self.remarks = self.remarks, []
        annotated = [
            self.pen.annotate(topic, self._billed(content) if topic is Topic.BILLING else content)
            for topic, content in remarks
        ]
        return [*annotated, self.pen.end_message(stop_reason=stop_reason, usage=usage)]

    def _billed(self, content: dict[str, Any]) -> dict[str, Any]:
        """A bill is of the whole turn, up to and with the message that is about to end."""
        spent, total = self._spent, self._spent.input_tokens + self._spent.output_tokens + self._spent.thinking_tokens
        return {
            **content, "prompt_tokens": spent.input_tokens, "completion_tokens": spent.output_tokens,
            "thinking_tokens": spent.thinking_tokens, "total_tokens": total, "llm_calls": self._messages,
        }

    async def call(
        self, name: str, input: dict[str, Any], permission: Permission = Permission.ALLOW,
        origin: ToolOrigin = ToolOrigin.BUILTIN,
    ) -> Speech:
        """One tool call from its message to its result."""
        for said in (*self.open(), *self.write_call(name, input, permission, origin)):
            yield said
        async with aclosing(self.carry_out()) as round:
            async for said in round:
                yield said

    def write_call(self, name: str, input: dict[str, Any], permission: Permission, origin: ToolOrigin) -> list[Said]:
        tool = self.tools.get(name)
        title = tool.spec.title if tool is not None else None
        server = "demo" if origin is ToolOrigin.MCP else None
        return self.pen.call(name, input, permission=permission, origin=origin, display_name=title, server=server)

    async def carry_out(self) -> Speech:
        """End the message with its calls, carry them out, and note what they gave back."""
        for said in self.shut(StopReason.TOOL_USE):
            yield said
        round = Round(self.turn, self.pen, self.tools, clock=self.clock)
        async with aclosing(round.run()) as events:
            async for said in events:
                yield said
        for call in self.pen.calls:
            if (back := round.returned.get(call.call_id)) is not None:
                self.note(call.name, back)

    def note(self, name: str, back: ToolReturned) -> None:
        text = text_of(back.content)
        self.notes.append(f"{name} failed: {text}" if back.is_error else f"{name} returned {text}")
        self._heard += words(text)

    # -- the reply ------------------------------------------------------------------------------------------------

    def reply(self) -> str:
        """What the turn ends with: its notes, then the words it was given."""
        lines = list(self.notes)
        if (text := _seen(self.script.text, self.command.content)) or not lines:
            greeting = self.settings.options.get("greeting") or "You said:"
            lines.append(f"{greeting} {text or '(nothing)'}")
        reply = "\n".join(lines)
        return reply.upper() if self.settings.options.get("mood") == "loud" else reply


def _seen(text: str, content: Content) -> str:
    """The words, and how many pictures and files came with them."""
    parts = parts_of(content)
    counts = {name: sum(isinstance(part, kind) for part in parts) for name, kind in _COUNTED.items()}
    seen = [f"[{count} {kind}{'s' if count > 1 else ''}]" for kind, count in counts.items() if count]
    return " ".join(filter(None, (text, *seen)))


def spent(pen: Pen, heard: int) -> Usage:
    """Usage by the word: what was heard, what the message said, and what of it was thought."""
    thought = sum(words(text) for kind, text in pen.wholes if kind is BlockKind.THINKING)
    said = sum(words(text) for kind, text in pen.wholes if kind is not BlockKind.THINKING)
    return Usage(input_tokens=heard, output_tokens=said + thought + len(pen.calls), thinking_tokens=thought)


def words(text: str) -> int:
    """How many words a text has; those of a very long one are estimated."""
    return len(text.split()) if len(text) <= LONG else len(text[:LONG].split()) * len(text) // LONG


_COUNTED = {"image": ImagePart, "file": FilePart}
