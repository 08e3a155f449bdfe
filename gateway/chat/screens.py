"""Shows events to a person at a terminal, or writes replies to a pipe."""

import time
from collections.abc import Callable
from typing import Any, TextIO

import msgspec
from rich.console import Console

import gateway.model as m
from gateway.ports import Clock, DecodedItem, RemoteAsk, RemoteTurnEnd, ScopedEvent

from .text_layout import TerminalWriter, as_json, escape_controls, first_lines, plural, shorten

LEVEL_STYLES = {m.NoticeLevel.INFO: "cyan", m.NoticeLevel.WARNING: "yellow", m.NoticeLevel.ERROR: "red"}
STOP_NOTES = {
    m.StopReason.MAX_TOKENS: "it ran out of tokens", m.StopReason.MAX_STEPS: "it took too many steps",
    m.StopReason.REFUSAL: "it refused to go on", m.StopReason.TIMEOUT: "it took too long",
}
"""Texts for stop reasons that a reader would not guess."""


class TerminalScreen:
    """Shows a conversation: streamed text, dimmed thinking, short tool calls, sub-agents indented."""

    def __init__(self, console: Console, clock: Clock = time.monotonic) -> None:
        self.is_raw = False
        self._page = TerminalWriter(console)
        self._clock = clock
        self._began = 0.0
        self._usage = m.Usage()
        self._depths: dict[str, int] = {m.ROOT: 0}
        self._calls = OpenCalls()
        self._held: Callable[[], None] | None = None

    # -- beside the conversation ----------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        self._page.line(escape_controls(text), "dim")

    def error(self, text: str) -> None:
        self._page.line(escape_controls(text), "red")

    def ask(self, text: str) -> None:
        """Show a text that the person should read and answer."""
        self._page.line(escape_controls(text), "bold")

    # -- a turn ---------------------------------------------------------------------------------------------------

    def begin_turn(self) -> None:
        self._began, self._usage, self._depths = self._clock(), m.Usage(), {m.ROOT: 0}
        self._calls, self._held = OpenCalls(), None

    def show(self, item: DecodedItem) -> None:
        if self.is_raw:
            self.note(raw_line(item))
        elif isinstance(item, RemoteTurnEnd):
            self._show_held()
            self._ended(item)
        elif isinstance(item, RemoteAsk):
            if isinstance(item.ask, m.QuestionAsk):
                self._held = None  # the prompter shows the question as text
            self._show_held()
        else:
            event, scope_id = (item.event, item.scope_id) if isinstance(item, ScopedEvent) else (item, m.ROOT)
            show = _SHOW_BY_TYPE.get(type(event))
            if show is not None:
                if not isinstance(event, m.MessageEnded | m.BlockEnded):
                    self._show_held()
                show(self, event, scope_id)

    def end_output(self) -> None:
        """End the output of a turn, because the server waits or has finished."""
        self._show_held()
        self._page.start_line()

    def _show_held(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held()

    # -- text -----------------------------------------------------------------------------------------------------

    def _delta(self, event: m.BlockDelta, scope_id: str) -> None:
        if event.kind is not m.BlockKind.TOOL_USE:
            style = "dim italic" if event.kind is m.BlockKind.THINKING else ""
            self._page.write(escape_controls(event.delta), style, self._depth(scope_id), (scope_id, event.block_id))

    def _block(self, event: m.BlockEnded, scope_id: str) -> None:
        depth = self._depth(scope_id)
        self._page.pause()
        if event.call is not None:
            self._called(event.call, event.torn, depth)
        elif event.image is not None:
            self._page.line(f"[image] {shorten(event.image.url)}", "magenta", depth)
        elif event.data is not None:
            self._page.line(
                f"[{shorten(event.data.type, 40)}] {shorten(as_json(event.data.content))}", "magenta", depth
            )

    def _called(self, call: m.ToolCall, torn: bool, depth: int) -> None:
        """Show the call; a call that contains the questions of an ask is left out if the ask follows."""
        self._calls.open(call)
        line = f"● {call_line(call)}{' (incomplete)' if torn else ''}"
        if isinstance(call.input.get("questions"), list) and not torn:
            self._held = lambda: self._page.line(line, "cyan", depth)
        else:
            self._page.line(line, "cyan", depth)

    def _annotated(self, event: m.MessageAnnotated, scope_id: str) -> None:
        self._page.line(f"{event.topic}: {shorten(as_json(event.content))}", "dim", self._depth(scope_id))

    def _message_ended(self, event: m.MessageEnded, scope_id: str) -> None:
        self._usage += event.usage

    # -- tools and sub-agents -------------------------------------------------------------------------------------

    def _output(self, event: m.ToolOutput, scope_id: str) -> None:
        self._page.write(escape_controls(event.delta), "dim", self._depth(scope_id) + 1, (scope_id, event.call_id))

    def _returned(self, event: m.ToolReturned, scope_id: str) -> None:
        name = self._calls.close(event.call_id)
        for number, line in enumerate(first_lines(event.content)):
            mark = " " if number else f"└ {name}:" if name else "└"
            self._page.line(f"  {mark} {line}", "red" if event.is_error else "green", self._depth(scope_id))

    def _opened(self, event: m.ScopeOpened, scope_id: str) -> None:
        depth = self._depth(event.parent)
        self._depths[scope_id] = depth + 1
        name = event.title or event.agent or event.role
        self._page.line(f"▼ sub-agent {shorten(name, 80)}", "cyan", depth)

    def _scope(self, event: m.ScopeStatusChanged, scope_id: str) -> None:
        if event.status is m.ScopeStatus.ENDED:
            self._page.line("▲ sub-agent is done", "cyan", max(0, self._depth(scope_id) - 1))

    def _letter(self, event: m.ScopeMessage, scope_id: str) -> None:
        self._page.line(f"✉ {shorten(m.text_of(event.content))}", "dim", self._depth(scope_id))

    # -- other events ---------------------------------------------------------------------------------------------

    def _notice(self, event: m.NoticePosted, scope_id: str) -> None:
        self._page.line(f"! {shorten(event.title)}", LEVEL_STYLES[event.level])

    def _updated(self, event: m.SessionUpdated, scope_id: str) -> None:
        if event.title is not None:
            self._page.line(f"title: {shorten(event.title)}", "dim")

    def _compacted(self, event: m.SessionCompacted, scope_id: str) -> None:
        self._page.line(f"the history was compacted: {shorten(event.summary) or 'without words'}", "dim")

    def _fault(self, event: m.FaultRaised, scope_id: str) -> None:
        self._page.line(f"! {shorten(event.fault.message)}", "red", self._depth(scope_id))

    def _ended(self, ended: RemoteTurnEnd) -> None:
        if ended.fault is not None:
            self.error(f"the agent failed: {ended.fault.message}")
        elif ended.outcome is m.Outcome.INTERRUPTED:
            self.note("interrupted")
        elif ended.stop_reason in STOP_NOTES:
            self.note(STOP_NOTES[ended.stop_reason])
        if ended.result is not None:
            self._page.line(shorten(as_json(ended.result)), "magenta")
        self.note(f"{usage_text(self._usage)}{self._clock() - self._began:.1f} s")

    def _depth(self, scope_id: str) -> int:
        return self._depths.get(scope_id, 1)


class OpenCalls:
    """The calls without a result: if several are open, a result is shown with the name of its call."""

    def __init__(self) -> None:
        self._open: dict[str, m.ToolCall] = {}
        self._together: dict[str, m.ToolCall] = {}

    def open(self, call: m.ToolCall) -> None:
        self._open[call.call_id] = call
        if len(self._open) > 1:
            self._together |= self._open

    def close(self, call_id: str) -> str:
        """Return the name of the call for its result, with the input if the tool runs twice; empty if it runs alone."""
        call = self._open.pop(call_id, None)
        if call is None or call_id not in self._together:
            return ""
        names = [one.display_name or one.name for one in self._together.values()]
        name = call.display_name or call.name
        return shorten(name, 80) if names.count(name) == 1 else call_line(call, 60)


def call_line(call: m.ToolCall, longest: int = 100) -> str:
    """Return `calc {"expression":"6*7"}`."""
    given = f" {shorten(as_json(call.input), longest)}" if call.input else ""
    return f"{shorten(call.display_name or call.name, 80)}{given}"


def usage_text(usage: m.Usage) -> str:
    """Return `12 tokens in · 34 out · `, or nothing if the usage is unknown."""
    if usage == m.Usage():
        return ""
    thought = f" · {usage.thinking_tokens} thinking" if usage.thinking_tokens else ""
    return f"{plural(usage.input_tokens, 'token')} in · {usage.output_tokens} out{thought} · "


def raw_line(item: DecodedItem) -> str:
    """Return the event as one line of JSON."""
    event, scope = (item.event, f"[{item.scope_id}] ") if isinstance(item, ScopedEvent) else (item, "")
    name = {RemoteAsk: "asked", RemoteTurnEnd: "ended"}.get(type(event)) or getattr(event, "name", "")
    fields = msgspec.to_builtins(event)
    fields.pop("type", None)
    return shorten(f"{scope}{name} {as_json(fields)}", 1000)


_SHOW_BY_TYPE: dict[type, Callable[[TerminalScreen, Any, str], None]] = {
    m.BlockDelta: TerminalScreen._delta,
    m.BlockEnded: TerminalScreen._block,
    m.MessageAnnotated: TerminalScreen._annotated,
    m.MessageEnded: TerminalScreen._message_ended,
    m.ToolOutput: TerminalScreen._output,
    m.ToolReturned: TerminalScreen._returned,
    m.ScopeOpened: TerminalScreen._opened,
    m.ScopeStatusChanged: TerminalScreen._scope,
    m.ScopeMessage: TerminalScreen._letter,
    m.NoticePosted: TerminalScreen._notice,
    m.SessionUpdated: TerminalScreen._updated,
    m.SessionCompacted: TerminalScreen._compacted,
    m.FaultRaised: TerminalScreen._fault,
}


class PlainScreen:
    """Writes replies without control codes; everything else goes to `beside`."""

    def __init__(self, reply: TextIO, beside: TextIO) -> None:
        self.is_raw = False
        self._reply, self._beside = reply, beside
        self._at_start = True

    def note(self, text: str) -> None:
        """Do nothing: notes on progress are for people."""

    def error(self, text: str) -> None:
        self.end_output()
        self._put(self._beside, f"{escape_controls(text)}\n")

    def ask(self, text: str) -> None:
        self.error(text)

    def begin_turn(self) -> None:
        self._at_start = True

    def show(self, item: DecodedItem) -> None:
        if self.is_raw:
            self._words(f"{raw_line(item)}\n")
        elif isinstance(item, RemoteTurnEnd):
            if item.fault is not None:
                self.error(f"the agent failed: {item.fault.message}")
        elif isinstance(item, m.BlockDelta) and item.kind is m.BlockKind.TEXT:
            self._words(escape_controls(item.delta))
        elif isinstance(item, m.BlockEnded) and item.image is not None:
            self._words(escape_controls(m.image_markdown(item.image)))

    def end_output(self) -> None:
        if not self._at_start:
            self._words("\n")

    def _words(self, text: str) -> None:
        if text:
            self._put(self._reply, text)
            self._at_start = text.endswith("\n")

    @staticmethod
    def _put(target: TextIO, text: str) -> None:
        target.write(text)
        target.flush()
