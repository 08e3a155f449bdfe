"""Decodes threads of CAS, which are scopes of sub-agents: their text comes whole or in previews, and counts once."""

from typing import Any

import gateway.model as m
from gateway.client import NO_USAGE, StreamAssembler
from gateway.errors import BackendFailed
from gateway.ids import Mint
from gateway.ports import BackendEvent

from .readers import ReceivedEvent, meanings, simplified_content

EVENT_KINDS = {"agent.message": m.BlockKind.TEXT, "agent.thinking": m.BlockKind.THINKING}
RAW_KINDS = {"text": m.BlockKind.TEXT, "thinking": m.BlockKind.THINKING}
RAW_DELTAS = {"text_delta": "text", "thinking_delta": "thinking"}


class BlockPreview:
    """A previewed block of an event: its key, its text so far, and whether it takes more."""

    __slots__ = ("key", "kind", "muted", "said")

    def __init__(self, key: Any, kind: m.BlockKind) -> None:
        self.key, self.kind = key, kind
        self.said = ""
        self.muted = False


class ThreadDecoder:
    """Decodes one thread. A message is what is between the two ends of a span or, without spans, up to the results."""

    def __init__(self, mint: Mint, scope_id: str = m.ROOT) -> None:
        self.scribe = StreamAssembler(mint, scope_id)
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

    def span_started(self, model: str) -> list[BackendEvent]:
        """A message begins, unless its raw stream has begun it a moment ago."""
        if not (self._raw_id and self.scribe.writer.in_message and not self._spanned):
            return self._begin(model, spanned=True)
        self._spanned = True
        return []

    def finish(self, usage: m.Usage = NO_USAGE, outcome: m.Outcome = m.Outcome.COMPLETED) -> list[BackendEvent]:
        """End the open message, if there is one."""
        said = self.scribe.end_texts()
        if not self.scribe.writer.in_message:
            return said
        said += self.scribe.finish(self._stop(outcome), usage, outcome)
        self._spanned, self._raw_id = False, ""
        return said

    def _stop(self, outcome: m.Outcome) -> m.StopReason:
        if outcome is not m.Outcome.COMPLETED:
            return m.StopReason.ERROR if outcome is m.Outcome.FAILED else m.StopReason.INTERRUPTED
        return self.stop_reason or (m.StopReason.TOOL_USE if self.scribe.writer.calls else m.StopReason.END_TURN)

    def _begin(self, model: str, *, spanned: bool) -> list[BackendEvent]:
        said = [*self.finish(), *self.scribe.begin(model=model or None)]
        self.stop_reason, self._spanned, self._raw_id = None, spanned, ""
        self._raw, self._raw_blocks = {}, 0
        return said

    # -- words, whole ---------------------------------------------------------------------------------------------

    def message(self, told: ReceivedEvent) -> list[BackendEvent]:
        """`agent.message`: its previews are decoded already."""
        said: list[BackendEvent] = []
        for index, part in enumerate(told.content()):
            if isinstance(part, m.TextPart):
                said += self._whole(told.id, index, part.text, m.BlockKind.TEXT)
            elif isinstance(part, m.ImagePart):
                said += self.scribe.image(part)
        return said

    def thinking(self, told: ReceivedEvent) -> list[BackendEvent]:
        return self._whole(told.id, 0, told.text("thinking"), m.BlockKind.THINKING, told.text("signature"))

    def _whole(
        self, event_id: str, index: int, text: str, kind: m.BlockKind, signature: str = ""
    ) -> list[BackendEvent]:
        if not text and not signature:
            return []
        preview = self._previews.pop((event_id, index), None) or self._of_raw(text, kind) or self._unseen(kind)
        if not text.startswith(preview.said) and not preview.said.startswith(text):
            raise BackendFailed("the upstream sent words that are not those it had announced")
        said = self.scribe.text_delta(preview.key, text[len(preview.said):], kind)
        said += self.scribe.sign(preview.key, signature) if signature else []
        return [*said, *self.scribe.end(preview.key)]

    def _unseen(self, kind: m.BlockKind) -> BlockPreview:
        self._numbers += 1
        return BlockPreview(self._numbers, kind)

    def _of_raw(self, text: str, kind: m.BlockKind) -> BlockPreview | None:
        """The raw stream does not name the event of a block: both come in the same order."""
        for index, preview in self._raw.items():
            if preview.kind is kind and preview.said:
                if not text.startswith(preview.said) and not preview.said.startswith(text):
                    return None
                self._raw[index] = _finished(preview)
                return preview
        return None

    # -- words, event by event: `event_deltas[]` ------------------------------------------------------------------

    def announced(self, told: ReceivedEvent) -> list[BackendEvent]:
        event = told.object("event")
        kind = EVENT_KINDS.get(str(event.get("type")))
        if kind is not None and isinstance(event.get("id"), str):
            self._kinds.setdefault(event["id"], kind)
        return []

    def grown(self, told: ReceivedEvent) -> list[BackendEvent]:
        """A delta of an event that was not announced is ignored: the event itself follows."""
        event_id, delta = told.text("event_id"), told.object("delta")
        kind, index, content = self._kinds.get(event_id), delta.get("index", 0), delta.get("content")
        text = content.get("text") if isinstance(content, dict) else None
        if kind is None or not isinstance(index, int) or not isinstance(text, str):
            return []
        return self._grow(self._previews.setdefault((event_id, index), BlockPreview((event_id, index), kind)), text)

    def _grow(self, preview: BlockPreview, text: str) -> list[BackendEvent]:
        if preview.muted:
            return []
        preview.said += text
        return self.scribe.text_delta(preview.key, text, preview.kind)

    def connection_lost(self) -> None:
        """The connection broke: a preview may not go on where it stopped, so it waits for its event."""
        self._kinds = dict.fromkeys(self._kinds)
        for preview in self._raw.values():
            if not preview.muted and not preview.said:
                self._raw_blocks = None  # its text comes with its event: later blocks must not come before
            preview.muted = True

    # -- words, block by block: `incremental_streaming_enabled` ---------------------------------------------------

    def raw_started(self, told: ReceivedEvent) -> list[BackendEvent]:
        message = told.object("message")
        message_id, model = str(message.get("id") or told.id), message.get("model")
        if message_id == self._raw_id:
            return []
        said = self._begin(model if isinstance(model, str) else "", spanned=False)
        self._raw_id = message_id
        return said

    def raw_block(self, told: ReceivedEvent) -> list[BackendEvent]:
        """A block after one that the raw stream leaves out waits for its event, which comes in its place."""
        index, kind = told.body.get("index"), RAW_KINDS.get(str(told.object("content_block").get("type")))
        if not isinstance(index, int) or self._raw_blocks is None or index < self._raw_blocks:
            return []
        self._raw_blocks = index + 1 if index == self._raw_blocks else None
        if self._raw_blocks is not None and kind is not None:
            self._raw[index] = self._unseen(kind)
        return []

    def raw_delta(self, told: ReceivedEvent) -> list[BackendEvent]:
        delta, index = told.object("delta"), told.body.get("index")
        preview = self._raw.get(index) if isinstance(index, int) else None
        if preview is None or preview.muted:
            return []
        kind = str(delta.get("type"))
        if kind == "signature_delta" and isinstance(delta.get("signature"), str):
            return self.scribe.sign(preview.key, delta["signature"])
        text = delta.get(RAW_DELTAS.get(kind, ""))
        return self._grow(preview, text) if isinstance(text, str) else []

    def raw_block_ended(self, told: ReceivedEvent) -> list[BackendEvent]:
        index = told.body.get("index")
        preview = self._raw.get(index) if isinstance(index, int) else None
        if preview is None or preview.muted:
            return []
        preview.muted = True
        return self.scribe.end(preview.key)

    def raw_stop(self, told: ReceivedEvent) -> list[BackendEvent]:
        self.stop_reason = meanings().message_stops.get(str(told.object("delta").get("stop_reason")))
        return []

    # -- tools ----------------------------------------------------------------------------------------------------

    def call(self, call: m.ToolCall) -> list[BackendEvent]:
        self._called.add(call.call_id)
        return self.scribe.whole_call(("call", call.call_id), call)

    def returned(self, call_id: str, content: m.Content, *, is_error: bool) -> list[BackendEvent]:
        """Text in progress does not delay a result; without spans, a result ends the message of its call."""
        if call_id not in self._called:
            return []
        self._called.remove(call_id)
        said = [] if call_id in self.scribe.open_calls else self.scribe.end_texts()
        said += [] if self._spanned else self.finish()
        return [*said, *self.scribe.returned(call_id, content, is_error=is_error)]

    def abandoned(self, why: str) -> list[BackendEvent]:
        """End the calls that will not return."""
        return [event for call_id in list(self.scribe.open_calls)
                for event in self.scribe.returned(call_id, why, is_error=True)]


