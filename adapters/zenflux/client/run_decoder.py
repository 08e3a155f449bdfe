"""Decodes one run: its messages, which may be several of ours, its usage, which counts once, and its end."""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import asdict

import gateway.model as m
from adapters.zenflux import asks as asks_module
from gateway.client import NO_USAGE, StreamAssembler
from gateway.ids import Mint
from gateway.ports import BackendEvent, DecodedItem, RemoteAsk, RemoteTurnEnd

from . import ask_readers as asks
from .block_decoder import BlockDecoder
from .readers import Bindings, read_fault, read_usage, tokens

DEFAULT_NOTICE = "notification"
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

    def feed(self, cue: str, given: Bindings) -> Sequence[DecodedItem]:
        handle = _HANDLERS.get(cue)
        if handle is None or self.over:
            return []
        if cue not in _ANY_TIME:
            self.paused = self.closing = False
        return handle(self, given)

    @property
    def decided(self) -> bool:
        """The run has failed or was stopped; only its end can follow."""
        return self._ending.decided

    def end(self) -> list[DecodedItem]:
        """End what is open."""
        return [*self._finish(self._ending.stop)]

    # -- messages -------------------------------------------------------------------------------------------------

    def _message_start(self, given: Bindings) -> list[DecodedItem]:
        """If calls are open, their results come first, and the message begins after them."""
        self._model = (given["opening"] and given["opening"]["model"]) or self._model
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

    def _message_stop(self, given: Bindings) -> list[DecodedItem]:
        ends = self._finish(self._ending.stop)
        self.closing = self.decided or (self._ending.stop not in NOT_FINAL and not self.assembler.open_calls)
        return [*ends]

    # -- blocks ---------------------------------------------------------------------------------------------------

    def _text_start(self, given: Bindings) -> list[DecodedItem]:
        return [*self._speak(), *self._blocks.start_words(given, m.BlockKind.TEXT)]

    def _thinking_start(self, given: Bindings) -> list[DecodedItem]:
        return [*self._speak(), *self._blocks.start_words(given, m.BlockKind.THINKING)]

    def _call_start(self, given: Bindings) -> list[DecodedItem]:
        return [*self._speak(), *self._blocks.start_call(given)]

    def _image_start(self, given: Bindings) -> list[DecodedItem]:
        return [*self._speak(), *self._blocks.start_image(given)]

    def _unknown_start(self, given: Bindings) -> list[DecodedItem]:
        return [*self._speak(), *self._blocks.start_unknown(given)]

    def _result_start(self, given: Bindings) -> list[DecodedItem]:
        call = self.assembler.open_calls.get(given["call_id"] or "")
        inside = self.assembler.writer.in_message and call is not None and call.origin is not m.ToolOrigin.PROVIDER
        self._round_over = self._round_over or inside
        return [*self._blocks.start_result(given)]

    def _words(self, given: Bindings) -> Sequence[DecodedItem]:
        return self._delta(given["index"], given["text"])

    def _keyed_words(self, given: Bindings) -> Sequence[DecodedItem]:
        return self._delta(given["index"], given["piece"] or "", given["signature"])

    def _delta(self, index: int, words: str, signature: str | None = None) -> Sequence[DecodedItem]:
        if self._blocks.is_new(index):
            return [*self._speak(), *self._blocks.delta(index, words, signature)]
        return self._blocks.delta(index, words, signature)

    def _content_stop(self, given: Bindings) -> list[DecodedItem]:
        return [*self._blocks.stop(given), *self._remark()]

    # -- what is said about a message -----------------------------------------------------------------------------

    def _annotated(self, given: Bindings) -> list[DecodedItem]:
        topic = TOPICS.get(given["topic"])
        return [] if topic is None else self._annotate(topic, given["content"])

    def _recommended(self, given: Bindings) -> list[DecodedItem]:
        return self._annotate(m.AnnotationTopic.RECOMMENDED, given["content"])

    def _annotate(self, topic: m.AnnotationTopic, content: Any) -> list[DecodedItem]:
        self._remarks.append((topic, content))
        return [*self._remark()]

    def _billed(self, given: Bindings) -> list[DecodedItem]:
        content, was_told = given["content"], self._costs.told
        if isinstance(content, dict):
            self._costs.billed(read_usage(given["usage"]))
        return [] if was_told else self._annotate(m.AnnotationTopic.BILLING, content)

    def _spent(self, given: Bindings) -> list[DecodedItem]:
        """A word that is no stop reason is an ordinary end."""
        stop = given["stop_reason"]
        self._ending.stop = stop if isinstance(stop, m.StopReason) else m.StopReason.END_TURN
        self._costs.spent(read_usage(given["usage"]))
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

    def _confirmation(self, given: Bindings) -> list[DecodedItem]:
        asked = asks.read_confirmation(given["request"], self.assembler.open_calls, self.run_id, given["out_seq"] or 0)
        if asked is None:
            return []
        ends = self._finish(m.StopReason.TOOL_USE if self.assembler.open_calls else m.StopReason.NEEDS_INPUT)
        return [*ends, self._asked(*asked)]

    def _long_running(self, given: Bindings) -> list[DecodedItem]:
        ends = self._finish(m.StopReason.NEEDS_INPUT)
        return [*ends, self._asked(*asks.read_continuation(given, self.run_id))]

    def _rollback(self, given: Bindings) -> list[DecodedItem]:
        ends = self._finish(m.StopReason.NEEDS_INPUT)
        return [*ends, self._asked(*asks.read_rollback(given, self.run_id))]

    def _asked(self, ask: Any, ref: asks_module.AskRef) -> RemoteAsk:
        self.paused = True
        return RemoteAsk(ask=ask, ref=asks_module.encode_ref(ref))

    def _nothing(self, given: Bindings) -> list[DecodedItem]:
        return []

    # -- beside the messages --------------------------------------------------------------------------------------

    def _conversation(self, given: Bindings) -> list[DecodedItem]:
        title, metadata, summary, count = (given[name] for name in ("title", "metadata", "summary", "count"))
        said: list[DecodedItem] = []
        if title is not None or metadata is not None:
            said.append(m.SessionUpdated(title=title, metadata=metadata))
        if summary is not None or count is not None:
            said.append(m.SessionCompacted(
                compaction_id=self._mint("cmp"), summary=summary or "", archived=tokens(count)))
        return said

    def _notification(self, given: Bindings) -> list[DecodedItem]:
        title, topic = given["notice_title"], given["notice_type"] or DEFAULT_NOTICE
        return [m.NoticePosted(topic=topic, title=title, detail=given["detail"])] if title else []

    # -- the end --------------------------------------------------------------------------------------------------

    def _error(self, given: Bindings) -> list[DecodedItem]:
        self._ending.fault, self.closing = read_fault(given), True
        return [*self._finish(m.StopReason.ERROR, m.Outcome.FAILED)]

    def _session_stopped(self, given: Bindings) -> list[DecodedItem]:
        """A word that is no reason is somebody's wish."""
        cause = given["reason"] if isinstance(given["reason"], m.StopReason) else m.StopReason.INTERRUPTED
        self._ending.stopped, self.closing = cause, True
        return [*self._finish(m.StopReason.INTERRUPTED, m.Outcome.INTERRUPTED)]

    def _session_end(self, given: Bindings) -> list[DecodedItem]:
        outcome = given["outcome"]
        return self.conclude(outcome if isinstance(outcome, m.Outcome) else None)

    def _done(self, given: Bindings) -> list[DecodedItem]:
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


