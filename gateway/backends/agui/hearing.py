"""A run of an AG-UI agent, heard: its events become lawful events of the house. No clock, no wire."""

from collections.abc import Callable, Container
from typing import Any

import structlog

from gateway.errors import BackendFailed
from gateway.ids import Mint
from gateway.model import StopReason, ToolCall, ToolOrigin, Usage
from gateway.ports import Said

from .beside import Shared, conversation, custom, raw, step
from .langgraph import ANNOUNCES, announced
from .messages import content_of
from .voice import CALL, TEXT, Voice
from .voices import UNTOLD, Voices
from .wire import Event, Interrupt, RunOutcome

log = structlog.get_logger("dragoman.agui")

DENIED = "Tool call denied"
"""What came of a call that people have not allowed, where the agent does not say."""
OUTCOMES = ("success", "interrupt", "cancelled")
QUOTED = 500
"""So much of an agent's complaint is passed on."""
NOT_OURS = ("user", "system", "developer")
"""Texts of these roles are not the agent's."""
CHUNKS = {"TEXT_MESSAGE_CHUNK": TEXT, "TOOL_CALL_CHUNK": CALL}
BESIDE = ("RAW", "CUSTOM", "STATE_SNAPSHOT", "STATE_DELTA", "STEP_STARTED", "STEP_FINISHED")
"""What may come between the chunks of one text or call."""


