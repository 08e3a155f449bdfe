"""ZenFlux, outward: records in, frames out. No clock, no socket."""

from collections.abc import Callable
from typing import Any

from gateway.model import (
    ROOT,
    BlockDelta,
    BlockEnded,
    BlockKind,
    BlockStarted,
    ContinuationAsk,
    Event,
    InputRequested,
    InputResolved,
    MessageAnnotated,
    MessageEnded,
    MessageStarted,
    OpenAsk,
    Outcome,
    Record,
    Resolution,
    RollbackAsk,
    SessionCompacted,
    SessionCreated,
    SessionUpdated,
    StopReason,
    ToolReturned,
    Topic,
    TurnEnded,
    TurnStarted,
    Usage,
    shown,
)
from gateway.ports import Outbound
from mappings.language import Table

from .asks import confirmation, option_ids, rollback_options
from .blocks import as_text, bill, code_of, in_words, picture, whole_of
from .manner import Manner, from_word, user_of
from .throttle import DeltaThrottle, Merged
from .voice import NAMES as EVERYWHERE
from .voice import Frames, Voice

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
WAITING = (StopReason.TOOL_USE, StopReason.NEEDS_INPUT)
SHOWN = (BlockKind.TEXT, BlockKind.THINKING, BlockKind.TOOL_USE)


def projector(table: Table, options: str) -> Outbound:
    return Run(table, from_word(options))


