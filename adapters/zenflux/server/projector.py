"""Records in, frames of ZenFlux out. No clock, no socket."""

from collections.abc import Callable, Mapping
from typing import Any

import gateway.model as m
from adapters.zenflux.asks import confirmation_body, option_ids, result_text, rollback_options
from adapters.zenflux.bodies import OpeningBody
from gateway import ports
from gateway.ports import DialectTable, Frames
from mappings.language import ProjectorBase

from .frame_writer import FRAME_NAMES as EVERYWHERE
from .frame_writer import FrameWriter
from .run_state import ConversationChanges, RunUsage
from .stream_options import StreamOptions
from .views import image_names, whole_text, wire_fault_code

CUES = {
    "conversation.opened": ("title", "created_at", "metadata"),
    "conversation.titled": ("title",),
    "conversation.tagged": ("metadata",),
    "conversation.summed_up": ("summary", "count"),
    "message.opened": ("opening",),
    "message.usage": ("stop_reason", "usage"),
    "message.billing": ("usage", "total", "latency", "llm_calls", "model"),
    "message.closed": (),
    "words": ("index", "text"),
    "picture": ("index", "image_source", "media_type", "image_data"),
    "result.opened": ("index", "call_id", "content", "is_error"),
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
    "block.started": ("index",),
    "block.ended": ("index",),
    "input.requested": ("request", "options", "option_ids"),
}
NAME_TYPES: Mapping[str, object] = {
    **dict.fromkeys(("message_id", "model", "reply_id"), str | None),
    **dict.fromkeys(("user_id", "uuid"), str),
    **dict.fromkeys(("calls.failed", "calls.total", "llm_calls", "message.billing.total"), int),
    "duration_ms": int | None, "option_ids": list[str],
}
"""The types of names that are no fields of an event or a body, for the API documents."""
WAITING_STOP_REASONS = (m.StopReason.TOOL_USE, m.StopReason.NEEDS_INPUT)
SHOWN_BLOCKS = (m.BlockKind.TEXT, m.BlockKind.THINKING, m.BlockKind.TOOL_USE)


def make_projector(table: DialectTable, options: ports.StreamOptions) -> "Projector":
    assert isinstance(options, StreamOptions), "a dialect gets options of its own kind"
    return Projector(table, options)