class Hearing:
    """The runs of one turn, one after the other; calls may stay open from one run to the next."""

    def __init__(self, mint: Mint, client_tools: frozenset[str], state: Any = None) -> None:
        self.shared = Shared(state)
        self.thread_id: str | None = None
        self.outcome: RunOutcome | None = None
        """How the run ended; None while it goes on."""
        self.usage = Usage()
        self.voices = Voices(mint, client_tools)
        self._root = self.voices.root
        self._chunk: tuple[Voice, str, str] | None = None
        self._silent: set[str] = set()
        self._announced: list[Event] = []
        self.denied: set[str] = set()
        """The calls that people have not allowed."""

    @property
    def ids(self) -> dict[str, str]:
        """The agent's ids of its own messages, by ours."""
        return self._root.ids

    @property
    def open_calls(self) -> dict[str, tuple[Voice, ToolCall]]:
        """The calls that have not come back, whoever made them."""
        return self.voices.open_calls

    def take_up(self, call: ToolCall) -> None:
        """A call that was made before the server stopped."""
        self._root.scribe.open_calls[call.call_id] = call

    # -- a run ----------------------------------------------------------------------------------------------------

    def start(self) -> list[Said]:
        self.outcome, self.usage, self._chunk, self._root.texts = None, Usage(), None, []
        self._announced = []
        for voice in self.voices.inner_first:
            voice.carried = set(self.open_calls)
        return [] if self.open_calls else self._root.begin()  # a call that was waited for is told of first

    def feed(self, event: Event) -> list[Said]:
        handler = _HANDLERS.get(event.type)
        if handler is None or self.outcome is not None:
            return []
        if event.type == "CUSTOM" and event.name == ANNOUNCES:
            self._announced.append(event)  # whether the run waits for an answer is known when it has finished
            return []
        said = [] if event.type in CHUNKS or event.type in BESIDE else self._end_chunk()
        voice, opened = self.voices.of(event)
        return [*said, *opened, *handler(self, voice, event)]

    def finish(self) -> list[Said]:
        """The run is over: every message ends, whoever's it is."""
        voices, said = self.voices.inner_first, self._end_chunk()
        for voice in voices:
            said += [*voice.settle(), *voice.end_calls()]
        stop = StopReason.TOOL_USE if self.waiting_calls or self.interrupts else StopReason.END_TURN
        if self.usage != Usage():
            said += self._root.begin()
        for voice in voices:
            said += voice.finish(stop, self.usage if voice is self._root else Usage())
        return said

    def leave(self, waits_for: Container[str]) -> list[Said]:
        """Calls of which nothing more will be heard are over; those that are waited for stay open."""
        left = [(voice, call_id) for call_id, (voice, _) in self.open_calls.items() if call_id not in waits_for]
        return [event for voice, call_id in left for event in voice.scribe.returned(
            call_id, DENIED if call_id in self.denied else UNTOLD, is_error=call_id in self.denied,
        )]

    @property
    def interrupts(self) -> tuple[Interrupt, ...]:
        """What the run waits for."""
        return self.outcome.interrupts if self.outcome is not None and self.outcome.type == "interrupt" else ()

    @property
    def waiting_calls(self) -> list[ToolCall]:
        """The client's own tools that the run has called and left to it."""
        return [call for _, call in self.open_calls.values() if call.origin is ToolOrigin.CLIENT]

    def end_scopes(self) -> list[Said]:
        """Sub-agents that have not ended, end."""
        return self.voices.end_subagents()

    # -- runs -----------------------------------------------------------------------------------------------------

    def _run_started(self, voice: Voice, event: Event) -> list[Said]:
        self.thread_id = event.thread_id or self.thread_id
        return []

    def _run_finished(self, voice: Voice, event: Event) -> list[Said]:
        told = event.outcome
        self.outcome = RunOutcome(type=told) if isinstance(told, str) else told or self._unnamed_outcome()
        if self.outcome.type not in OUTCOMES:
            log.warning("unknown outcome of a run", reason=self.outcome.type[:100])
        self.usage = _usage(event)
        return [] if self.interrupts else [said for one in self._announced for said in custom(voice, one)]

    def _unnamed_outcome(self) -> RunOutcome:
        """A run that announced interrupts waits for them; one that does not tell them apart waits for the first."""
        interrupts = [announced(event) for event in self._announced]
        known = {interrupt.id for interrupt in interrupts}
        if len(known) < len(interrupts) or "" in known:
            interrupts = interrupts[:1]
        return RunOutcome(type="interrupt", interrupts=tuple(interrupts)) if interrupts else RunOutcome()

    def _run_failed(self, voice: Voice, event: Event) -> list[Said]:
        details = {"upstream_code": event.code} if event.code else None
        why = (event.message or "it does not say why")[:QUOTED]
        raise BackendFailed(f"the agent's run failed: {why}", details=details)

    # -- words ----------------------------------------------------------------------------------------------------

    def _text_started(self, voice: Voice, event: Event) -> list[Said]:
        if event.role in NOT_OURS:
            self._silent.add(event.message_id or "")
        return voice.settle()

    def _text(self, voice: Voice, event: Event) -> list[Said]:
        message_id = event.message_id or ""
        return [] if message_id in self._silent else voice.say(message_id, event.words)

    def _text_ended(self, voice: Voice, event: Event) -> list[Said]:
        self._silent.discard(event.message_id or "")
        return voice.end(TEXT, event.message_id or "")

    def _thought(self, voice: Voice, event: Event) -> list[Said]:
        return voice.think(event.message_id or "", event.words)

    def _thoughts_ended(self, voice: Voice, event: Event) -> list[Said]:
        return voice.settle()

    def _signed(self, voice: Voice, event: Event) -> list[Said]:
        return voice.sign(event.entity_id or "", event.encrypted_value or "")

    # -- calls ----------------------------------------------------------------------------------------------------

    def _call_started(self, voice: Voice, event: Event) -> list[Said]:
        return voice.call(event.tool_call_id or "", event.tool_call_name or "", event.parent_message_id or "")

    def _arguments(self, voice: Voice, event: Event) -> list[Said]:
        return voice.arguments(event.tool_call_id or "", event.words)

    def _call_ended(self, voice: Voice, event: Event) -> list[Said]:
        return voice.end(CALL, event.tool_call_id or "")

    def _call_returned(self, voice: Voice, event: Event) -> list[Said]:
        call_id = event.tool_call_id or ""
        maker = self.open_calls[call_id][0] if call_id in self.open_calls else voice
        return maker.returned(call_id, content_of(event.content))

    # -- chunks ---------------------------------------------------------------------------------------------------

    def _chunked(self, voice: Voice, event: Event) -> list[Said]:
        """A text or a call without a start and an end: it lasts until something else comes."""
        kind = CHUNKS[event.type]
        before = self._chunk[2] if self._chunk and self._chunk[:2] == (voice, kind) else ""
        name = (event.message_id if kind == TEXT else event.tool_call_id) or before
        said: list[Said] = []
        if self._chunk != (voice, kind, name):
            said = self._end_chunk()
            self._chunk = (voice, kind, name)
            if kind == CALL:
                said += voice.call(name, event.tool_call_name or "", event.parent_message_id or "")
        if kind == CALL:
            return [*said, *voice.arguments(name, event.words)]
        return said if event.role in NOT_OURS else [*said, *voice.say(name, event.words)]

    def _end_chunk(self) -> list[Said]:
        chunk, self._chunk = self._chunk, None
        return [] if chunk is None else chunk[0].end(chunk[1], chunk[2])


