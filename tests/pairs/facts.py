"""What a conversation comes to, feature by feature: the same whether it is read in a log or heard by a client."""

import re
from collections.abc import Iterable
from typing import Any

from gateway.model import (
    ROOT,
    AnyAsk,
    BlockDelta,
    BlockEnded,
    BlockKind,
    BlockStarted,
    ClientToolAsk,
    ContinuationAsk,
    CustomEvent,
    Fault,
    FaultRaised,
    InputRequested,
    MessageAnnotated,
    MessageEnded,
    NoticePosted,
    Outcome,
    PermissionAsk,
    QuestionAsk,
    Record,
    RollbackAsk,
    ScopeMessage,
    ScopeOpened,
    SessionCompacted,
    SessionUpdated,
    StopReason,
    ToolCall,
    ToolOrigin,
    ToolOutput,
    ToolReturned,
    TurnEnded,
    Usage,
    text_of,
)
from gateway.ports import Said, Scoped
from gateway.upstream import Asked, Ended, Heard

Facts = dict[str, Any]
PICTURE = re.compile(r"!\[image\]\([^)]*\)")
"""How a picture looks to readers of words; whether it arrived is `images_out`."""


class Tally:
    """Counts up one turn."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[tuple[str, Any]] = []
        self.results: list[tuple[str, str, bool]] = []
        self.output: dict[str, str] = {}
        self.at_once = 0
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
        self.usage = Usage()
        self.faults: list[tuple[str, str]] = []
        self.stop: StopReason | None = None
        self.outcome: Outcome | None = None
        self.result: Any = None
        self._open: dict[str, ToolCall] = {}
        self._own: set[str] = set()

    def say(self, event: Any, scope_id: str = ROOT) -> None:
        if isinstance(event, BlockDelta | BlockStarted):
            return
        if isinstance(event, BlockEnded):
            self._block(event, scope_id)
        elif isinstance(event, ToolReturned):
            call = self._open.pop(event.call_id, None)
            if call is not None and call.origin is not ToolOrigin.CLIENT and scope_id == ROOT:
                self.results.append((call.name, text_of(event.content), event.is_error))
        elif isinstance(event, ToolOutput):
            self.output[event.call_id] = self.output.get(event.call_id, "") + event.delta
        elif isinstance(event, ScopeOpened):
            self.below.append("a sub-agent")
        elif isinstance(event, ScopeMessage):
            self.letters.append(text_of(event.content))
        elif isinstance(event, MessageEnded):
            self.usage += event.usage
        elif isinstance(event, MessageAnnotated):
            self.annotations.append((event.topic, event.content))
        elif isinstance(event, NoticePosted):
            self.notices.append((event.topic, event.title, event.level))
        elif isinstance(event, SessionCompacted):
            self.compactions.append(event.summary)
        elif isinstance(event, SessionUpdated) and event.title is not None:
            self.titles.append(event.title)
        elif isinstance(event, FaultRaised):
            self._fault(event.fault)
        elif isinstance(event, CustomEvent):
            self.custom.append((event.topic, event.payload))

    def _block(self, event: BlockEnded, scope_id: str) -> None:
        if event.torn:
            return
        if event.call is not None:
            self._open[event.call.call_id] = event.call
        if event.call is not None and scope_id == ROOT:
            self._own.add(event.call.call_id)
            self.at_once = max(self.at_once, len(self._own & self._open.keys()))
        if scope_id != ROOT:
            if event.text and event.kind is BlockKind.TEXT:
                self.below.append(event.text)
        elif event.call is not None:
            self.calls.append((event.call.name, event.call.input))
        elif event.image is not None:
            self.images.append(event.image.url)
        elif event.data is not None:
            self.data.append((event.data.type, event.data.content))
        elif event.kind is BlockKind.THINKING:
            self.thoughts.append(event.text or "")
        else:
            self.texts.append(event.text or "")

    def ask(self, ask: AnyAsk) -> None:
        match ask:
            case ClientToolAsk(call=call):
                self.asks["client_tools"].append((call.name, call.input))
            case PermissionAsk(call=call):
                self.asks["permissions"].append((call.name, call.input))
            case QuestionAsk(questions=questions):
                self.asks["questions"].append([
                    (one.question, one.multi_select, [choice.label for choice in one.options]) for one in questions
                ])
            case ContinuationAsk(turn=turn, message=message):
                self.asks["continuations"].append((turn, message))
            case RollbackAsk(task_id=task_id, options=options):
                self.asks["rollbacks"].append((task_id, [dict(option) for option in options]))

    def end(self, stop: StopReason, outcome: Outcome, fault: Fault | None, result: Any) -> None:
        self.stop, self.outcome, self.result = stop, outcome, result
        if fault is not None:
            self._fault(fault)

    def _fault(self, fault: Fault) -> None:
        """The one that ends a turn may be told before the end as well."""
        told = (str(fault.code), fault.message)
        self.faults += [] if told in self.faults else [told]

    def facts(self) -> Facts:
        return {
            "text": PICTURE.sub("", "".join(self.texts)),
            "thinking": "".join(self.thoughts),
            "tool_calls": self.calls,
            "tool_results": sorted(self.results),
            "tool_output": sorted(self.output.values()),
            "parallel_tools": self.at_once if self.at_once > 1 else 0,
            **self.asks,
            "subagents": [self.below, self.letters] if self.below else [],
            "images_out": self.images,
            "data_blocks": self.data,
            "annotations": self.annotations,
            "notices": self.notices,
            "compaction": self.compactions,
            "titles": self.titles,
            "usage": self.usage,
            "stop_reasons": self.stop,
            "faults": self.faults,
            "interrupts": self.outcome is Outcome.INTERRUPTED,
            "structured_output": self.result,
            "custom": self.custom,
        }


def of_log(records: Iterable[Record], turn_id: str) -> Facts:
    """What one turn came to, as the log has it."""
    tally = Tally()
    for record in records:
        if record.turn_id != turn_id:
            continue
        if isinstance(record.event, InputRequested):
            tally.ask(record.event.ask)
        elif isinstance(record.event, TurnEnded):
            ended = record.event
            tally.end(ended.stop_reason, ended.outcome, ended.fault, ended.result)
        else:
            tally.say(record.event, record.scope_id)
    return tally.facts()


def of_heard(heard: Iterable[Heard]) -> Facts:
    """What one turn came to, as a client heard it."""
    tally = Tally()
    for one in heard:
        if isinstance(one, Asked):
            tally.ask(one.ask)
        elif isinstance(one, Ended):
            tally.end(one.stop_reason, one.outcome, one.fault, one.result)
        else:
            tally.say(*_placed(one))
    return tally.facts()


def _placed(said: Said) -> tuple[Any, str]:
    return (said.event, said.scope_id) if isinstance(said, Scoped) else (said, ROOT)
