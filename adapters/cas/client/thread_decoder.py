"""Decodes threads of CAS, which are scopes of sub-agents: their text comes whole or in previews, and counts once."""

from functools import cache
from typing import Any

import gateway.model as m
from gateway.client import NO_USAGE, StreamAssembler, decodes
from gateway.errors import BackendFailed
from gateway.ids import Mint
from gateway.json_values import JsonValue
from gateway.ports import BackendEvent

from .readers import CAS, ReceivedEvent, read_parts, simplified_content

RAW_KINDS = {"raw.start.text": m.BlockKind.TEXT, "raw.start.thinking": m.BlockKind.THINKING}


class BlockPreview:
    """A previewed block of an event: its key, its text so far, and whether it takes more."""

    __slots__ = ("key", "kind", "muted", "text")

    def __init__(self, key: object, kind: m.BlockKind) -> None:
        self.key, self.kind = key, kind
        self.text = ""
        self.muted = False


class ThreadDecoder:
    """Decodes one thread. A message is what is between the two ends of a span or, without spans, up to the results."""

    def __init__(self, mint: Mint, scope_id: str = m.ROOT) -> None:
        self.assembler = StreamAssembler(mint, scope_id)
        self.over = False
        """Whether the thread has ended in this turn."""
        self.stop_reason: m.StopReason | None = None
        """The stop reason of the last message, if the server has sent it."""
        self._spanned = False
        self._raw_id = ""
        self._raw: dict[int, BlockPreview] = {}
        self._raw_blocks: int | None = 0
        """How many blocks the raw stream has had; None once it has left one out."""
        self._numbers = 0
        self._called: set[str] = set()
        self._kinds: dict[str, m.BlockKind | None] = {}
        self._previews: dict[tuple[str, int], BlockPreview] = {}

    # -- messages -------------------------------------------------------------------------------------------------

    @decodes("message.started")
    def span_started(self, event: ReceivedEvent, /, model: str | None) -> list[BackendEvent]:
        """A message begins, unless its raw stream has begun it a moment ago."""
        if not (self._raw_id and self.assembler.writer.in_message and not self._spanned):
            return self._begin(model, spanned=True)
        self._spanned = True
        return []

    def finish(self, usage: m.Usage = NO_USAGE, outcome: m.Outcome = m.Outcome.COMPLETED) -> list[BackendEvent]:
        """End the open message, if there is one."""
        events = self.assembler.end_texts()
        if not self.assembler.writer.in_message:
            return events
        events += self.assembler.finish(self._stop(outcome), usage, outcome)
        self._spanned, self._raw_id = False, ""
        return events

    def _stop(self, outcome: m.Outcome) -> m.StopReason:
        if outcome is not m.Outcome.COMPLETED:
            return m.StopReason.ERROR if outcome is m.Outcome.FAILED else m.StopReason.INTERRUPTED
        return self.stop_reason or (m.StopReason.TOOL_USE if self.assembler.writer.calls else m.StopReason.END_TURN)

    def _begin(self, model: str | None, *, spanned: bool) -> list[BackendEvent]:
        events = [*self.finish(), *self.assembler.begin(model=model or None)]
        self.stop_reason, self._spanned, self._raw_id = None, spanned, ""
        self._raw, self._raw_blocks = {}, 0
        return events

    # -- words, whole ---------------------------------------------------------------------------------------------

    @decodes("said.text")
    def message(self, event: ReceivedEvent, /, content: Any) -> list[BackendEvent]:
        """A whole message: its previews are decoded already."""
        events: list[BackendEvent] = []
        for index, part in enumerate(read_parts(content)):
            if isinstance(part, m.TextPart):
                events += self._whole(event.id, index, part.text, m.BlockKind.TEXT)
            elif isinstance(part, m.ImagePart):
                events += self.assembler.image(part)
        return events

    @decodes("said.thinking")
    def thinking(self, event: ReceivedEvent, /, text: str | None, signature: str | None) -> list[BackendEvent]:
        return self._whole(event.id, 0, text or "", m.BlockKind.THINKING, signature or "")

    def _whole(
        self, event_id: str, index: int, text: str, kind: m.BlockKind, signature: str = ""
    ) -> list[BackendEvent]:
        if not text and not signature:
            return []
        preview = self._previews.pop((event_id, index), None) or self._of_raw(text, kind) or self._unseen(kind)
        if not text.startswith(preview.text) and not preview.text.startswith(text):
            raise BackendFailed("the upstream sent words that are not those it had announced")
        events = self.assembler.text_delta(preview.key, text[len(preview.text):], kind)
        events += self.assembler.sign(preview.key, signature) if signature else []
        return [*events, *self.assembler.end(preview.key)]

    def _unseen(self, kind: m.BlockKind) -> BlockPreview:
        self._numbers += 1
        return BlockPreview(self._numbers, kind)

    def _of_raw(self, text: str, kind: m.BlockKind) -> BlockPreview | None:
        """The raw stream does not name the event of a block: both come in the same order."""
        for index, preview in self._raw.items():
            if preview.kind is kind and preview.text:
                if not text.startswith(preview.text) and not preview.text.startswith(text):
                    return None
                self._raw[index] = _finished(preview)
                return preview
        return None

    # -- words, event by event: `event_deltas[]` ------------------------------------------------------------------

    @decodes("preview.started")
    def announced(self, event: ReceivedEvent, /, final_id: str | None, type: str | None) -> list[BackendEvent]:
        kind = event_kinds().get(type or "")
        if kind is not None and final_id is not None:
            self._kinds.setdefault(final_id, kind)
        return []

    @decodes("preview.delta")
    def grown(self, event: ReceivedEvent, /, final_id: str, index: JsonValue, delta: str | None) -> list[BackendEvent]:
        """A delta of an event that was not announced is ignored: the event itself follows."""
        kind, index = self._kinds.get(final_id), index or 0
        if kind is None or not isinstance(index, int) or delta is None:
            return []
        preview = self._previews.get((final_id, index))
        if preview is None:
            preview = self._previews[final_id, index] = BlockPreview((final_id, index), kind)
        return self._grow(preview, delta)

    def _grow(self, preview: BlockPreview, text: str) -> list[BackendEvent]:
        if preview.muted:
            return []
        preview.text += text
        return self.assembler.text_delta(preview.key, text, preview.kind)

    def connection_lost(self) -> None:
        """The connection broke: a preview may not go on where it stopped, so it waits for its event."""
        self._kinds = dict.fromkeys(self._kinds)
        for preview in self._raw.values():
            if not preview.muted and not preview.text:
                self._raw_blocks = None  # its text comes with its event: later blocks must not come before
            preview.muted = True

    # -- words, block by block: `incremental_streaming_enabled` ---------------------------------------------------

    @decodes("raw.message_start")
    def raw_started(self, event: ReceivedEvent, /, message_id: str | None, model: str | None) -> list[BackendEvent]:
        message_id = message_id or event.id
        if message_id == self._raw_id:
            return []
        events = self._begin(model, spanned=False)
        self._raw_id = message_id
        return events

    @decodes(*RAW_KINDS, "raw.start.tool_use")
    def raw_block(self, event: ReceivedEvent, /, index: JsonValue) -> list[BackendEvent]:
        """A block after one that the raw stream leaves out waits for its event, which comes in its place."""
        kind = RAW_KINDS.get(event.cue)
        if not isinstance(index, int) or self._raw_blocks is None or index < self._raw_blocks:
            return []
        self._raw_blocks = index + 1 if index == self._raw_blocks else None
        if self._raw_blocks is not None and kind is not None:
            self._raw[index] = self._unseen(kind)
        return []

    @decodes("raw.delta.text", "raw.delta.thinking")
    def raw_delta(self, event: ReceivedEvent, /, index: JsonValue, delta: str | None) -> list[BackendEvent]:
        preview = self._raw.get(index) if isinstance(index, int) else None
        return [] if preview is None or delta is None else self._grow(preview, delta)

    @decodes("raw.delta.signature")
    def raw_signature(self, event: ReceivedEvent, /, index: JsonValue, signature: str | None) -> list[BackendEvent]:
        preview = self._raw_preview(index)
        return [] if preview is None or signature is None else self.assembler.sign(preview.key, signature)

    @decodes("raw.stop")
    def raw_block_ended(self, event: ReceivedEvent, /, index: JsonValue) -> list[BackendEvent]:
        preview = self._raw_preview(index)
        if preview is None:
            return []
        preview.muted = True
        return self.assembler.end(preview.key)

    def _raw_preview(self, index: object) -> BlockPreview | None:
        """The block of a raw event, if it takes more."""
        preview = self._raw.get(index) if isinstance(index, int) else None
        return None if preview is None or preview.muted else preview

    @decodes("raw.message_delta")
    def raw_stop(self, event: ReceivedEvent, /, stop_reason: m.StopReason | str | None) -> list[BackendEvent]:
        self.stop_reason = stop_reason if isinstance(stop_reason, m.StopReason) else None
        return []

    # -- tools ----------------------------------------------------------------------------------------------------

    def call(self, call: m.ToolCall) -> list[BackendEvent]:
        self._called.add(call.call_id)
        return self.assembler.whole_call(("call", call.call_id), call)

    def returned(self, call_id: str, content: m.Content, *, is_error: bool) -> list[BackendEvent]:
        """Text in progress does not delay a result; without spans, a result ends the message of its call."""
        if call_id not in self._called:
            return []
        self._called.remove(call_id)
        events = [] if call_id in self.assembler.open_calls else self.assembler.end_texts()
        events += [] if self._spanned else self.finish()
        return [*events, *self.assembler.returned(call_id, content, is_error=is_error)]

    def abandoned(self, why: str) -> list[BackendEvent]:
        """End the calls that will not return."""
        return [event for call_id in list(self.assembler.open_calls)
                for event in self.assembler.returned(call_id, why, is_error=True)]


