"""Records in, frames of ZenFlux out. No clock, no socket."""

from collections.abc import Callable
from typing import Any

import gateway.model as m
from adapters.zenflux.asks import confirmation_body, option_ids, result_text, rollback_options
from gateway.ports import NO_FRAMES, Frame, Frames
from mappings.language import Table

from .frame_writer import FRAME_NAMES as EVERYWHERE
from .frame_writer import DeltaThrottle, FrameWriter, MergedDelta
from .stream_options import StreamOptions
from .views import image_block, text_or_json, usage_body, user_id_of, whole_text, wire_fault_code

CUES = {
    "conversation.opened": ("title", "created_at", "metadata"),
    "conversation.titled": ("title",),
    "conversation.tagged": ("metadata",),
    "conversation.summed_up": ("summary", "count"),
    "message.opened": ("opening",),
    "message.usage": ("spent",),
    "message.billing": ("bill",),
    "message.closed": (),
    "words": ("index", "text"),
    "picture": ("index", "block"),
    "result.opened": ("index", "call_id", "is_error"),
    "stopped": ("index",),
    "rollback.done": (),
    "run.failed": ("fault", "code"),
    "run.stopped": ("reason",),
    "run.conversation": ("outcome",),
    "run.ended": ("outcome", "duration_ms"),
    "run.done": (),
}
NAMES = {
    "*": EVERYWHERE,
    "turn.started": ("user_id", "message_id"),
    "message.annotated": ("words",),
    "block.started": ("index",),
    "block.ended": ("index",),
    "input.requested": ("request", "options", "option_ids"),
}
WAITING_STOP_REASONS = (m.StopReason.TOOL_USE, m.StopReason.NEEDS_INPUT)
SHOWN_BLOCKS = (m.BlockKind.TEXT, m.BlockKind.THINKING, m.BlockKind.TOOL_USE)


def make_projector(table: Table, options: StreamOptions) -> "Projector":
    return Projector(table, options)