def _finished(preview: BlockPreview) -> BlockPreview:
    """It keeps its place, so that nothing is taken for a new block."""
    done = BlockPreview(preview.key, preview.kind)
    done.muted = True
    return done


COORDINATOR = "coordinator"
STATUS_OF_EVENT = {
    "session.thread_status_running": m.ScopeStatus.RUNNING,
    "session.thread_status_idle": m.ScopeStatus.IDLE,
    "session.thread_status_terminated": m.ScopeStatus.ENDED,
}
"""The status of an event that has none of its own."""


class ThreadDecoders:
    """The threads of a turn: the agent's own, and those of its sub-agents."""

    def __init__(self, mint: Mint) -> None:
        self._mint = mint
        self.voices: dict[str, ThreadDecoder] = {m.ROOT: ThreadDecoder(mint)}
        self._scopes: dict[str, str] = {}

    def scope_of(self, thread_id: str) -> str:
        """Unknown threads belong to the coordinator."""
        return self._scopes.get(thread_id, m.ROOT)

    def voice(self, told: ReceivedEvent) -> ThreadDecoder:
        return self.voices[self.scope_of(told.text("session_thread_id"))]

    def voice_of_call(self, call_id: str) -> ThreadDecoder | None:
        return next((voice for voice in self.voices.values() if call_id in voice.scribe.open_calls), None)

    def created(self, told: ReceivedEvent) -> list[BackendEvent]:
        thread_id = told.text("session_thread_id")
        if not thread_id:
            raise told.malformed("it does not name the thread")
        if thread_id in self._scopes:
            return []
        if told.text("role") == COORDINATOR:
            self._scopes[thread_id] = m.ROOT
            return []
        return self._open(thread_id, told)

    def _open(self, thread_id: str, told: ReceivedEvent) -> list[BackendEvent]:
        scope_id = self._scopes[thread_id] = f"scope_{thread_id.removeprefix('sthr_')}"
        voice = self.voices[scope_id] = ThreadDecoder(self._mint, scope_id)
        parent = self.scope_of(told.text("parent_thread_id"))
        return [voice.scribe.writer.emit(m.ScopeOpened(
            parent=m.ROOT if self.voices[parent].over or parent == scope_id else parent,
            call_id=told.text("created_by_tool_use_id") or None, title=told.text("agent_name") or None,
            agent=told.text("agent_id").removeprefix("agent_") or None, role=told.text("role") or "child",
        ))]

    def changed(self, told: ReceivedEvent) -> list[BackendEvent]:
        """A thread that goes on from an earlier turn is opened anew: scopes live as long as a turn."""
        thread_id, status = told.text("session_thread_id"), _read_status(told)
        if not thread_id or told.text("role") == COORDINATOR:
            return []
        known = thread_id in self._scopes
        if not known and status is m.ScopeStatus.ENDED:
            return []  # it was archived, long after it had ended
        said = [] if known else self._open(thread_id, told)
        scope_id = self._scopes[thread_id]
        voice = self.voices[scope_id]
        if scope_id == m.ROOT or voice.over:
            return said
        if status is not m.ScopeStatus.RUNNING:
            said += voice.finish()
        voice.over = status is m.ScopeStatus.ENDED
        return [
            *said,
            voice.scribe.writer.emit(m.ScopeStatusChanged(status=status, stop_reason=_read_stop_reason(told, status))),
        ]

    def mail(self, told: ReceivedEvent) -> list[BackendEvent]:
        sender, recipient = (self.scope_of(told.text(f"{end}_session_thread_id")) for end in ("from", "to"))
        is_error, content = told.body.get("is_error") is True, simplified_content(told.content())
        message = m.ScopeMessage(sender=sender, recipient=recipient, content=content, is_error=is_error)
        return [self.voices[sender].scribe.writer.emit(message)]

    def close(self, why: m.StopReason) -> list[BackendEvent]:
        """The ends of the threads that are still there, youngest first."""
        said = []
        for scope_id, voice in reversed(self.voices.items()):
            if scope_id != m.ROOT and not voice.over:
                voice.over = True
                said.append(voice.scribe.writer.emit(m.ScopeStatusChanged(status=m.ScopeStatus.ENDED, stop_reason=why)))
        return said


def _read_status(told: ReceivedEvent) -> m.ScopeStatus:
    status = meanings().scopes.get(told.text("status"), STATUS_OF_EVENT[told.type])
    if told.object("stop_reason").get("type") == "requires_action":
        return m.ScopeStatus.BLOCKED
    return m.ScopeStatus.ENDED if status is m.ScopeStatus.ARCHIVED else status


def _read_stop_reason(told: ReceivedEvent, status: m.ScopeStatus) -> m.StopReason | None:
    if status is m.ScopeStatus.RUNNING:
        return None
    if status is m.ScopeStatus.BLOCKED:
        return m.StopReason.NEEDS_INPUT
    return meanings().stops.get(str(told.object("stop_reason").get("type")), m.StopReason.END_TURN)