def _finished(preview: BlockPreview) -> BlockPreview:
    """It keeps its place, so that nothing is taken for a new block."""
    done = BlockPreview(preview.key, preview.kind)
    done.muted = True
    return done


COORDINATOR = "coordinator"
"""The role of the agent's own thread."""
STATUSES = {
    "scope.status.running": m.ScopeStatus.RUNNING,
    "scope.status.idle": m.ScopeStatus.IDLE,
    "scope.status.blocked": m.ScopeStatus.BLOCKED,
    "scope.status.ended": m.ScopeStatus.ENDED,
    "scope.status.archived": m.ScopeStatus.ENDED,
}
"""The status that each of these cues says, where the event has none of its own."""
STOP_REASONS = {m.ScopeStatus.RUNNING: None, m.ScopeStatus.BLOCKED: m.StopReason.NEEDS_INPUT}
"""Why a sub-agent has stopped, where its status says that."""


@cache
def event_kinds() -> dict[str, m.BlockKind]:
    """The kind of text by the type of the event that has it."""
    name = CAS.table.frame_name
    return {name("said.text"): m.BlockKind.TEXT, name("said.thinking"): m.BlockKind.THINKING}


class ThreadDecoders:
    """The threads of a turn: the agent's own, and those of its sub-agents."""

    def __init__(self, mint: Mint) -> None:
        self._mint = mint
        self.by_scope: dict[str, ThreadDecoder] = {m.ROOT: ThreadDecoder(mint)}
        self._scopes: dict[str, str] = {}

    def scope_of(self, thread_id: str) -> str:
        """Unknown threads belong to the coordinator."""
        return self._scopes.get(thread_id, m.ROOT)

    def thread_of(self, event: ReceivedEvent) -> ThreadDecoder:
        return self.by_scope[self._scopes.get(event.thread_id, m.ROOT)]

    def thread_of_call(self, call_id: str) -> ThreadDecoder | None:
        return next((thread for thread in self.by_scope.values() if call_id in thread.assembler.open_calls), None)

    @decodes("scope.opened")
    def created(
        self, event: ReceivedEvent, /, parent_id: str | None, agent_id: str | None, agent_name: str | None,
        role: str | None, caused_by: str | None,
    ) -> list[BackendEvent]:
        thread_id = event.thread_id
        if not thread_id:
            raise BackendFailed("the upstream has made a thread, and does not name the thread")
        if thread_id in self._scopes:
            return []
        if role == COORDINATOR:
            self._scopes[thread_id] = m.ROOT
            return []
        scope_id = self._scopes[thread_id] = f"scope_{thread_id.removeprefix('sthr_')}"
        thread = self.by_scope[scope_id] = ThreadDecoder(self._mint, scope_id)
        parent = self.scope_of(parent_id or "")
        return [thread.assembler.writer.emit(m.ScopeOpened(
            parent=m.ROOT if self.by_scope[parent].over or parent == scope_id else parent,
            call_id=caused_by or None, title=agent_name or None,
            agent=(agent_id or "").removeprefix("agent_") or None, role=role or "child",
        ))]

    @decodes(*STATUSES)
    def changed(
        self, event: ReceivedEvent, /, parent_id: str | None, agent_id: str | None, agent_name: str | None,
        role: str | None, caused_by: str | None, status: m.ScopeStatus | str | None = None,
        why: m.StopReason | None = None,
    ) -> list[BackendEvent]:
        """A thread that goes on from an earlier turn is opened anew: scopes live as long as a turn."""
        thread_id, status = event.thread_id, status if isinstance(status, m.ScopeStatus) else STATUSES[event.cue]
        status = m.ScopeStatus.ENDED if status is m.ScopeStatus.ARCHIVED else status
        if not thread_id or role == COORDINATOR:
            return []
        known = thread_id in self._scopes
        if not known and status is m.ScopeStatus.ENDED:
            return []  # it was archived, long after it had ended
        events = [] if known else self.created(
            event, parent_id=parent_id, agent_id=agent_id, agent_name=agent_name, role=role, caused_by=caused_by)
        scope_id = self._scopes[thread_id]
        thread = self.by_scope[scope_id]
        if scope_id == m.ROOT or thread.over:
            return events
        if status is not m.ScopeStatus.RUNNING:
            events += thread.finish()
        thread.over = status is m.ScopeStatus.ENDED
        stop_reason = STOP_REASONS.get(status, why or m.StopReason.END_TURN)
        changed = m.ScopeStatusChanged(status=status, stop_reason=stop_reason)
        return [*events, thread.assembler.writer.emit(changed)]

    @decodes("mail.sent", "mail.received")
    def mail(
        self, event: ReceivedEvent, /, from_id: str | None, to_id: str | None, content: Any, is_error: bool | None,
    ) -> list[BackendEvent]:
        sender, recipient = self.scope_of(from_id or ""), self.scope_of(to_id or "")
        return [self.by_scope[sender].assembler.writer.emit(m.ScopeMessage(
            sender=sender, recipient=recipient, content=simplified_content(read_parts(content)),
            is_error=bool(is_error),
        ))]

    def close(self, why: m.StopReason) -> list[BackendEvent]:
        """The ends of the threads that are still there, youngest first."""
        events = []
        for scope_id, thread in reversed(self.by_scope.items()):
            if scope_id != m.ROOT and not thread.over:
                thread.over = True
                ended = m.ScopeStatusChanged(status=m.ScopeStatus.ENDED, stop_reason=why)
                events.append(thread.assembler.writer.emit(ended))
        return events
