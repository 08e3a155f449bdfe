"""What a conversation comes to, feature by feature, in the plain words that a log and a client have in common."""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import asdict

import gateway.model as m
from tests.support.pairs.reader import at_once

Facts = dict[str, Any]


class FactCounter:
    """Counts up one turn."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.illustrated: list[str] = []
        self.thoughts: list[str] = []
        self.calls: dict[str, tuple[str, Any]] = {}
        self.results: list[tuple[str, str, bool]] = []
        self.output: dict[str, str] = {}
        self.trace: list[tuple[str, bool]] = []
        self.asks: dict[str, list[Any]] = {
            name: [] for name in ("client_tools", "permissions", "questions", "continuations", "rollbacks")
        }
        self.below: list[str] = []
        self.letters: list[str] = []
        self.images: list[str] = []
        self.data: list[Any] = []
        self.annotations: list[Any] = []
        self.notices: list[Any] = []
        self.compactions: list[Any] = []
        self.titles: list[str] = []
        self.custom: list[Any] = []
        self.usage = m.Usage()
        self.usage_below = m.Usage()
        self.asked_below: list[tuple[str, Any]] = []
        """What sub-agents ask: the feature, and what there is of it."""
        self.faults: list[tuple[str, str]] = []
        self.stop: m.StopReason | None = None
        self.outcome: m.Outcome | None = None
        self.result: Any = None
        self._open: dict[str, m.ToolCall] = {}

    def say(self, event: Any, scope_id: str = m.ROOT) -> None:
        if isinstance(event, m.BlockDelta | m.BlockStarted):
            return
        if isinstance(event, m.BlockEnded):
            self._block(event, scope_id)
        elif isinstance(event, m.ToolReturned):
            self.trace.append((event.call_id, False))
            call = self._open.pop(event.call_id, None)
            if call is not None and call.origin is not m.ToolOrigin.CLIENT and scope_id == m.ROOT:
                self.results.append((call.name, m.text_of(event.content), event.is_error))
        elif isinstance(event, m.ToolOutput):
            self.output[event.call_id] = self.output.get(event.call_id, "") + event.delta
        elif isinstance(event, m.ScopeOpened):
            self.below.append("a sub-agent")
        elif isinstance(event, m.ScopeMessage):
            self.letters.append(m.text_of(event.content))
        elif isinstance(event, m.MessageEnded):
            self.usage += event.usage
            self.usage_below += event.usage if scope_id != m.ROOT else m.Usage()
        elif isinstance(event, m.MessageAnnotated):
            self.annotations.append((str(event.topic), event.content))
        elif isinstance(event, m.NoticePosted):
            self.notices.append((event.topic, event.title, str(event.level)))
        elif isinstance(event, m.SessionCompacted):
            self.compactions.append(event.summary)
        elif isinstance(event, m.SessionUpdated) and event.title is not None:
            self.titles.append(event.title)
        elif isinstance(event, m.FaultRaised):
            self._fault(event.fault)
        elif isinstance(event, m.CustomEvent):
            self.custom.append((event.topic, event.payload))

    def _block(self, event: m.BlockEnded, scope_id: str) -> None:
        if event.torn:
            return
        if event.call is not None:
            self._open[event.call.call_id] = event.call
        if event.call is not None and scope_id == m.ROOT:
            self.trace.append((event.call.call_id, True))
        if scope_id != m.ROOT:
            if event.text and event.kind is m.BlockKind.TEXT:
                self.below.append(event.text)
        elif event.call is not None:
            self.calls[event.call.call_id] = (event.call.name, event.call.input)
        elif event.image is not None:
            self.images.append(event.image.url)
            self.illustrated.append(m.image_markdown(event.image))
        elif event.data is not None:
            self.data.append((event.data.type, event.data.content))
        elif event.kind is m.BlockKind.THINKING:
            self.thoughts.append(event.text or "")
        else:
            self.texts.append(event.text or "")
            self.illustrated.append(event.text or "")

    def ask(self, ask: m.AnyAsk, scope_id: str = m.ROOT) -> None:
        name, asked = _asked(ask)
        self.asks[name].append(asked)
        if scope_id != m.ROOT:
            self.asked_below.append((name, asked))

    def end(self, stop: m.StopReason, outcome: m.Outcome, fault: m.Fault | None, result: Any) -> None:
        self.stop, self.outcome, self.result = stop, outcome, result
        if fault is not None:
            self._fault(fault)

    def _fault(self, fault: m.Fault) -> None:
        """The one that ends a turn may be told before the end as well."""
        told = (str(fault.code), fault.message)
        self.faults += [] if told in self.faults else [told]

    @property
    def words(self) -> str:
        """The text with its pictures in Markdown, as readers of words get them."""
        return "".join(self.illustrated)

    def facts(self) -> Facts:
        return {
            "text": "".join(self.texts),
            "thinking": "".join(self.thoughts),
            "tool_calls": [*self.calls.values()],
            "tool_results": sorted(self.results),
            "tool_output": sorted(self.output.values()),
            "parallel_tools": at_once(self.trace),
            **self.asks,
            "subagents": [self.below, self.letters] if self.below else [],
            "images_out": self.images,
            "data_blocks": self.data,
            "annotations": self.annotations,
            "notices": self.notices,
            "compaction": self.compactions,
            "titles": self.titles,
            "usage": asdict(self.usage),
            "stop_reasons": str(self.stop),
            "faults": self.faults,
            "interrupts": self.outcome is m.Outcome.INTERRUPTED,
            "structured_output": self.result,
            "custom": self.custom,
        }


def _asked(ask: m.AnyAsk) -> tuple[str, Any]:
    match ask:
        case m.ClientToolAsk(call=call):
            return "client_tools", (call.name, call.input)
        case m.PermissionAsk(call=call):
            return "permissions", (call.name, call.input)
        case m.QuestionAsk(questions=questions):
            return "questions", [
                (one.question, one.multi_select, [choice.label for choice in one.options]) for one in questions]
        case m.ContinuationAsk(turn=turn, message=message):
            return "continuations", (turn, message)
        case m.RollbackAsk(task_id=task_id, options=options):
            return "rollbacks", (task_id, [dict(option) for option in options])


def of_log(records: Iterable[m.Record], turn_id: str) -> Facts:
    """What one turn came to, as the log has it."""
    return counted(records, turn_id).facts()


def counted(records: Iterable[m.Record], turn_id: str) -> FactCounter:
    """The same, with what cannot be told feature by feature."""
    tally = FactCounter()
    for record in records:
        if record.turn_id != turn_id:
            continue
        if isinstance(record.event, m.InputRequested):
            tally.ask(record.event.ask, record.scope_id)
        elif isinstance(record.event, m.TurnEnded):
            ended = record.event
            tally.end(ended.stop_reason, ended.outcome, ended.fault, ended.result)
        else:
            tally.say(record.event, record.scope_id)
    return tally
