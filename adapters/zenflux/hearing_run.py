"""One run as it is heard: its frames in, words of the house out; a message of theirs may be several rounds of ours."""

from collections.abc import Callable
from typing import Any

from gateway.ids import Mint
from gateway.model import (
    MessageAnnotated,
    NoticePosted,
    Outcome,
    SessionCompacted,
    SessionUpdated,
    StopReason,
    ToolOrigin,
    Topic,
)
from gateway.ports import Said
from gateway.speech import NOTHING, Scribe
from gateway.upstream import Asked, Ended, Heard

from . import hearing_asks as asks
from .hearing_blocks import RESULT, Blocks
from .hearing_costs import Costs
from .hearing_ending import NOT_AN_END, Ending
from .hearing_words import fault_of, members, outcome_of, parsed, stop_reason_of, stopped_by, text, tokens

Data = dict[str, Any]
TOPICS = {topic.value: topic for topic in Topic if topic is not Topic.MEMORY_REFS}


class HeardRun:
    """What was heard of a run so far.

    Results of tools end a round: what is said after them is a message of its own, whether or not the server begins a
    new one. Where it does, results come first in it, and are told before it. A message is ended before people are
    asked; what it has cost is told by the server only later, and goes to the next one.
    """

    def __init__(self, mint: Mint, run_id: str) -> None:
        self.run_id = run_id
        self.paused = False
        """The server has asked, and has said nothing since."""
        self.over = False
        self.closing = False
        """The server may have said all it will say: a message has ended, or the run has failed or was stopped."""
        self.scribe = Scribe(mint)
        self._mint, self._blocks, self._costs = mint, Blocks(self.scribe), Costs()
        self._ending = Ending()
        self._model: str | None = None
        self._round_over = False
        self._remarks: list[tuple[Topic, Any]] = []
        self._seq = 0

    def feed(self, kind: str, data: Data, seq: int) -> list[Heard]:
        tell = _TELLS.get(kind)
        if tell is None or self.over:
            return []
        self._seq = seq
        if kind not in _BESIDE:
            self.paused = self.closing = False
        return tell(self, data)

    @property
    def decided(self) -> bool:
        """The run has failed or was stopped; only its end can follow."""
        return self._ending.decided

    def end(self) -> list[Heard]:
        """The ends of what is open."""
        return [*self._finish(self._ending.stop)]

    # -- messages -------------------------------------------------------------------------------------------------

    def _message_start(self, data: Data) -> list[Heard]:
        """Where calls are out, their results come first, and the message begins with what follows them."""
        self._model = text(members(data.get("message")).get("model")) or self._model
        ends = self._finish(self._ending.stop)
        self._ending.stop = StopReason.END_TURN
        out = any(call.origin is not ToolOrigin.PROVIDER for call in self.scribe.open_calls.values())
        return [*ends, *([] if out else self.scribe.begin(model=self._model))]

    def _speak(self) -> list[Said]:
        """A message is open now in which something can be said."""
        ends = self._finish(StopReason.TOOL_USE) if self._round_over else []
        return ends if self.scribe.pen.in_message else [*ends, *self.scribe.begin(model=self._model)]

    def _finish(self, stop: StopReason, outcome: Outcome = Outcome.COMPLETED) -> list[Said]:
        said = [*self._blocks.finish(), *self._remark()]
        self._costs.message_over()
        self._round_over = False
        if not self.scribe.pen.in_message:
            return said
        return [*said, *self.scribe.finish(stop, self._costs.take(), outcome)]

    def _message_stop(self, data: Data) -> list[Heard]:
        ends = self._finish(self._ending.stop)
        self.closing = self.decided or (self._ending.stop not in NOT_AN_END and not self.scribe.open_calls)
        return [*ends]

    # -- blocks ---------------------------------------------------------------------------------------------------

    def _content_start(self, data: Data) -> list[Heard]:
        block = members(data.get("content_block"))
        if block.get("type") != RESULT:
            return [*self._speak(), *self._blocks.start(data)]
        call = self.scribe.open_calls.get(text(block.get("tool_use_id")))
        inside = self.scribe.pen.in_message and call is not None and call.origin is not ToolOrigin.PROVIDER
        self._round_over = self._round_over or inside
        return [*self._blocks.start(data)]

    def _content_delta(self, data: Data) -> list[Heard]:
        begun = self._speak() if self._blocks.is_new(data) else []
        return [*begun, *self._blocks.delta(data)]

    def _content_stop(self, data: Data) -> list[Heard]:
        return [*self._blocks.stop(data), *self._remark()]

    # -- what is said about a message -----------------------------------------------------------------------------

    def _message_delta(self, data: Data) -> list[Heard]:
        """`delta` repeats it with parsed content; without it, content may be JSON in a string."""
        again = data.get("delta")
        said = again if isinstance(again, dict) and "content" in again else data
        kind = text(said.get("type")) or text(data.get("type"))
        content = said["content"] if said is again else self._content(kind, data.get("content"))
        if kind == "usage":
            return self._usage(members(content))
        if kind in ("confirmation_request", "hitl"):
            return self._confirmation(members(parsed(content)))
        if kind == Topic.BILLING:
            was_told = self._costs.told
            self._costs.billed(content)
            if was_told:
                return []
        if kind in TOPICS:
            self._remarks.append((TOPICS[kind], content))
            return [*self._remark()]
        return []

    @staticmethod
    def _content(kind: str, content: Any) -> Any:
        return parsed(content) if kind == Topic.RECOMMENDED else content

    def _usage(self, content: Data) -> list[Heard]:
        self._ending.stop = stop_reason_of(content.get("stop_reason"))
        self._costs.spent(content)
        return []

    def _remark(self) -> list[Said]:
        """Remarks stand between blocks."""
        if self.scribe.pen.in_block or not self._remarks:
            return []
        remarks, self._remarks = self._remarks, []
        said = [] if self.scribe.pen.in_message else self.scribe.begin(model=self._model)
        message_id = self.scribe.pen.message_id
        return [*said, *(MessageAnnotated(message_id=message_id, topic=topic, content=content)
                         for topic, content in remarks)]

    # -- asks -----------------------------------------------------------------------------------------------------

    def _confirmation(self, content: Data) -> list[Heard]:
        if content.get("status") not in (None, "pending"):
            return []
        ends = self._finish(StopReason.TOOL_USE if self.scribe.open_calls else StopReason.NEEDS_INPUT)
        return [*ends, self._asked(*asks.confirmation(content, self.scribe.open_calls, self.run_id, self._seq))]

    def _long_running(self, data: Data) -> list[Heard]:
        ends = self._finish(StopReason.NEEDS_INPUT)
        return [*ends, self._asked(*asks.continuation(data, self.run_id, self._seq))]

    def _rollback(self, data: Data) -> list[Heard]:
        ends = self._finish(StopReason.NEEDS_INPUT)
        return [*ends, self._asked(*asks.rollback(data, self.run_id, self._seq))]

    def _asked(self, ask: Any, ref: asks.Ref) -> Asked:
        self.paused = True
        return Asked(ask=ask, ref=asks.ref_word(ref))

    def _nothing(self, data: Data) -> list[Heard]:
        return []

    # -- beside the messages --------------------------------------------------------------------------------------

    def _conversation(self, data: Data) -> list[Heard]:
        title, metadata, compressed = data.get("title"), data.get("metadata"), data.get("compressed")
        said: list[Heard] = []
        if isinstance(title, str) or isinstance(metadata, dict):
            said.append(SessionUpdated(
                title=title if isinstance(title, str) else None,
                metadata=metadata if isinstance(metadata, dict) else None,
            ))
        if isinstance(compressed, dict):
            said.append(SessionCompacted(
                compaction_id=self._mint("cmp"), summary=text(compressed.get("summary")),
                archived=tokens(compressed.get("trimmed_count")),
            ))
        return said

    def _notification(self, data: Data) -> list[Heard]:
        title = text(data.get("title")) or text(data.get("message"))
        topic = text(data.get("notification_type")) or "notification"
        return [NoticePosted(topic=topic, title=title, detail=data)] if title else []

    # -- the end --------------------------------------------------------------------------------------------------

    def _error(self, data: Data) -> list[Heard]:
        self._ending.fault, self.closing = fault_of(data.get("error", data)), True
        return [*self._finish(StopReason.ERROR, Outcome.FAILED)]

    def _session_stopped(self, data: Data) -> list[Heard]:
        self._ending.stopped, self.closing = stopped_by(data.get("reason")), True
        return [*self._finish(StopReason.INTERRUPTED, Outcome.INTERRUPTED)]

    def _session_end(self, data: Data) -> list[Heard]:
        return self.conclude(outcome_of(data.get("status")))

    def _done(self, data: Data) -> list[Heard]:
        return self.conclude()

    def conclude(self, outcome: Outcome | None = None) -> list[Heard]:
        """The run is over; how, is told by its status, or by what was said before."""
        outcome = outcome or self._ending.outcome
        stop = self._ending.stop_of(outcome)
        said = self._finish(stop, outcome)
        self.over, self.paused, self.closing = True, False, False
        owed = self._costs.take()
        if owed != NOTHING:
            said += [*self.scribe.begin(model=self._model), *self.scribe.finish(stop, owed, outcome)]
        return [*said, Ended(stop_reason=stop, outcome=outcome, fault=self._ending.fault)]


_TELLS: dict[str, Callable[[HeardRun, Data], list[Heard]]] = {
    "conversation_delta": HeardRun._conversation,
    "message_start": HeardRun._message_start,
    "message_delta": HeardRun._message_delta,
    "message_stop": HeardRun._message_stop,
    "content_start": HeardRun._content_start,
    "content_delta": HeardRun._content_delta,
    "content_stop": HeardRun._content_stop,
    "long_running_confirm": HeardRun._long_running,
    "rollback_options": HeardRun._rollback,
    "rollback_completed": HeardRun._nothing,
    "notification": HeardRun._notification,
    "error": HeardRun._error,
    "session_stopped": HeardRun._session_stopped,
    "session_end": HeardRun._session_end,
    "done": HeardRun._done,
}
_BESIDE = ("conversation_delta", "notification")
"""Can come at any time, and change nothing about whether the server waits."""