class Run:
    """Tells one run after another, from session_start to session_end.

    The end of a message is withheld while something can still come into it: a confirmation, an error that readers would
    miss who leave at message_stop, the results of calls whose run is broken off.
    """

    def __init__(self, table: Table, manner: Manner) -> None:
        self.table = table
        self.manner = manner
        self.voice = Voice(table.speaker(manner.framing))
        self.throttle = DeltaThrottle(manner.throttle)
        self.merging, self.whole = manner.throttle > 0, manner.whole
        self.title, self.created_at = manner.title, manner.created_at
        self.metadata, self.user_id = manner.metadata, manner.user_id
        self.out: list[bytes] = []
        self._reset(None)

    def _reset(self, start: Record | None) -> None:
        self.start = start
        self.count = 0
        self.places: dict[str, int] = {}
        self.block: BlockStarted | None = None
        self.written = False
        self.ended: MessageEnded | None = None
        self.results: list[ToolReturned] = []
        self.calls: set[str] = set()
        self.asked: dict[str, type] = {}
        self.spoken = False
        self.changes: list[tuple[str, dict[str, Any]]] = []
        self.usage, self.spent, self.llm_calls, self.model = Usage(), Usage(), 0, ""
        self.billed = False

    # -- in and out -----------------------------------------------------------------------------------------------

    def feed(self, record: Record) -> Frames:
        event = record.event
        if type(event) is BlockDelta and record.scope_id == ROOT and event.delta and not self.whole:
            self.written = True
            if not self.merging:
                return self.voice.words(record, self.places[event.block_id], event.delta, record.at)
            self._merged(self.throttle.take(self.places[event.block_id], event.delta, record.at))
            return self._said()
        self._merged(self.throttle.due(record.at))
        if (tell := _TELLS.get(type(event))) is not None and (record.scope_id == ROOT or type(event) in _OF_CHILDREN):
            tell(self, record, event)
        return self._said()

    def flush(self, now: float) -> Frames:
        self._merged(self.throttle.due(now))
        return self._said()

    @property
    def deadline(self) -> float | None:
        return self.throttle.deadline

    def _said(self) -> Frames:
        if not self.out:
            return ()
        said, self.out = tuple(self.out), []
        return said

    def _say(self, cue: str, record: Record, **names: Any) -> None:
        """A cue of ours; words that were held back go first."""
        self._merged(self.throttle.release(record.at))
        self.out += self.voice.cue(cue, record, record.at, **names)

    def _tell(self, record: Record, **names: Any) -> None:
        """The event itself."""
        self._merged(self.throttle.release(record.at))
        self.out += self.voice.event(record, **names)

    def _merged(self, merged: list[Merged]) -> None:
        for index, text, at in merged:
            assert self.start is not None, "words come within a run"
            self.out += self.voice.words(self.start, index, text, at)

    # -- the conversation -----------------------------------------------------------------------------------------

    def _created(self, record: Record, event: SessionCreated) -> None:
        self.title, self.created_at, self.metadata = event.title, record.at, shown(event.metadata)
        self.user_id = user_of(event.owner, event.metadata)

    def _updated(self, record: Record, event: SessionUpdated) -> None:
        if event.title is not None:
            self.title = event.title
            self._changed(record, "conversation.titled", title=event.title)
        if event.metadata is not None:
            changed, self.metadata = shown(event.metadata) != self.metadata, shown(event.metadata)
            if changed:
                self._changed(record, "conversation.tagged", metadata=self.metadata)

    def _compacted(self, record: Record, event: SessionCompacted) -> None:
        self._changed(record, "conversation.summed_up", summary=event.summary, count=event.archived)

    def _changed(self, record: Record, cue: str, **names: Any) -> None:
        """The third event of a run is its message; what changes before that is told after it."""
        self.changes += [(cue, names)] if self.start is not None else []
        if self.spoken:
            self._tell_changes(record)

    def _tell_changes(self, record: Record) -> None:
        changes, self.changes = self.changes, []
        for cue, names in changes:
            self._say(cue, record, **names)

    # -- the run --------------------------------------------------------------------------------------------------

    def _started(self, record: Record, event: TurnStarted) -> None:
        self._reset(record)
        self.voice.begin(record.turn_id or "", self.manner.framing)
        self._tell(record, user_id=self.user_id, message_id=self.manner.message_id or event.command_id)
        self._say(
            "conversation.opened", record, title=self.title or self.manner.untitled, created_at=self.created_at,
            metadata=self.metadata,
        )

    def _over(self, record: Record, event: TurnEnded) -> None:
        if self.results:
            self._speaking(record)
            self._give_results(record)
        self._tell_changes(record)
        if event.fault is not None:
            self._say("run.failed", record, fault=event.fault, code=code_of(event.fault))
        if self.voice.reply_id is not None:
            self._close(record, event, silent=event.fault is not None)
        if event.outcome is Outcome.INTERRUPTED:
            self._say("run.stopped", record, reason=event.stop_reason)
        if self.manner.conversation_stop:
            self._say("run.conversation", record, outcome=event.outcome)
        self._say("run.ended", record, outcome=event.outcome, duration_ms=event.duration_ms)
        if self.manner.framing == "sse":
            self._say("run.done", record)
        self._reset(None)

    # -- messages -------------------------------------------------------------------------------------------------

    def _message_started(self, record: Record, event: MessageStarted) -> None:
        self.model, self.llm_calls, self.billed = event.model or self.model, self.llm_calls + 1, False
        if self.voice.reply_id is not None and self.manner.multi_message:
            self._close(record, self.ended)
        self.ended = None
        self._speaking(record, event.message_id)
        self._give_results(record)

    def _message_ended(self, record: Record, event: MessageEnded) -> None:
        self.ended, self.usage, self.spent = event, self.usage + event.usage, self.spent + event.usage
        waits = event.outcome is not Outcome.COMPLETED or event.stop_reason in WAITING or self.calls
        if self.manner.multi_message and not waits:
            self._close(record, event)

    def _annotated(self, record: Record, event: MessageAnnotated) -> None:
        if event.topic is Topic.BILLING:
            self.billed = isinstance(event.content, dict) and "total_tokens" in event.content
        self._tell(record, words=as_text(event.content))

    def _speaking(self, record: Record, message_id: str | None = None) -> None:
        """A message is open now, if it was not; its id is made from the run's where no model has given one."""
        if self.voice.reply_id is None:
            self.voice.reply_id = message_id or f"msg_{self.voice.run_id.rpartition('_')[2]}"
            opening = self.table.object("opening", reply_id=self.voice.reply_id, model=self.model)
            self._say("message.opened", record, opening=opening)
            self.spoken = True
            self._tell_changes(record)

    def _close(self, record: Record, end: MessageEnded | TurnEnded | None, *, silent: bool = False) -> None:
        """What the message cost, and its end; where nothing is to follow, what the run has cost so far.

        An agent that has told by itself what its run costs knows better, and two bills might not agree.
        """
        if end is not None and not silent:
            spent = self.table.object("spent", stop_reason=end.stop_reason, usage=self.spent)
            self._say("message.usage", record, spent=spent)
            if end.stop_reason not in WAITING and not self.billed:
                self._say("message.billing", record, bill=self._bill(record.at))
        self._say("message.closed", record)
        self.voice.reply_id, self.ended, self.spent = None, None, Usage()

    def _bill(self, at: float) -> Any:
        assert self.start is not None, "messages are said within a run"
        return bill(self.table, self.usage, llm_calls=self.llm_calls, model=self.model, latency=at - self.start.at)

    # -- blocks ---------------------------------------------------------------------------------------------------

    def _next(self) -> int:
        """Indexes grow over the whole run, whatever message a block is in."""
        self.count += 1
        return self.count - 1

    def _block_started(self, record: Record, event: BlockStarted) -> None:
        self.block, self.written = event, False
        if event.kind in SHOWN:
            self.places[event.block_id] = index = self._next()
            self._tell(record, index=index)

    def _block_ended(self, record: Record, event: BlockEnded) -> None:
        self.block = None
        if event.kind in SHOWN:
            index = self.places.pop(event.block_id)
            if not self.written and (text := whole_of(event)):
                self._say("words", record, index=index, text=text)
            self._tell(record, index=index)
        elif event.image is not None:
            index = self._next()
            self._say("picture", record, index=index, block=picture(self.table, event.image))
            self._tell(record, index=index)
        if event.call is not None and not event.torn:
            self.calls.add(event.call.call_id)
        self._give_results(record)

    def _returned(self, record: Record, event: ToolReturned) -> None:
        """Results are blocks of the message that follows; of the one that is open, if they came back within it."""
        self.calls.discard(event.call_id)
        self.results.append(event)
        self._give_results_now(record)

    def _give_results_now(self, record: Record) -> None:
        """Not inside a block, not between two rounds, and not while a person is asked: a block would hide the form."""
        between = self.ended is not None and self.manner.multi_message
        if self.voice.reply_id is not None and self.block is None and not between and not self.asked:
            self._give_results(record)

    def _give_results(self, record: Record) -> None:
        results, self.results = self.results, []
        for event in results:
            index = self._next()
            self._say("result.opened", record, index=index, call_id=event.call_id, is_error=event.is_error)
            self._say("words", record, index=index, text=in_words(event.content))
            self._say("stopped", record, index=index)

    # -- asks -----------------------------------------------------------------------------------------------------

    def _requested(self, record: Record, event: InputRequested) -> None:
        ask = event.ask
        self.asked[event.request_id] = type(ask)
        if isinstance(ask, RollbackAsk):
            options = rollback_options(ask, objects=self.manner.rollback_objects)
            self._tell(record, options=options, option_ids=option_ids(ask), request=None)
        elif isinstance(ask, ContinuationAsk):
            self._tell(record, options=None, option_ids=None, request=None)
        else:
            self._speaking(record)
            request = confirmation(self.table, _open(record, event), record.session_id)
            self._tell(record, options=None, option_ids=None, request=request)

    def _resolved(self, record: Record, event: InputResolved) -> None:
        kind = self.asked.pop(event.request_id, None)
        if kind is RollbackAsk and event.resolution is Resolution.ANSWERED:
            self._say("rollback.done", record)
        self._give_results_now(record)


def _open(record: Record, event: InputRequested) -> OpenAsk:
    return OpenAsk(
        request_id=event.request_id, ask=event.ask, seq=record.seq, at=record.at, turn_id=record.turn_id or "",
        scope_id=record.scope_id, call_id=event.call_id, expires_at=event.expires_at,
    )


_TELLS: dict[type[Event], Callable[[Run, Record, Any], None]] = {
    SessionCreated: Run._created,
    SessionUpdated: Run._updated,
    SessionCompacted: Run._compacted,
    TurnStarted: Run._started,
    TurnEnded: Run._over,
    MessageStarted: Run._message_started,
    MessageAnnotated: Run._annotated,
    MessageEnded: Run._message_ended,
    BlockStarted: Run._block_started,
    BlockEnded: Run._block_ended,
    ToolReturned: Run._returned,
    InputRequested: Run._requested,
    InputResolved: Run._resolved,
}
_OF_CHILDREN = (InputRequested, InputResolved)
"""Sub-agents are not heard, but what they ask must be answered."""
