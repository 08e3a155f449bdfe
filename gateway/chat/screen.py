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
    QuestionAsk,
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
from .words import as_json, clean, folded, many, short

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
        self._calls = OpenCalls()
        self._held: Callable[[], None] | None = None

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
        self._calls, self._held = OpenCalls(), None

    def heard(self, heard: Heard) -> None:
        if self.is_raw:
            self.note(raw(heard))
        elif isinstance(heard, Ended):
            self._show_held()
            self._ended(heard)
        elif isinstance(heard, Asked):
            if isinstance(heard.ask, QuestionAsk):
                self._held = None  # whoever asks shows the question in words
            self._show_held()
        else:
            event, scope_id = (heard.event, heard.scope_id) if isinstance(heard, Scoped) else (heard, ROOT)
            show = _SHOWN.get(type(event))
            if show is not None:
                if not isinstance(event, MessageEnded | BlockEnded):
                    self._show_held()
                show(self, event, scope_id)

    def rest(self) -> None:
        """The server waits, or is done."""
        self._show_held()
        self._page.fresh()

    def _show_held(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held()

    # -- words ----------------------------------------------------------------------------------------------------

    def _delta(self, event: BlockDelta, scope_id: str) -> None:
        if event.kind is not BlockKind.TOOL_USE:
            style = "dim italic" if event.kind is BlockKind.THINKING else ""
            self._page.words(clean(event.delta), style, self._depth(scope_id), (scope_id, event.block_id))

    def _block(self, event: BlockEnded, scope_id: str) -> None:
        depth = self._depth(scope_id)
        self._page.pause()
        if event.call is not None:
            self._called(event.call, event.torn, depth)
        elif event.image is not None:
            self._page.line(f"[image] {short(event.image.url)}", "magenta", depth)
        elif event.data is not None:
            self._page.line(f"[{short(event.data.type, 40)}] {short(as_json(event.data.content))}", "magenta", depth)

    def _called(self, call: ToolCall, torn: bool, depth: int) -> None:
        """Show the call; one that has the questions of an ask in it is not shown if the ask follows."""
        self._calls.open(call)
        line = f"● {call_line(call)}{' (broken off)' if torn else ''}"
        if isinstance(call.input.get("questions"), list) and not torn:
            self._held = lambda: self._page.line(line, "cyan", depth)
        else:
            self._page.line(line, "cyan", depth)

    def _annotated(self, event: MessageAnnotated, scope_id: str) -> None:
        self._page.line(f"{event.topic}: {short(as_json(event.content))}", "dim", self._depth(scope_id))

    def _message_ended(self, event: MessageEnded, scope_id: str) -> None:
        self._usage += event.usage

    # -- tools and sub-agents -------------------------------------------------------------------------------------

    def _output(self, event: ToolOutput, scope_id: str) -> None:
        self._page.words(clean(event.delta), "dim", self._depth(scope_id) + 1, (scope_id, event.call_id))

    def _returned(self, event: ToolReturned, scope_id: str) -> None:
        name = self._calls.close(event.call_id)
        for number, line in enumerate(folded(event.content)):
            mark = " " if number else f"└ {name}:" if name else "└"
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


class OpenCalls:
    """Which calls have not come back: where several are open at once, a result says whose it is."""

    def __init__(self) -> None:
        self._open: dict[str, ToolCall] = {}
        self._together: dict[str, ToolCall] = {}

    def open(self, call: ToolCall) -> None:
        self._open[call.call_id] = call
        if len(self._open) > 1:
            self._together |= self._open

    def close(self, call_id: str) -> str:
        """What the result is called: by the tool, with its input where the tool was called twice; nothing for one."""
        call = self._open.pop(call_id, None)
        if call is None or call_id not in self._together:
            return ""
        names = [one.display_name or one.name for one in self._together.values()]
        name = call.display_name or call.name
        return short(name, 80) if names.count(name) == 1 else call_line(call, 60)


def call_line(call: ToolCall, longest: int = 100) -> str:
    """`calc {"expression":"6*7"}`."""
    given = f" {short(as_json(call.input), longest)}" if call.input else ""
    return f"{short(call.display_name or call.name, 80)}{given}"


def spent(usage: Usage) -> str:
    """`12 tokens in · 34 out · `, and nothing where nothing is known."""
    if usage == Usage():
        return ""
    thought = f" · {usage.thinking_tokens} thinking" if usage.thinking_tokens else ""
    return f"{many(usage.input_tokens, 'token')} in · {usage.output_tokens} out{thought} · "


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
