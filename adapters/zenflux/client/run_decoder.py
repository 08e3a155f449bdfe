"""Decodes one run: its messages, which may be several of ours, its usage, which counts once, and its end."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import asdict

import gateway.model as m
from adapters.zenflux import asks as asks_module
from gateway.client import NO_USAGE, StreamAssembler
from gateway.ids import Mint
from gateway.ports import BackendEvent, DecodedItem, RemoteAsk, RemoteTurnEnd

from . import ask_readers as asks
from .block_decoder import RESULT, BlockDecoder
from .readers import members, outcome_of, parsed_json, read_fault, read_usage, stop_cause, stop_reason_of, text, tokens

Data = dict[str, Any]
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

    def feed(self, kind: str, data: Data, seq: int) -> list[DecodedItem]:
        tell = _HANDLERS.get(kind)
        if tell is None or self.over:
            return []
        self._seq = seq
        if kind not in _ANY_TIME:
            self.paused = self.closing = False
        return tell(self, data)

    @property
    def decided(self) -> bool:
        """The run has failed or was stopped; only its end can follow."""
        return self._ending.decided

    def end(self) -> list[DecodedItem]:
        """End what is open."""
        return [*self._finish(self._ending.stop)]

    # -- messages -------------------------------------------------------------------------------------------------

    def _message_start(self, data: Data) -> list[DecodedItem]:
        """If calls are open, their results come first, and the message begins after them."""
        self._model = text(members(data.get("message")).get("model")) or self._model
        ends = self._finish(self._ending.stop)
        self._ending.stop = m.StopReason.END_TURN
        out = any(call.origin is not m.ToolOrigin.PROVIDER for call in self.assembler.open_calls.values())
        return [*ends, *([] if out else self.assembler.begin(model=self._model))]

    def _speak(self) -> list[BackendEvent]:
        """Open a message, if none is open."""
        ends = self._finish(m.StopReason.TOOL_USE) if self._round_over else []
        return ends if self.assembler.writer.in_message else [*ends, *self.assembler.begin(model=self._model)]

    def _finish(self, stop: m.StopReason, outcome: m.Outcome = m.Outcome.COMPLETED) -> list[BackendEvent]:
        said = [*self._blocks.finish(), *self._remark()]
        self._costs.message_over()
        self._round_over = False
        if not self.assembler.writer.in_message:
            return said
        return [*said, *self.assembler.finish(stop, self._costs.take(), outcome)]

    def _message_stop(self, data: Data) -> list[DecodedItem]:
        ends = self._finish(self._ending.stop)
        self.closing = self.decided or (self._ending.stop not in NOT_FINAL and not self.assembler.open_calls)
        return [*ends]

    # -- blocks ---------------------------------------------------------------------------------------------------

    def _content_start(self, data: Data) -> list[DecodedItem]:
        block = members(data.get("content_block"))
        if block.get("type") != RESULT:
            return [*self._speak(), *self._blocks.start(data)]
        call = self.assembler.open_calls.get(text(block.get("tool_use_id")))
        inside = self.assembler.writer.in_message and call is not None and call.origin is not m.ToolOrigin.PROVIDER
        self._round_over = self._round_over or inside
        return [*self._blocks.start(data)]

    def _content_delta(self, data: Data) -> list[DecodedItem]:
        begun = self._speak() if self._blocks.is_new(data) else []
        return [*begun, *self._blocks.delta(data)]

    def _content_stop(self, data: Data) -> list[DecodedItem]:
        return [*self._blocks.stop(data), *self._remark()]

    # -- what is said about a message -----------------------------------------------------------------------------

    def _message_delta(self, data: Data) -> list[DecodedItem]:
        """`delta` repeats it with parsed content; without it, content may be JSON in a string."""
        again = data.get("delta")
        said = again if isinstance(again, dict) and "content" in again else data
        kind = text(said.get("type")) or text(data.get("type"))
        content = said["content"] if said is again else self._content(kind, data.get("content"))
        if kind == "usage":
            return self._usage(members(content))
        if kind in ("confirmation_request", "hitl"):
            return self._confirmation(members(parsed_json(content)))
        if kind == m.AnnotationTopic.BILLING:
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
        return parsed_json(content) if kind == m.AnnotationTopic.RECOMMENDED else content

    def _usage(self, content: Data) -> list[DecodedItem]:
        self._ending.stop = stop_reason_of(content.get("stop_reason"))
        self._costs.spent(content)
        return []

    def _remark(self) -> list[BackendEvent]:
        """Annotations are between blocks."""
        if self.assembler.writer.in_block or not self._remarks:
            return []
        remarks, self._remarks = self._remarks, []
        said = [] if self.assembler.writer.in_message else self.assembler.begin(model=self._model)
        message_id = self.assembler.writer.message_id
        return [*said, *(m.MessageAnnotated(message_id=message_id, topic=topic, content=content)
                         for topic, content in remarks)]

    # -- asks -----------------------------------------------------------------------------------------------------

    def _confirmation(self, content: Data) -> list[DecodedItem]:
        if content.get("status") not in (None, "pending"):
            return []
        ends = self._finish(m.StopReason.TOOL_USE if self.assembler.open_calls else m.StopReason.NEEDS_INPUT)
        return [*ends, self._asked(*asks.read_confirmation(content, self.assembler.open_calls, self.run_id, self._seq))]

    def _long_running(self, data: Data) -> list[DecodedItem]:
        ends = self._finish(m.StopReason.NEEDS_INPUT)
        return [*ends, self._asked(*asks.read_continuation(data, self.run_id, self._seq))]

    def _rollback(self, data: Data) -> list[DecodedItem]:
        ends = self._finish(m.StopReason.NEEDS_INPUT)
        return [*ends, self._asked(*asks.read_rollback(data, self.run_id, self._seq))]

    def _asked(self, ask: Any, ref: asks_module.AskRef) -> RemoteAsk:
        self.paused = True
        return RemoteAsk(ask=ask, ref=asks_module.encode_ref(ref))

    def _nothing(self, data: Data) -> list[DecodedItem]:
        return []

    # -- beside the messages --------------------------------------------------------------------------------------

    def _conversation(self, data: Data) -> list[DecodedItem]:
        title, metadata, compressed = data.get("title"), data.get("metadata"), data.get("compressed")
        said: list[DecodedItem] = []
        if isinstance(title, str) or isinstance(metadata, dict):
            said.append(m.SessionUpdated(
                title=title if isinstance(title, str) else None,
                metadata=metadata if isinstance(metadata, dict) else None,
            ))
        if isinstance(compressed, dict):
            said.append(m.SessionCompacted(
                compaction_id=self._mint("cmp"), summary=text(compressed.get("summary")),
                archived=tokens(compressed.get("trimmed_count")),
            ))
        return said

    def _notification(self, data: Data) -> list[DecodedItem]:
        title = text(data.get("title")) or text(data.get("message"))
        topic = text(data.get("notification_type")) or "notification"
        return [m.NoticePosted(topic=topic, title=title, detail=data)] if title else []

    # -- the end --------------------------------------------------------------------------------------------------

    def _error(self, data: Data) -> list[DecodedItem]:
        self._ending.fault, self.closing = read_fault(data.get("error", data)), True
        return [*self._finish(m.StopReason.ERROR, m.Outcome.FAILED)]

    def _session_stopped(self, data: Data) -> list[DecodedItem]:
        self._ending.stopped, self.closing = stop_cause(data.get("reason")), True
        return [*self._finish(m.StopReason.INTERRUPTED, m.Outcome.INTERRUPTED)]

    def _session_end(self, data: Data) -> list[DecodedItem]:
        return self.conclude(outcome_of(data.get("status")))

    def _done(self, data: Data) -> list[DecodedItem]:
        return self.conclude()

    def conclude(self, outcome: m.Outcome | None = None) -> list[DecodedItem]:
        """End the run; its outcome follows from its status, or from earlier frames."""
        outcome = outcome or self._ending.outcome
        stop = self._ending.stop_of(outcome)
        said = self._finish(stop, outcome)
        self.over, self.paused, self.closing = True, False, False
        owed = self._costs.take()
        if owed != NO_USAGE:
            said += [*self.assembler.begin(model=self._model), *self.assembler.finish(stop, owed, outcome)]
        return [*said, RemoteTurnEnd(stop_reason=stop, outcome=outcome, fault=self._ending.fault)]


_HANDLERS: dict[str, Callable[[RunDecoder, Data], list[DecodedItem]]] = {
    "conversation_delta": RunDecoder._conversation,
    "message_start": RunDecoder._message_start,
    "message_delta": RunDecoder._message_delta,
    "message_stop": RunDecoder._message_stop,
    "content_start": RunDecoder._content_start,
    "content_delta": RunDecoder._content_delta,
    "content_stop": RunDecoder._content_stop,
    "long_running_confirm": RunDecoder._long_running,
    "rollback_options": RunDecoder._rollback,
    "rollback_completed": RunDecoder._nothing,
    "notification": RunDecoder._notification,
    "error": RunDecoder._error,
    "session_stopped": RunDecoder._session_stopped,
    "session_end": RunDecoder._session_end,
    "done": RunDecoder._done,
}
_ANY_TIME = ("conversation_delta", "notification")
"""Events that may come at any time, whether or not the server waits."""


class UsageCounter:
    """`take` gives the usage that belongs to no message yet."""

    def __init__(self) -> None:
        self._taken = m.Usage()
        self._owed = m.Usage()
        self._bill: m.Usage | None = None
        self.told = False
        """Whether the open message has had its usage; a bill that follows is the run's, and no annotation."""

    def spent(self, content: dict[str, Any]) -> None:
        """The tokens of a message, where the frame that ends it has them."""
        self.told = True
        self._owed += m.Usage(
            input_tokens=tokens(content.get("input_tokens")), output_tokens=tokens(content.get("output_tokens")),
        )

    def billed(self, content: Any) -> None:
        """A bill is of the whole run: usage that was counted already is not counted again.

        A bill before the usage of its message may be an agent's annotation, and counts only if no usage follows.
        """
        if not isinstance(content, dict):
            return
        if self.told:
            self._owed = _larger(self._owed, _less(read_usage(content), self._taken))
        else:
            self._bill = read_usage(content)

    def message_over(self) -> None:
        if not self.told and self._bill is not None:
            self._owed = _larger(self._owed, _less(self._bill, self._taken))
        self.told, self._bill = False, None

    def take(self) -> m.Usage:
        taken, self._owed = self._owed, m.Usage()
        self._taken += taken
        return taken


def _less(one: m.Usage, other: m.Usage) -> m.Usage:
    taken = asdict(other)
    return m.Usage(**{name: max(0, count - taken[name]) for name, count in asdict(one).items()})


def _larger(one: m.Usage, other: m.Usage) -> m.Usage:
    counts = asdict(other)
    return m.Usage(**{name: max(count, counts[name]) for name, count in asdict(one).items()})


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