class Projector(ProjectorBase):
    """Writes one run after another, from session_start to session_end.

    The end of a message is withheld while something can still come into it: a confirmation, an error that clients would
    miss who leave at message_stop, the results of calls whose run is interrupted.
    """

    def __init__(self, table: DialectTable, options: StreamOptions) -> None:
        self._table = table
        self._options = options
        self._writer = FrameWriter(table.encoder(options.framing), options.throttle)
        self._conversation = ConversationChanges(self._writer, options)
        self._usage = RunUsage()
        self._merges, self._is_whole = options.throttle > 0, options.whole
        self._reset_blocks()
        self._root_steps: dict[type[m.Event], Callable[[m.Record, Any], None]] = {
            m.SessionCreated: self._conversation.created,
            m.SessionUpdated: self._conversation.updated,
            m.SessionCompacted: self._conversation.compacted,
            m.TurnStarted: self._turn_started,
            m.TurnEnded: self._turn_ended,
            m.MessageStarted: self._message_started,
            m.MessageAnnotated: self._message_annotated,
            m.MessageEnded: self._message_ended,
            m.BlockStarted: self._block_started,
            m.BlockEnded: self._block_ended,
            m.ToolReturned: self._tool_returned,
            m.InputRequested: self._input_requested,
            m.InputResolved: self._input_resolved,
        }
        self._child_steps: dict[type[m.Event], Callable[[m.Record, Any], None]] = {
            m.InputRequested: self._input_requested,
            m.InputResolved: self._input_resolved,
        }

    def _reset_blocks(self) -> None:
        self._next_index = 0
        self._block_indexes: dict[str, int] = {}
        self._open_block: m.BlockStarted | None = None
        self._has_deltas = False
        self._ended: m.MessageEnded | None = None
        self._results: list[m.ToolReturned] = []
        self._open_calls: set[str] = set()
        self._asked: dict[str, type] = {}

    # -- in and out -----------------------------------------------------------------------------------------------

    def feed(self, record: m.Record) -> Frames:
        """The frames of a record; of sub-agents only asks have frames, because people must answer them."""
        event = record.event
        if type(event) is m.BlockDelta and record.scope_id == m.ROOT and event.delta and not self._is_whole:
            self._has_deltas = True
            index = self._block_indexes[event.block_id]
            if not self._merges:
                return self._writer.delta(record, index, event.delta, record.at)
            self._writer.merge_delta(index, event.delta, record.at)
            return self._writer.take()
        self._writer.flush(record.at)
        steps = self._root_steps if record.scope_id == m.ROOT else self._child_steps
        step = steps.get(type(event))
        if step is not None:
            step(record, event)
        return self._writer.take()

    def flush(self, now: float) -> Frames:
        self._writer.flush(now)
        return self._writer.take()

    @property
    def deadline(self) -> float | None:  # type: ignore[override]  # the base has none
        return self._writer.throttle.deadline

    # -- the run --------------------------------------------------------------------------------------------------

    def _turn_started(self, record: m.Record, event: m.TurnStarted) -> None:
        self._reset_blocks()
        self._usage.reset()
        self._writer.begin(record, self._options.framing)
        self._writer.event(
            record, user_id=self._conversation.user_id, message_id=self._options.message_id or event.command_id)
        self._conversation.begin_run(record)

    def _turn_ended(self, record: m.Record, event: m.TurnEnded) -> None:
        if self._results:
            self._open_message(record)
            self._write_results(record)
        self._conversation.release(record)
        if event.fault is not None:
            self._writer.cue("run.failed", record, fault=event.fault, code=wire_fault_code(event.fault))
        if self._writer.reply_id is not None:
            self._close_message(record, event, silent=event.fault is not None)
        if event.outcome is m.Outcome.INTERRUPTED:
            self._writer.cue("run.stopped", record, reason=event.stop_reason)
        if self._options.conversation_stop:
            self._writer.cue("run.conversation", record, outcome=event.outcome)
        self._writer.cue("run.ended", record, outcome=event.outcome, duration_ms=event.duration_ms)
        if self._options.framing == "sse":
            self._writer.cue("run.done", record)
        self._writer.end()
        self._reset_blocks()
        self._usage.reset()

    # -- messages -------------------------------------------------------------------------------------------------

    def _message_started(self, record: m.Record, event: m.MessageStarted) -> None:
        self._usage.start_message(event.model)
        if self._writer.reply_id is not None and self._options.multi_message:
            self._close_message(record, self._ended)
        self._ended = None
        self._open_message(record, event.message_id)
        self._write_results(record)

    def _message_ended(self, record: m.Record, event: m.MessageEnded) -> None:
        self._ended = event
        self._usage.end_message(event.usage)
        waits = (
            event.outcome is not m.Outcome.COMPLETED
            or event.stop_reason in WAITING_STOP_REASONS
            or bool(self._open_calls)
        )
        if self._options.multi_message and not waits:
            self._close_message(record, event)

    def _message_annotated(self, record: m.Record, event: m.MessageAnnotated) -> None:
        self._usage.annotate(event)
        self._writer.event(record)

    def _open_message(self, record: m.Record, message_id: str | None = None) -> None:
        """Open a message, if none is open; its id is made from the run's if no model has given one."""
        if self._writer.reply_id is None:
            self._writer.reply_id = message_id or f"msg_{self._writer.run_id.rpartition('_')[2]}"
            opening = OpeningBody(reply_id=self._writer.reply_id, model=self._usage.model)
            self._writer.cue("message.opened", record, opening=opening)
            self._conversation.open_message(record)

    def _close_message(
        self, record: m.Record, end: m.MessageEnded | m.TurnEnded | None, *, silent: bool = False,
    ) -> None:
        """Write the usage of the message and its end; the bill of the run, too, if nothing is to follow."""
        if end is not None and not silent:
            self._writer.cue("message.usage", record, stop_reason=end.stop_reason, usage=self._usage.of_message)
            if end.stop_reason not in WAITING_STOP_REASONS and not self._usage.is_billed:
                assert self._writer.start is not None, "messages are written within a run"
                self._writer.cue("message.billing", record, **self._usage.bill(record.at - self._writer.start.at))
        self._writer.cue("message.closed", record)
        self._writer.reply_id, self._ended, self._usage.of_message = None, None, m.Usage()

    # -- blocks ---------------------------------------------------------------------------------------------------

    def _take_index(self) -> int:
        """The index of the next block; indexes count the blocks of the whole run, not those of a message."""
        self._next_index += 1
        return self._next_index - 1

    def _block_started(self, record: m.Record, event: m.BlockStarted) -> None:
        self._open_block, self._has_deltas = event, False
        if event.kind in SHOWN_BLOCKS:
            self._block_indexes[event.block_id] = index = self._take_index()
            self._writer.event(record, index=index)

    def _block_ended(self, record: m.Record, event: m.BlockEnded) -> None:
        self._open_block = None
        if event.kind in SHOWN_BLOCKS:
            index = self._block_indexes.pop(event.block_id)
            if not self._has_deltas and (text := whole_text(event)):
                self._writer.cue("words", record, index=index, text=text)
            self._writer.event(record, index=index)
        elif event.image is not None:
            index = self._take_index()
            self._writer.cue("picture", record, index=index, **image_names(event.image))
            self._writer.event(record, index=index)
        if event.call is not None and not event.torn:
            self._open_calls.add(event.call.call_id)
        self._write_results(record)

    def _tool_returned(self, record: m.Record, event: m.ToolReturned) -> None:
        """Write a result as a block of the open message, or keep it for the next message."""
        self._open_calls.discard(event.call_id)
        self._results.append(event)
        self._write_results_if_possible(record)

    def _write_results_if_possible(self, record: m.Record) -> None:
        """Write the results that wait, unless a block is open, no message is open, or a person is asked.

        A block that follows a form would hide the form."""
        is_between = self._ended is not None and self._options.multi_message
        if self._writer.reply_id is not None and self._open_block is None and not is_between and not self._asked:
            self._write_results(record)

    def _write_results(self, record: m.Record) -> None:
        results, self._results = self._results, []
        for event in results:
            index = self._take_index()
            self._writer.cue(
                "result.opened", record, index=index, call_id=event.call_id, content="", is_error=event.is_error)
            self._writer.cue("words", record, index=index, text=result_text(event.content))
            self._writer.cue("stopped", record, index=index)

    # -- asks -----------------------------------------------------------------------------------------------------

    def _input_requested(self, record: m.Record, event: m.InputRequested) -> None:
        ask = event.ask
        self._asked[event.request_id] = type(ask)
        if isinstance(ask, m.RollbackAsk):
            options = rollback_options(ask, objects=self._options.rollback_objects)
            self._writer.event(record, options=options, option_ids=option_ids(ask), request=None)
        elif isinstance(ask, m.ContinuationAsk):
            self._writer.event(record, options=None, option_ids=None, request=None)
        else:
            self._open_message(record)
            request = confirmation_body(self._table, _open_ask(record, event), record.session_id)
            self._writer.event(record, options=None, option_ids=None, request=request)

    def _input_resolved(self, record: m.Record, event: m.InputResolved) -> None:
        kind = self._asked.pop(event.request_id, None)
        if kind is m.RollbackAsk and event.resolution is m.Resolution.ANSWERED:
            self._writer.cue("rollback.done", record)
        self._write_results_if_possible(record)


def _open_ask(record: m.Record, event: m.InputRequested) -> m.OpenAsk:
    return m.OpenAsk(
        request_id=event.request_id, ask=event.ask, seq=record.seq, at=record.at, turn_id=record.turn_id or "",
        scope_id=record.scope_id, call_id=event.call_id, expires_at=event.expires_at,
    )
