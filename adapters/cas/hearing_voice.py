"""CAS, heard: one thread's words, whole or piece by piece; whatever was previewed is told once."""

from typing import Any

from gateway.errors import BackendFailed
from gateway.ids import Mint
from gateway.model import (
    ROOT,
    BlockKind,
    Content,
    ImagePart,
    Outcome,
    StopReason,
    TextPart,
    ToolCall,
    Usage,
)
from gateway.ports import Said
from gateway.speech import NOTHING, Scribe

from .hearing_reading import Told, words

EVENTS = {"agent.message": BlockKind.TEXT, "agent.thinking": BlockKind.THINKING}
RAW = {"text": BlockKind.TEXT, "thinking": BlockKind.THINKING}
RAW_DELTAS = {"text_delta": "text", "thinking_delta": "thinking"}


class Preview:
    """A piece of an event before the event: how it is known, what was said of it, and whether more is taken."""

    __slots__ = ("key", "kind", "muted", "said")

    def __init__(self, key: Any, kind: BlockKind) -> None:
        self.key, self.kind = key, kind
        self.said = ""
        self.muted = False


class Voice:
    """What one thread says. A message is what stands between the two ends of a span or, without spans, a round."""

    def __init__(self, mint: Mint, scope_id: str = ROOT) -> None:
        self.scribe = Scribe(mint, scope_id)
        self.over = False
        """Whether it has said all it will say in this turn."""
        self.stop_reason: StopReason | None = None
        """Why the last message ended, where the server has told."""
        self._spanned = False
        self._raw_id = ""
        self._raw: dict[int, Preview] = {}
        self._raw_blocks: int | None = 0
        """How many blocks the raw stream has had; None once it has passed one over."""
        self._numbers = 0
        self._called: set[str] = set()
        self._kinds: dict[str, BlockKind | None] = {}
        self._previews: dict[tuple[str, int], Preview] = {}

    # -- messages -------------------------------------------------------------------------------------------------

    def span_started(self, model: str) -> list[Said]:
        """A message begins, unless its raw stream has begun it a moment ago."""
        if not (self._raw_id and self.scribe.pen.in_message and not self._spanned):
            return self._begin(model, spanned=True)
        self._spanned = True
        return []

    def finish(self, usage: Usage = NOTHING, outcome: Outcome = Outcome.COMPLETED) -> list[Said]:
        """The end of the message, where one is open."""
        said = self.scribe.end_words()
        if not self.scribe.pen.in_message:
            return said
        said += self.scribe.finish(self._stop(outcome), usage, outcome)
        self._spanned, self._raw_id = False, ""
        return said

    def _stop(self, outcome: Outcome) -> StopReason:
        if outcome is not Outcome.COMPLETED:
            return StopReason.ERROR if outcome is Outcome.FAILED else StopReason.INTERRUPTED
        return self.stop_reason or (StopReason.TOOL_USE if self.scribe.pen.calls else StopReason.END_TURN)

    def _begin(self, model: str, *, spanned: bool) -> list[Said]:
        said = [*self.finish(), *self.scribe.begin(model=model or None)]
        self.stop_reason, self._spanned, self._raw_id = None, spanned, ""
        self._raw, self._raw_blocks = {}, 0
        return said

    # -- words, whole ---------------------------------------------------------------------------------------------

    def message(self, told: Told) -> list[Said]:
        """`agent.message`: what was previewed of it is said already."""
        said: list[Said] = []
        for index, part in enumerate(told.content()):
            if isinstance(part, TextPart):
                said += self._whole(told.id, index, part.text, BlockKind.TEXT)
            elif isinstance(part, ImagePart):
                said += self.scribe.image(part)
        return said

    def thinking(self, told: Told) -> list[Said]:
        return self._whole(told.id, 0, told.text("thinking"), BlockKind.THINKING, told.text("signature"))

    def _whole(self, event_id: str, index: int, text: str, kind: BlockKind, signature: str = "") -> list[Said]:
        if not text and not signature:
            return []
        preview = self._previews.pop((event_id, index), None) or self._of_raw(text, kind) or self._unseen(kind)
        if not text.startswith(preview.said) and not preview.said.startswith(text):
            raise BackendFailed("the upstream sent words that are not those it had announced")
        said = self.scribe.words(preview.key, text[len(preview.said):], kind)
        said += self.scribe.sign(preview.key, signature) if signature else []
        return [*said, *self.scribe.end(preview.key)]

    def _unseen(self, kind: BlockKind) -> Preview:
        self._numbers += 1
        return Preview(self._numbers, kind)

    def _of_raw(self, text: str, kind: BlockKind) -> Preview | None:
        """The raw stream does not say which event a block will be: they come in the same order."""
        for index, preview in self._raw.items():
            if preview.kind is kind and preview.said:
                if not text.startswith(preview.said) and not preview.said.startswith(text):
                    return None
                self._raw[index] = _done(preview)
                return preview
        return None

    # -- words, event by event: `event_deltas[]` ------------------------------------------------------------------

    def announced(self, told: Told) -> list[Said]:
        event = told.object("event")
        kind = EVENTS.get(str(event.get("type")))
        if kind is not None and isinstance(event.get("id"), str):
            self._kinds.setdefault(event["id"], kind)
        return []

    def grown(self, told: Told) -> list[Said]:
        """A delta of an event nobody has announced says nothing: the event itself will."""
        event_id, delta = told.text("event_id"), told.object("delta")
        kind, index, content = self._kinds.get(event_id), delta.get("index", 0), delta.get("content")
        text = content.get("text") if isinstance(content, dict) else None
        if kind is None or not isinstance(index, int) or not isinstance(text, str):
            return []
        return self._grow(self._previews.setdefault((event_id, index), Preview((event_id, index), kind)), text)

    def _grow(self, preview: Preview, text: str) -> list[Said]:
        if preview.muted:
            return []
        preview.said += text
        return self.scribe.words(preview.key, text, preview.kind)

    def interrupted(self) -> None:
        """The line was cut: what is previewed is not trusted to go on where it stopped, and waits for its event."""
        self._kinds = dict.fromkeys(self._kinds)
        for preview in self._raw.values():
            if not preview.muted and not preview.said:
                self._raw_blocks = None  # its words come with its event: those of later blocks must not come before
            preview.muted = True

    # -- words, block by block: `incremental_streaming_enabled` ---------------------------------------------------

    def raw_started(self, told: Told) -> list[Said]:
        message = told.object("message")
        message_id, model = str(message.get("id") or told.id), message.get("model")
        if message_id == self._raw_id:
            return []
        said = self._begin(model if isinstance(model, str) else "", spanned=False)
        self._raw_id = message_id
        return said

    def raw_block(self, told: Told) -> list[Said]:
        """A block after one that the raw stream passes over waits for its event, which comes in its place."""
        index, kind = told.body.get("index"), RAW.get(str(told.object("content_block").get("type")))
        if not isinstance(index, int) or self._raw_blocks is None or index < self._raw_blocks:
            return []
        self._raw_blocks = index + 1 if index == self._raw_blocks else None
        if self._raw_blocks is not None and kind is not None:
            self._raw[index] = self._unseen(kind)
        return []

    def raw_delta(self, told: Told) -> list[Said]:
        delta, index = told.object("delta"), told.body.get("index")
        preview = self._raw.get(index) if isinstance(index, int) else None
        if preview is None or preview.muted:
            return []
        kind = str(delta.get("type"))
        if kind == "signature_delta" and isinstance(delta.get("signature"), str):
            return self.scribe.sign(preview.key, delta["signature"])
        text = delta.get(RAW_DELTAS.get(kind, ""))
        return self._grow(preview, text) if isinstance(text, str) else []

    def raw_block_ended(self, told: Told) -> list[Said]:
        index = told.body.get("index")
        preview = self._raw.get(index) if isinstance(index, int) else None
        if preview is None or preview.muted:
            return []
        preview.muted = True
        return self.scribe.end(preview.key)

    def raw_stop(self, told: Told) -> list[Said]:
        self.stop_reason = words().message_stops.get(str(told.object("delta").get("stop_reason")))
        return []

    # -- tools ----------------------------------------------------------------------------------------------------

    def call(self, call: ToolCall) -> list[Said]:
        self._called.add(call.call_id)
        return self.scribe.whole_call(("call", call.call_id), call)

    def returned(self, call_id: str, content: Content, *, is_error: bool) -> list[Said]:
        """Words still in the making do not hold a result up; without spans, a result ends the message of its call."""
        if call_id not in self._called:
            return []
        self._called.remove(call_id)
        said = [] if call_id in self.scribe.open_calls else self.scribe.end_words()
        said += [] if self._spanned else self.finish()
        return [*said, *self.scribe.returned(call_id, content, is_error=is_error)]

    def abandoned(self, why: str) -> list[Said]:
        """Calls that will not come back."""
        return [event for call_id in list(self.scribe.open_calls)
                for event in self.scribe.returned(call_id, why, is_error=True)]


def _done(preview: Preview) -> Preview:
    """Its place is kept, so that nothing takes it for a new block."""
    done = Preview(preview.key, preview.kind)
    done.muted = True
    return done

