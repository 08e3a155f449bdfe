"""What is heard, shown to a person: words as they come, thoughts dimmed, tools in short, sub-agents to the right."""

import time
from collections.abc import Callable
from typing import Any

import msgspec
from rich.console import Console

from gateway.model import (
    ROOT,
    BlockDelta,
    BlockEnded,
    BlockKind,
    FaultRaised,
    Level,
    MessageAnnotated,
    MessageEnded,
    NoticePosted,
    Outcome,
    ScopeMessage,
    ScopeOpened,
    ScopeStatus,
    ScopeStatusChanged,
    SessionCompacted,
    SessionUpdated,
    StopReason,
    ToolCall,
    ToolOutput,
    ToolReturned,
    Usage,
    text_of,
)
from gateway.ports import Clock, Scoped
from gateway.upstream import Asked, Ended, Heard

from .page import Page
from .words import as_json, clean, folded, short

LOUD = {Level.INFO: "cyan", Level.WARNING: "yellow", Level.ERROR: "red"}
ENDS = {
    StopReason.MAX_TOKENS: "it ran out of tokens", StopReason.MAX_STEPS: "it took too many steps",
    StopReason.REFUSAL: "it refused to go on", StopReason.TIMEOUT: "it took too long",
}
"""Ends that a reader would not guess."""


class TerminalScreen:
    """One conversation on one terminal."""

    def __init__(self, console: Console, clock: Clock = time.monotonic) -> None:
        self.is_raw = False
        self._page = Page(console)
        self._clock = clock
        self._began = 0.0
        self._usage = Usage()
        self._depths: dict[str, int] = {ROOT: 0}

    # -- beside the conversation ----------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        self._page.line(clean(text), "dim")

    def trouble(self, text: str) -> None:
        self._page.line(clean(text), "red")

    def ask(self, text: str) -> None:
        """Something that a person is to read and answer."""
        self._page.line(clean(text), "bold")

    # -- a turn ---------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self._began, self._usage, self._depths = self._clock(), Usage(), {ROOT: 0}

    def heard(self, heard: Heard) -> None:
        if self.is_raw:
            self.note(raw(heard))
        elif isinstance(heard, Ended):
            self._ended(heard)
        elif not isinstance(heard, Asked):
            event, scope_id = (heard.event, heard.scope_id) if isinstance(heard, Scoped) else (heard, ROOT)
            show = _SHOWN.get(type(event))
            if show is not None:
                show(self, event, scope_id)

    def rest(self) -> None:
        """The server waits, or is done."""
        self._page.fresh()

    # -- words ----------------------------------------------------------------------------------------------------

    def _delta(self, event: BlockDelta, scope_id: str) -> None:
        if event.kind is not BlockKind.TOOL_USE:
            style = "dim italic" if event.kind is BlockKind.THINKING else ""
            self._page.words(clean(event.delta), style, self._depth(scope_id), (scope_id, event.block_id))

    def _block(self, event: BlockEnded, scope_id: str) -> None:
        depth = self._depth(scope_id)
        if event.call is not None:
            torn = " (broken off)" if event.torn else ""
            self._page.line(f"● {call_line(event.call)}{torn}", "cyan", depth)
        elif event.image is not None:
            self._page.line(f"[image] {short(event.image.url)}", "magenta", depth)
        elif event.data is not None:
            self._page.line(f"[{short(event.data.type, 40)}] {short(as_json(event.data.content))}", "magenta", depth)

    def _annotated(self, event: MessageAnnotated, scope_id: str) -> None:
        self._page.line(f"{event.topic}: {short(as_json(event.content))}", "dim", self._depth(scope_id))

    def _message_ended(self, event: MessageEnded, scope_id: str) -> None:
        self._usage += event.usage

    # -- tools and sub-agents -------------------------------------------------------------------------------------

    def _output(self, event: ToolOutput, scope_id: str) -> None:
        self._page.words(clean(event.delta), "dim", self._depth(scope_id) + 1, (scope_id, event.call_id))

    def _returned(self, event: ToolReturned, scope_id: str) -> None:
        for number, line in enumerate(folded(event.content)):
            mark = "└" if not number else " "
            self._page.line(f"  {mark} {line}", "red" if event.is_error else "green", self._depth(scope_id))

    def _opened(self, event: ScopeOpened, scope_id: str) -> None:
        depth = self._depth(event.parent)
        self._depths[scope_id] = depth + 1
        name = event.title or event.agent or event.role
        self._page.line(f"▼ sub-agent {short(name, 80)}", "cyan", depth)

    def _scope(self, event: ScopeStatusChanged, scope_id: str) -> None:
        if event.status is ScopeStatus.ENDED:
            self._page.line("▲ sub-agent is done", "cyan", max(0, self._depth(scope_id) - 1))

    def _letter(self, event: ScopeMessage, scope_id: str) -> None:
        self._page.line(f"✉ {short(text_of(event.content))}", "dim", self._depth(scope_id))

    # -- the rest -------------------------------------------------------------------------------------------------

    def _notice(self, event: NoticePosted, scope_id: str) -> None:
        self._page.line(f"! {short(event.title)}", LOUD[event.level])

    def _updated(self, event: SessionUpdated, scope_id: str) -> None:
        if event.title is not None:
            self._page.line(f"title: {short(event.title)}", "dim")

    def _compacted(self, event: SessionCompacted, scope_id: str) -> None:
        self._page.line(f"the history was summed up: {short(event.summary) or 'without words'}", "dim")

    def _fault(self, event: FaultRaised, scope_id: str) -> None:
        self._page.line(f"! {short(event.fault.message)}", "red", self._depth(scope_id))

    def _ended(self, ended: Ended) -> None:
        if ended.fault is not None:
            self.trouble(f"the agent failed: {ended.fault.message}")
        elif ended.outcome is Outcome.INTERRUPTED:
            self.note("interrupted")
        elif ended.stop_reason in ENDS:
            self.note(ENDS[ended.stop_reason])
        if ended.result is not None:
            self._page.line(short(as_json(ended.result)), "magenta")
        self.note(f"{spent(self._usage)}{self._clock() - self._began:.1f} s")

    def _depth(self, scope_id: str) -> int:
        return self._depths.get(scope_id, 1)