def _usage(event: Event) -> Usage:
    total = Usage()
    for spent in event.usage or ():
        cached, written = spent.cached_input_tokens or 0, spent.cache_write_input_tokens or 0
        total += Usage(
            input_tokens=max(0, (spent.input_tokens or 0) - cached - written), output_tokens=spent.output_tokens or 0,
            cache_read_tokens=cached, cache_write_tokens=written, thinking_tokens=spent.reasoning_tokens or 0,
        )
    return total


Handler = Callable[[Hearing, Voice, Event], list[Said]]


def _of(change: Callable[[Shared, Voice, Event], list[Said]]) -> Handler:
    return lambda hearing, voice, event: change(hearing.shared, voice, event)


def _who(speaks: Callable[[Voices, Voice, Event], list[Said]]) -> Handler:
    return lambda hearing, voice, event: speaks(hearing.voices, voice, event)


def _by(tell: Callable[[Voice, Event], list[Said]]) -> Handler:
    return lambda hearing, voice, event: tell(voice, event)


_HANDLERS: dict[str, Handler] = {
    "RUN_STARTED": Hearing._run_started,
    "RUN_FINISHED": Hearing._run_finished,
    "RUN_ERROR": Hearing._run_failed,
    "TEXT_MESSAGE_START": Hearing._text_started,
    "TEXT_MESSAGE_CONTENT": Hearing._text,
    "TEXT_MESSAGE_END": Hearing._text_ended,
    "TEXT_MESSAGE_CHUNK": Hearing._chunked,
    "REASONING_START": Hearing._thoughts_ended,
    "REASONING_MESSAGE_CONTENT": Hearing._thought,
    "REASONING_MESSAGE_CHUNK": Hearing._thought,
    "REASONING_ENCRYPTED_VALUE": Hearing._signed,
    "REASONING_END": Hearing._thoughts_ended,
    "THINKING_TEXT_MESSAGE_START": Hearing._thoughts_ended,
    "THINKING_TEXT_MESSAGE_CONTENT": Hearing._thought,
    "THINKING_END": Hearing._thoughts_ended,
    "TOOL_CALL_START": Hearing._call_started,
    "TOOL_CALL_ARGS": Hearing._arguments,
    "TOOL_CALL_END": Hearing._call_ended,
    "TOOL_CALL_CHUNK": Hearing._chunked,
    "TOOL_CALL_RESULT": Hearing._call_returned,
    "STATE_SNAPSHOT": _of(Shared.snapshot),
    "STATE_DELTA": _of(Shared.change),
    "MESSAGES_SNAPSHOT": _by(conversation),
    "ACTIVITY_SNAPSHOT": _of(Shared.activity),
    "ACTIVITY_DELTA": _of(Shared.activity),
    "STEP_STARTED": _by(step),
    "STEP_FINISHED": _by(step),
    "CUSTOM": _by(custom),
    "RAW": _by(raw),
    "SUBAGENT_STARTED": _who(Voices.started),
    "SUBAGENT_FINISHED": _who(Voices.finished),
    "SUBAGENT_ERROR": _who(Voices.failed),
}
