"""Decodes one run: its messages, which may be several of ours, its usage, which counts once, and its end."""

from collections.abc import Sequence
from typing import Any

import gateway.model as m
from adapters.zenflux import asks as asks_module
from gateway.client import NO_USAGE, StreamAssembler, cue_handlers, decodes, read_count, read_usage
from gateway.ids import Mint
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import BackendEvent, DecodedItem, RemoteAsk, RemoteTurnEnd
from mappings.language import Bindings

from .block_decoder import BlockDecoder
from .readers import ZENFLUX, RunEvent, read_confirmation, read_continuation, read_fault, read_rollback

NOTICE = "notice.posted"
ANY_TIME = ("conversation.titled", NOTICE)
"""Events that may come at any time, whether or not the server waits."""
TOPICS = {topic.value: topic for topic in m.AnnotationTopic if topic is not m.AnnotationTopic.MEMORY_REFS}


class RunDecoder:
    """The state of one run.

    Results of tools end a message: what follows is a message of its own, even if the server does not begin a new one.
    If it does, the results are first in it, and become events before it. A message ends before an ask; the server
    sends its usage only later, and the next message carries it.
    """

    def __init__(self, mint: Mint, run_id: str) -> None:
        self.run_id = run_id
        self.paused = False
        """Whether an ask was the last thing that the server sent."""
        self.over = False
        self.closing = False
        """Whether the run may be over: a message has ended, or the run has failed or was stopped."""
        self.assembler = StreamAssembler(mint)
        self._mint, self._blocks, self._costs = mint, BlockDecoder(self.assembler), UsageCounter()
        self._ending = RunEnd()
        self._model: str | None = None
        self._round_over = False
        self._remarks: list[tuple[m.AnnotationTopic, Any]] = []
        self._seq = 0

    def feed(self, event: RunEvent) -> Sequence[DecodedItem]:
        cue = event.cue
        handle = HANDLERS.get(cue)
        if handle is None or self.over:
            return []
        if cue not in ANY_TIME:
            self.paused = self.closing = False
        if cue in BLOCK_STARTS:
            return [*self._speak(), *handle(self._blocks, event.given)]
        self._seq = event.seq
        events: Sequence[DecodedItem] = handle(self, event.given)
        return events

    @property
    def decided(self) -> bool:
        """The run has failed or was stopped; only its end can follow."""
        return self._ending.decided

    def end(self) -> list[DecodedItem]:
        """End what is open."""
        return [*self._finish(self._ending.stop)]

    # -- messages -------------------------------------------------------------------------------------------------

    @decodes("message.opened")
    def _message_start(self, opening: Bindings | None) -> list[DecodedItem]:
        """If calls are open, their results come first, and the message begins after them."""
        self._model = (opening and opening["model"]) or self._model
        ends = self._finish(self._ending.stop)
        self._ending.stop = m.StopReason.END_TURN
        out = any(call.origin is not m.ToolOrigin.PROVIDER for call in self.assembler.open_calls.values())
        return [*ends, *([] if out else self.assembler.begin(model=self._model))]

    def _speak(self) -> list[BackendEvent]:
        """Open a message, if none is open."""
        ends = self._finish(m.StopReason.TOOL_USE) if self._round_over else []
        return ends if self.assembler.writer.in_message else [*ends, *self.assembler.begin(model=self._model)]

    def _finish(self, stop: m.StopReason, outcome: m.Outcome = m.Outcome.COMPLETED) -> list[BackendEvent]:
        events = [*self._blocks.finish(), *self._remark()]
        self._costs.message_over()
        self._round_over = False
        if not self.assembler.writer.in_message:
            return events
        return [*events, *self.assembler.finish(stop, self._costs.take(), outcome)]

    @decodes("message.closed")
    def _message_stop(self) -> list[DecodedItem]:
        ends = self._finish(self._ending.stop)
        self.closing = self.decided or (self._ending.stop not in NOT_FINAL and not self.assembler.open_calls)
        return [*ends]

    # -- blocks ---------------------------------------------------------------------------------------------------

    @decodes("result.opened")
    def _result_start(
        self, index: int, call_id: str | None, content: JsonValue, is_error: bool | None,
    ) -> list[DecodedItem]:
        call = self.assembler.open_calls.get(call_id or "")
        inside = self.assembler.writer.in_message and call is not None and call.origin is not m.ToolOrigin.PROVIDER
        self._round_over = self._round_over or inside
        return [*self._blocks.start_result(index, call_id or "", content, is_error=is_error is True)]

    @decodes("words")
    def _words(self, index: int, text: str) -> Sequence[DecodedItem]:
        return self._delta(index, text)

    @decodes("words.keyed")
    def _delta(self, index: int, piece: str | None, signature: str | None = None) -> Sequence[DecodedItem]:
        if self._blocks.is_new(index):
            return [*self._speak(), *self._blocks.delta(index, piece or "", signature)]
        return self._blocks.delta(index, piece or "", signature)

    @decodes("block.ended")
    def _content_stop(self, index: int, signature: str | None) -> list[DecodedItem]:
        return [*self._blocks.stop(index, signature), *self._remark()]

    # -- usage and annotations of a message -----------------------------------------------------------------------

    @decodes("message.annotated")
    def _annotated(self, topic: str | None, content: JsonValue) -> list[DecodedItem]:
        known = TOPICS.get(topic or "")
        return [] if known is None else self._annotate(known, content)

    @decodes("message.annotated.recommended")
    def _recommended(self, content: JsonValue) -> list[DecodedItem]:
        return self._annotate(m.AnnotationTopic.RECOMMENDED, content)

    def _annotate(self, topic: m.AnnotationTopic, content: object) -> list[DecodedItem]:
        self._remarks.append((topic, content))
        return [*self._remark()]

    @decodes("message.billing")
    def _billed(self, usage: Bindings, content: JsonValue) -> list[DecodedItem]:
        had_usage = self._costs.has_usage
        if isinstance(content, dict):
            self._costs.billed(read_usage(usage))
        return [] if had_usage else self._annotate(m.AnnotationTopic.BILLING, content)

    @decodes("message.usage")
    def _spent(self, stop_reason: m.StopReason | None, usage: Bindings) -> list[DecodedItem]:
        self._ending.stop = stop_reason or m.StopReason.END_TURN
        self._costs.spent(read_usage(usage))
        return []

    def _remark(self) -> list[BackendEvent]:
        """Annotations are between blocks."""
        if self.assembler.writer.in_block or not self._remarks:
            return []
        remarks, self._remarks = self._remarks, []
        events = [] if self.assembler.writer.in_message else self.assembler.begin(model=self._model)
        message_id = self.assembler.writer.message_id
        return [*events, *(m.MessageAnnotated(message_id=message_id, topic=topic, content=content)
                         for topic, content in remarks)]

    # -- asks -----------------------------------------------------------------------------------------------------

    @decodes("input.requested.permission")
    def _confirmation(self, request: Bindings | None) -> list[DecodedItem]:
        asked = read_confirmation(request, self.assembler.open_calls, self.run_id, self._seq)
        if asked is None:
            return []
        ends = self._finish(m.StopReason.TOOL_USE if self.assembler.open_calls else m.StopReason.NEEDS_INPUT)
        return [*ends, self._pause_for(*asked)]

    @decodes("input.requested.continuation")
    def _long_running(self, ask: Bindings) -> list[DecodedItem]:
        ends = self._finish(m.StopReason.NEEDS_INPUT)
        return [*ends, self._pause_for(*read_continuation(ask, self.run_id, self._seq))]

    @decodes("input.requested.rollback")
    def _rollback(self, ask: Bindings, options: list[object] | None) -> list[DecodedItem]:
        ends = self._finish(m.StopReason.NEEDS_INPUT)
        return [*ends, self._pause_for(*read_rollback(ask, options, self.run_id, self._seq))]

    def _pause_for(self, ask: Any, ref: asks_module.AskRef) -> RemoteAsk:
        self.paused = True
        return RemoteAsk(ask=ask, ref=asks_module.encode_ref(ref))

    @decodes("rollback.done")
    def _nothing(self) -> list[DecodedItem]:
        return []

    # -- beside the messages --------------------------------------------------------------------------------------

    @decodes("conversation.titled")
    def _conversation(
        self, title: str | None, metadata: JsonObject | None, summary: str | None, count: int | None,
    ) -> list[DecodedItem]:
        events: list[DecodedItem] = []
        if title is not None or metadata is not None:
            events.append(m.SessionUpdated(title=title, metadata=metadata))
        if summary is not None or count is not None:
            events.append(m.SessionCompacted(
                compaction_id=self._mint("cmp"), summary=summary or "", archived=read_count(count)))
        return events

    @decodes(NOTICE)
    def _notification(
        self, notice_type: str | None, notice_title: str | None, detail: JsonObject | None,
    ) -> list[DecodedItem]:
        """One of no kind is called as its frame is."""
        topic = notice_type or ZENFLUX.table.frame_name(NOTICE)
        return [m.NoticePosted(topic=topic, title=notice_title, detail=detail)] if notice_title else []

    # -- the end --------------------------------------------------------------------------------------------------

    @decodes("run.failed")
    def _error(self, code: m.FaultCode | None, fault: Bindings) -> list[DecodedItem]:
        self._ending.fault, self.closing = read_fault(code, fault), True
        return [*self._finish(m.StopReason.ERROR, m.Outcome.FAILED)]

    @decodes("run.stopped")
    def _session_stopped(self, reason: m.StopReason | None) -> list[DecodedItem]:
        self._ending.stopped, self.closing = reason or m.StopReason.INTERRUPTED, True
        return [*self._finish(m.StopReason.INTERRUPTED, m.Outcome.INTERRUPTED)]

    @decodes("run.ended", "run.done")
    def _session_end(self, outcome: m.Outcome | str | None = None) -> list[DecodedItem]:
        return self.conclude(outcome if isinstance(outcome, m.Outcome) else None)

    def conclude(self, outcome: m.Outcome | None = None) -> list[DecodedItem]:
        """End the run; its outcome follows from its status, or from earlier frames."""
        outcome = outcome or self._ending.outcome
        stop = self._ending.stop_of(outcome)
        events = self._finish(stop, outcome)
        self.over, self.paused, self.closing = True, False, False
        owed = self._costs.take()
        if owed != NO_USAGE:
            events += [*self.assembler.begin(model=self._model), *self.assembler.finish(stop, owed, outcome)]
        return [*events, RemoteTurnEnd(stop_reason=stop, outcome=outcome, fault=self._ending.fault)]