def call_line(call: ToolCall) -> str:
    """`calc {"expression":"6*7"}`."""
    given = f" {short(as_json(call.input), 100)}" if call.input else ""
    return f"{short(call.display_name or call.name, 80)}{given}"


def spent(usage: Usage) -> str:
    """`12 tokens in · 34 out · `, and nothing where nothing is known."""
    if usage == Usage():
        return ""
    thought = f" · {usage.thinking_tokens} thinking" if usage.thinking_tokens else ""
    return f"{usage.input_tokens} tokens in · {usage.output_tokens} out{thought} · "


def raw(heard: Heard) -> str:
    """The event itself, in one line."""
    event, scope = (heard.event, f"[{heard.scope_id}] ") if isinstance(heard, Scoped) else (heard, "")
    name = {Asked: "asked", Ended: "ended"}.get(type(event)) or getattr(event, "name", "")
    fields = msgspec.to_builtins(event)
    fields.pop("type", None)
    return short(f"{scope}{name} {as_json(fields)}", 1000)


_SHOWN: dict[type, Callable[[TerminalScreen, Any, str], None]] = {
    BlockDelta: TerminalScreen._delta,
    BlockEnded: TerminalScreen._block,
    MessageAnnotated: TerminalScreen._annotated,
    MessageEnded: TerminalScreen._message_ended,
    ToolOutput: TerminalScreen._output,
    ToolReturned: TerminalScreen._returned,
    ScopeOpened: TerminalScreen._opened,
    ScopeStatusChanged: TerminalScreen._scope,
    ScopeMessage: TerminalScreen._letter,
    NoticePosted: TerminalScreen._notice,
    SessionUpdated: TerminalScreen._updated,
    SessionCompacted: TerminalScreen._compacted,
    FaultRaised: TerminalScreen._fault,
}