class Projector:
    """Tells one run after another, from session_start to session_end.

    The end of a message is withheld while something can still come into it: a confirmation, an error that readers would
    miss who leave at message_stop, the results of calls whose run is broken off.
    """

    def __init__(self, table: Table, options: StreamOptions) -> None:
        self.table = table
        self.options = options
        self.writer = FrameWriter(table.encoder(options.framing))
        self.throttle = DeltaThrottle(options.throttle)
        self.merging, self.whole = options.throttle > 0, options.whole
        self.title, self.created_at = options.title, options.created_at
        self.metadata, self.user_id = options.metadata, options.user_id
        self.out: list[Frame] = []
        self._reset(None)

    def _reset(self, start: m.Record | None) -> None:
        self.start = start
        self.count = 0
        self.block_indexes: dict[str, int] = {}
        self.block: m.BlockStarted | None = None
        self.written = False
        self.ended: m.MessageEnded | None = None
        self.results: list[m.ToolReturned] = []
        self.calls: set[str] = set()
        self.asked: dict[str, type] = {}
        self.spoken = False
        self.changes: list[tuple[str, dict[str, Any]]] = []
        self.usage, self.spent, self.llm_calls, self.model = m.Usage(), m.Usage(), 0, ""
        self.billed = False

    # -- in and out -----------------------------------------------------------------------------------------------

    def feed(self, record: m.Record) -> Frames:
        event = record.event
        if type(event) is m.BlockDelta and record.scope_id == m.ROOT and event.delta and not self.whole:
            self.written = True
            if not self.merging:
                return self.writer.delta(record, self.block_indexes[event.block_id], event.delta, record.at)
            self._merged(self.throttle.take(self.block_indexes[event.block_id], event.delta, record.at))
            return self._take_frames()
        self._merged(self.throttle.due(record.at))
        if (tell := _STEPS.get(type(event))) is not None and (
            record.scope_id == m.ROOT or type(event) in _STEPS_OF_SUBAGENTS
        ):
            tell(self, record, event)
        return self._take_frames()

    def flush(self, now: float) -> Frames:
        self._merged(self.throttle.due(now))
        return self._take_frames()

    @property
    def deadline(self) -> float | None:
        return self.throttle.deadline

    def _take_frames(self) -> Frames:
        if not self.out:
            return NO_FRAMES
        said, self.out = tuple(self.out), []
        return said

    def _write_cue(self, cue: str, record: m.Record, **names: Any) -> None:
        """A cue of ours; words that were held back go first."""
        self._merged(self.throttle.release(record.at))
        self.out += self.writer.cue(cue, record, record.at, **names)

    def _write_event(self, record: m.Record, **names: Any) -> None:
        """The event itself."""
        self._merged(self.throttle.release(record.at))
        self.out += self.writer.event(record, **names)

    def _merged(self, merged: list[MergedDelta]) -> None:
        for index, text, at in merged:
            assert self.start is not None, "words come within a run"
            self.out += self.writer.delta(self.start, index, text, at)

    # -- the conversation -----------------------------------------------------------------------------------------

    def _created(self, record: m.Record, event: m.SessionCreated) -> None:
        self.title, self.created_at, self.metadata = event.title, record.at, m.public_metadata(event.metadata)
        self.user_id = user_id_of(event.owner, event.metadata)

    def _updated(self, record: m.Record, event: m.SessionUpdated) -> None:
        if event.title is not None:
            self.title = event.title
            self._changed(record, "conversation.titled", title=event.title)
        if event.metadata is not None:
            changed, self.metadata = (
                m.public_metadata(event.metadata) != self.metadata,
                m.public_metadata(event.metadata),
            )
            if changed:
                self._changed(record, "conversation.tagged", metadata=self.metadata)

    def _compacted(self, record: m.Record, event: m.SessionCompacted) -> None:
        self._changed(record, "conversation.summed_up", summary=event.summary, count=event.archived)

    def _changed(self, record: m.Record, cue: str, **names: Any) -> None:
        """The third event of a run is its message; what changes before that is told after it."""
        self.changes += [(cue, names)] if self.start is not None else []
        if self.spoken:
            self._tell_changes(record)

    def _tell_changes(self, record: m.Record) -> None:
        changes, self.changes = self.changes, []
        for cue, names in changes:
            self._write_cue(cue, record, **names)

    # -- the run --------------------------------------------------------------------------------------------------

    def _started(self, record: m.Record, event: m.TurnStarted) -> None:
        self._reset(record)
        self.writer.begin(record.turn_id or "", self.options.framing)
        self._write_event(record, user_id=self.user_id, message_id=self.options.message_id or event.command_id)
        self._write_cue(
            "conversation.opened", record, title=self.title or self.options.untitled, created_at=self.created_at,
            metadata=self.metadata,
        )

    def _over(self, record: m.Record, event: m.TurnEnded) -> None:
        if self.results:
            self._speaking(record)
            self._give_results(record)
        self._tell_changes(record)
        if event.fault is not None:
            self._write_cue("run.failed", record, fault=event.fault, code=wire_fault_code(event.fault))
        if self.writer.reply_id is not None:
            self._close(record, event, silent=event.fault is not None)
        if event.outcome is m.Outcome.INTERRUPTED:
            self._write_cue("run.stopped", record, reason=event.stop_reason)
        if self.options.conversation_stop:
            self._write_cue("run.conversation", record, outcome=event.outcome)
        self._write_cue("run.ended", record, outcome=event.outcome, duration_ms=event.duration_ms)
        if self.options.framing == "sse":
            self._write_cue("run.done", record)
        self._reset(None)

    # -- messages -------------------------------------------------------------------------------------------------

    def _message_started(self, record: m.Record, event: m.MessageStarted) -> None:
        self.model, self.llm_calls, self.billed = event.model or self.model, self.llm_calls + 1, False
        if self.writer.reply_id is not None and self.options.multi_message:
            self._close(record, self.ended)
        self.ended = None
        self._speaking(record, event.message_id)
        self._give_results(record)

    def _message_ended(self, record: m.Record, event: m.MessageEnded) -> None:
        self.ended, self.usage, self.spent = event, self.usage + event.usage, self.spent + event.usage
        waits = event.outcome is not m.Outcome.COMPLETED or event.stop_reason in WAITING_STOP_REASONS or self.calls
        if self.options.multi_message and not waits:
            self._close(record, event)

    def _annotated(self, record: m.Record, event: m.MessageAnnotated) -> None:
        if event.topic is m.AnnotationTopic.BILLING:
            self.billed = isinstance(event.content, dict) and "total_tokens" in event.content
        self._write_event(record, words=text_or_json(event.content))

    def _speaking(self, record: m.Record, message_id: str | None = None) -> None:
        """A message is open now, if it was not; its id is made from the run's where no model has given one."""
        if self.writer.reply_id is None:
            self.writer.reply_id = message_id or f"msg_{self.writer.run_id.rpartition('_')[2]}"
            opening = self.table.object("opening", reply_id=self.writer.reply_id, model=self.model)
            self._write_cue("message.opened", record, opening=opening)
            self.spoken = True
            self._tell_changes(record)

    def _close(self, record: m.Record, end: m.MessageEnded | m.TurnEnded | None, *, silent: bool = False) -> None:
        """What the message cost, and its end; where nothing is to follow, what the run has cost so far.

        An agent that has told by itself what its run costs knows better, and two bills might not agree.
        """
        if end is not None and not silent:
            spent = self.table.object("spent", stop_reason=end.stop_reason, usage=self.spent)
            self._write_cue("message.usage", record, spent=spent)
            if end.stop_reason not in WAITING_STOP_REASONS and not self.billed:
                self._write_cue("message.billing", record, bill=self._bill(record.at))
        self._write_cue("message.closed", record)
        self.writer.reply_id, self.ended, self.spent = None, None, m.Usage()

    def _bill(self, at: float) -> Any:
        assert self.start is not None, "messages are said within a run"
        return usage_body(
            self.table, self.usage, llm_calls=self.llm_calls, model=self.model, latency=at - self.start.at
        )

    # -- blocks ---------------------------------------------------------------------------------------------------

    def _next(self) -> int:
        """Indexes grow over the whole run, whatever message a block is in."""
        self.count += 1
        return self.count - 1

    def _block_started(self, record: m.Record, event: m.BlockStarted) -> None:
        self.block, self.written = event, False
        if event.kind in SHOWN_BLOCKS:
            self.block_indexes[event.block_id] = index = self._next()
            self._write_event(record, index=index)

    def _block_ended(self, record: m.Record, event: m.BlockEnded) -> None:
        self.block = None
        if event.kind in SHOWN_BLOCKS:
            index = self.block_indexes.pop(event.block_id)
            if not self.written and (text := whole_text(event)):
                self._write_cue("words", record, index=index, text=text)
            self._write_event(record, index=index)
        elif event.image is not None:
            index = self._next()
            self._write_cue("picture", record, index=index, block=image_block(self.table, event.image))
            self._write_event(record, index=index)
        if event.call is not None and not event.torn:
            self.calls.add(event.call.call_id)
        self._give_results(record)

    def _returned(self, record: m.Record, event: m.ToolReturned) -> None:
        """Results are blocks of the message that follows; of the one that is open, if they came back within it."""
        self.calls.discard(event.call_id)
        self.results.append(event)
        self._give_results_now(record)

    def _give_results_now(self, record: m.Record) -> None:
        """Not inside a block, not between two rounds, and not while a person is asked: a block would hide the form."""
        between = self.ended is not None and self.options.multi_message
        if self.writer.reply_id is not None and self.block is None and not between and not self.asked:
            self._give_results(record)

    def _give_results(self, record: m.Record) -> None:
        results, self.results = self.results, []
        for event in results:
            index = self._next()
            self._write_cue("result.opened", record, index=index, call_id=event.call_id, is_error=event.is_error)
            self._write_cue("words", record, index=index, text=result_text(event.content))
            self._write_cue("stopped", record, index=index)

    # -- asks -----------------------------------------------------------------------------------------------------

    def _requested(self, record: m.Record, event: m.InputRequested) -> None:
        ask = event.ask
        self.asked[event.request_id] = type(ask)
        if isinstance(ask, m.RollbackAsk):
            options = rollback_options(ask, objects=self.options.rollback_objects)
            self._write_event(record, options=options, option_ids=option_ids(ask), request=None)
        elif isinstance(ask, m.ContinuationAsk):
            self._write_event(record, options=None, option_ids=None, request=None)
        else:
            self._speaking(record)
            request = confirmation_body(self.table, _open_ask(record, event), record.session_id)
            self._write_event(record, options=None, option_ids=None, request=request)

    def _resolved(self, record: m.Record, event: m.InputResolved) -> None:
        kind = self.asked.pop(event.request_id, None)
        if kind is m.RollbackAsk and event.resolution is m.Resolution.ANSWERED:
            self._write_cue("rollback.done", record)
        self._give_results_now(record)


def _open_ask(record: m.Record, event: m.InputRequested) -> m.OpenAsk:
    return m.OpenAsk(
        request_id=event.request_id, ask=event.ask, seq=record.seq, at=record.at, turn_id=record.turn_id or "",
        scope_id=record.scope_id, call_id=event.call_id, expires_at=event.expires_at,
    )


_STEPS: dict[type[m.Event], Callable[[Projector, m.Record, Any], None]] = {
    m.SessionCreated: Projector._created,
    m.SessionUpdated: Projector._updated,
    m.SessionCompacted: Projector._compacted,
    m.TurnStarted: Projector._started,
    m.TurnEnded: Projector._over,
    m.MessageStarted: Projector._message_started,
    m.MessageAnnotated: Projector._annotated,
    m.MessageEnded: Projector._message_ended,
    m.BlockStarted: Projector._block_started,
    m.BlockEnded: Projector._block_ended,
    m.ToolReturned: Projector._returned,
    m.InputRequested: Projector._requested,
    m.InputResolved: Projector._resolved,
}
_STEPS_OF_SUBAGENTS = (m.InputRequested, m.InputResolved)
"""Sub-agents are not heard, but what they ask must be answered."""
