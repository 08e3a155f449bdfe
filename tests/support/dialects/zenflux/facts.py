"""What a hearing gave, put into words that can be compared: lawful first of all, then fact by fact."""

from collections.abc import Iterable, Sequence
from typing import Any

import gateway.model as m
from adapters.zenflux.asks import result_text
from gateway.ports import ScopedEvent
from gateway.ports.remote import DecodedItem, RemoteAsk, RemoteTurnEnd
from mappings.language.filters import written


class Facts:
    """What a turn has said, apart from how it was cut into messages and deltas."""

    def __init__(self) -> None:
        self.parts: list[tuple[str, Any]] = []
        self.results: dict[str, tuple[Any, bool]] = {}
        self.remarks: list[tuple[str, Any]] = []
        self.usage = m.Usage()
        self.titles: list[str] = []
        self.compactions: list[tuple[str, int]] = []
        self.asks: list[Any] = []
        self.stops: list[str] = []
        self.ended: RemoteTurnEnd | m.TurnEnded | None = None

    def take(self, event: Any) -> None:
        match event:
            case m.BlockEnded() if not event.torn:
                self._block(event)
            case m.ToolReturned():
                self.results[event.call_id] = (event.content, event.is_error)
            case m.MessageAnnotated() if event.topic is not m.AnnotationTopic.MEMORY_REFS:
                self.remarks.append((event.topic, event.content))
            case m.MessageEnded():
                self.usage += event.usage
                self.stops.append(event.stop_reason)
            case m.SessionUpdated(title=str()):
                self.titles.append(event.title)
            case m.SessionCompacted():
                self.compactions.append((event.summary, event.archived))
            case RemoteTurnEnd() | m.TurnEnded():
                self.ended = event

    def _block(self, event: m.BlockEnded) -> None:
        if event.kind in (m.BlockKind.TEXT, m.BlockKind.THINKING):
            self.parts += [(event.kind, event.text)] if event.text else []
        elif event.call is not None:
            self.parts.append((event.kind, (event.call.call_id, event.call.name, event.call.input)))
        elif event.image is not None:
            self.parts.append((event.kind, event.image.url))

    def words(self, kind: m.BlockKind = m.BlockKind.TEXT) -> str:
        return "".join(said for one, said in self.parts if one is kind)


def lawful(heard: Iterable[DecodedItem]) -> m.Grammar:
    """Every event is in its place, nobody is asked inside a message, and nothing follows the end of a turn."""
    grammar, started = m.Grammar(), False
    for one in heard:
        if not started:
            grammar.check(m.InputAccepted(command_id="c", command=m.SendMessage(content="")))
            grammar.check(m.TurnStarted(command_id="c"))
            started = True
        if isinstance(one, RemoteAsk):
            assert grammar.scopes[m.ROOT].message_id == "" or grammar.scopes[m.ROOT].phase.name == "QUIET"
            call = m.call_of(one.ask)
            assert call is None or call.call_id in grammar.calls, "the call that is asked about is open"
        elif isinstance(one, RemoteTurnEnd):
            assert all(scope.phase.name == "QUIET" for scope in grammar.scopes.values()), "the turn ended in a message"
            grammar, started = m.Grammar(), False
        elif isinstance(one, ScopedEvent):
            grammar.check(one.event, one.scope_id)
        else:
            grammar.check(one)
    return grammar


def facts(heard: Sequence[DecodedItem]) -> list[Facts]:
    """Turn by turn; what comes after the last end is a turn that has none."""
    lawful(heard)
    turns = [Facts()]
    for one in heard:
        if isinstance(one, RemoteAsk):
            turns[-1].asks.append(one.ask)
        elif not isinstance(one, ScopedEvent):
            turns[-1].take(one)
        if isinstance(one, RemoteTurnEnd):
            turns.append(Facts())
    return turns[:-1] if turns[-1].ended is None and len(turns) > 1 else turns


# -- and what a log has of it -----------------------------------------------------------------------------------------

WORDY = (m.AnnotationTopic.PREFACE, m.AnnotationTopic.SEARCH, m.AnnotationTopic.KNOWLEDGE)


def told(records: list[m.Record]) -> list[Facts]:
    """The facts of the root scope, turn by turn, with what the table's `support` declares lost left out."""
    turns: list[Facts] = []
    for record in records:
        if isinstance(record.event, m.TurnStarted):
            turns.append(Facts())
        if turns and isinstance(record.event, m.InputRequested):
            turns[-1].asks.append(record.event.ask)
        if turns and record.scope_id == m.ROOT and turns[-1].ended is None:
            turns[-1].take(record.event)
    return turns


def as_heard(turn: Facts) -> dict[str, Any]:
    """What is compared: everything that ZenFlux can say, in the words in which it says it.

    Parts in order (not how they are cut into messages), results by call in words, remarks in order (memory references
    are not told; some topics are words only), usage of the whole turn, titles, compactions, the kinds of what was
    asked, and how the turn ended (max_steps has no word). Not compared, because it is not told: tool output and
    statuses, sub-agents, notices, data blocks, custom events, signatures, the origin of calls but the provider's.
    """
    assert turn.ended is not None
    return {
        "parts": turn.parts,
        "results": {call: (result_text(content), is_error) for call, (content, is_error) in turn.results.items()},
        "remarks": [(topic, written(content) if topic in WORDY else content) for topic, content in turn.remarks],
        "usage": turn.usage, "titles": turn.titles, "compactions": turn.compactions,
        "asks": [_kind(turn, ask) for ask in turn.asks], "outcome": turn.ended.outcome,
        "stop": m.StopReason.END_TURN if turn.ended.stop_reason is m.StopReason.MAX_STEPS else turn.ended.stop_reason,
    }


def _kind(turn: Facts, ask: m.AnyAsk) -> str:
    """What is asked about a sub-agent's call, which is not told, is asked as a question."""
    call, root = m.call_of(ask), [said[0] for kind, said in turn.parts if kind is m.BlockKind.TOOL_USE]
    return "question" if call is not None and call.call_id not in root else ask.kind