BLOCK_STARTS = cue_handlers(BlockDecoder)
HANDLERS = {**cue_handlers(RunDecoder), **BLOCK_STARTS}


class UsageCounter:
    """`take` gives the usage that belongs to no message yet."""

    def __init__(self) -> None:
        self._taken = m.Usage()
        self._owed = m.Usage()
        self._bill: m.Usage | None = None
        self.has_usage = False
        """Whether the open message has had its usage; a bill that follows is the run's, and no annotation."""

    def spent(self, usage: m.Usage) -> None:
        """The tokens of a message, where the frame that ends it has them."""
        self.has_usage = True
        self._owed += usage

    def billed(self, usage: m.Usage) -> None:
        """A bill is of the whole run: usage that was counted already is not counted again.

        A bill before the usage of its message may be an agent's annotation, and counts only if no usage follows.
        """
        if self.has_usage:
            self._owed = self._owed.at_least(usage.beyond(self._taken))
        else:
            self._bill = usage

    def message_over(self) -> None:
        if not self.has_usage and self._bill is not None:
            self._owed = self._owed.at_least(self._bill.beyond(self._taken))
        self.has_usage, self._bill = False, None

    def take(self) -> m.Usage:
        taken, self._owed = self._owed, m.Usage()
        self._taken += taken
        return taken


NOT_FINAL = (m.StopReason.TOOL_USE, m.StopReason.NEEDS_INPUT)


class RunEnd:
    """The facts so far that decide how the run ends."""

    def __init__(self) -> None:
        self.stop = m.StopReason.END_TURN
        """Why the last message ended."""
        self.fault: m.Fault | None = None
        self.stopped: m.StopReason | None = None

    @property
    def decided(self) -> bool:
        """The run has failed or was stopped; only its end can follow."""
        return self.fault is not None or self.stopped is not None

    @property
    def outcome(self) -> m.Outcome:
        if self.fault is not None:
            return m.Outcome.FAILED
        return m.Outcome.COMPLETED if self.stopped is None else m.Outcome.INTERRUPTED

    def stop_of(self, outcome: m.Outcome) -> m.StopReason:
        """The stop reason of the run, once its outcome is known."""
        if outcome is m.Outcome.INTERRUPTED:
            return self.stopped or m.StopReason.INTERRUPTED
        if outcome is m.Outcome.FAILED:
            late = self.fault is not None and self.fault.code == "timeout"
            return m.StopReason.TIMEOUT if late else m.StopReason.ERROR
        return m.StopReason.END_TURN if self.stop in NOT_FINAL else self.stop