Handle = Callable[[RunDecoder, Bindings], Sequence[DecodedItem]]
_READ: dict[str, tuple[Handle, tuple[str, ...]]] = {
    "conversation.titled": (RunDecoder._conversation, ("title", "metadata", "summary", "count")),
    "message.opened": (RunDecoder._message_start, ("opening",)),
    "message.annotated": (RunDecoder._annotated, ("topic", "content")),
    "message.annotated.recommended": (RunDecoder._recommended, ("content",)),
    "message.usage": (RunDecoder._spent, ("stop_reason", "usage")),
    "message.billing": (RunDecoder._billed, ("usage", "content")),
    "message.closed": (RunDecoder._message_stop, ()),
    "block.started.text": (RunDecoder._text_start, ("index", "begun", "signature")),
    "block.started.thinking": (RunDecoder._thinking_start, ("index", "begun", "signature")),
    "block.started.tool_use": (RunDecoder._call_start, ("index", "call")),
    "block.started.other": (RunDecoder._unknown_start, ("index", "block_type")),
    "picture": (RunDecoder._image_start, ("index", "image_source", "media_type", "image_data")),
    "result.opened": (RunDecoder._result_start, ("index", "call_id", "content", "is_error")),
    "words": (RunDecoder._words, ("index", "text")),
    "words.keyed": (RunDecoder._keyed_words, ("index", "piece", "signature")),
    "block.ended": (RunDecoder._content_stop, ("index", "signature")),
    "input.requested.permission": (RunDecoder._confirmation, ("request",)),
    "input.requested.continuation": (RunDecoder._long_running, ("ask",)),
    "input.requested.rollback": (RunDecoder._rollback, ("ask", "options")),
    "rollback.done": (RunDecoder._nothing, ()),
    "notice.posted": (RunDecoder._notification, ("notice_type", "notice_title", "detail")),
    "run.failed": (RunDecoder._error, ("code", "fault")),
    "run.stopped": (RunDecoder._session_stopped, ("reason",)),
    "run.ended": (RunDecoder._session_end, ("outcome",)),
    "run.done": (RunDecoder._done, ()),
}
"""By cue: what is done with it, and the names that are read for that."""
_HANDLERS = {cue: handle for cue, (handle, _) in _READ.items()}
READ_NAMES = {cue: names for cue, (_, names) in _READ.items()}
_ANY_TIME = frozenset({"conversation.titled", "notice.posted"})
"""Events that may come at any time, whether or not the server waits."""


class UsageCounter:
    """`take` gives the usage that belongs to no message yet."""

    def __init__(self) -> None:
        self._taken = m.Usage()
        self._owed = m.Usage()
        self._bill: m.Usage | None = None
        self.told = False
        """Whether the open message has had its usage; a bill that follows is the run's, and no annotation."""

    def spent(self, usage: m.Usage) -> None:
        """The tokens of a message, where the frame that ends it has them."""
        self.told = True
        self._owed += usage

    def billed(self, usage: m.Usage) -> None:
        """A bill is of the whole run: usage that was counted already is not counted again.

        A bill before the usage of its message may be an agent's annotation, and counts only if no usage follows.
        """
        if self.told:
            self._owed = _larger(self._owed, _less(usage, self._taken))
        else:
            self._bill = usage

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
