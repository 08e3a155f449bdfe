"""What a conversation comes to, whoever tells it: facts without ids, from the records of a log or from what was heard.

Compared are, per turn: the titles given; each scope's messages in order, with model, usage, and every piece of each
in order (words, thoughts, calls with name, input, origin, permission and server); the results, by the call they are
of; what was asked, by kind and by the call it is about; sub-agents with parent, name and end, and what was written to
and by them; faults; and how the turn ended.

Not compared, because the dialect has no words for it: ids other than those of scopes, display names, durations,
tool output and statuses, data blocks, annotations, notices, custom events, signatures, thinking tokens, context
windows, the summary of a compaction. Told differently: a picture is the Markdown for it, a provider's tool is the
server's, an MCP server without a name has the tool's, of an agent and its title one name is left.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import gateway.model as m
from gateway.ports import ScopedEvent
from gateway.ports.remote import DecodedItem, RemoteAsk, RemoteTurnEnd


@dataclass
class Message:
    scope_id: str
    model: str | None
    parts: list[Any] = field(default_factory=list)
    usage: Any = None
    stop: Any = None


@dataclass
class Turn:
    """One turn, as facts."""

    messages: dict[str, list[Message]] = field(default_factory=dict)
    results: list[Any] = field(default_factory=list)
    asks: list[Any] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    scopes: list[Any] = field(default_factory=list)
    mail: list[Any] = field(default_factory=list)
    faults: list[Any] = field(default_factory=list)
    compactions: int = 0
    ended: Any = None

    def words(self, kind: str, scope_id: str = m.ROOT) -> list[str]:
        return [part[1] for message in self.messages.get(scope_id, []) for part in message.parts if part[0] == kind]


class Facts:
    """Takes events one by one; every call is known by its number from then on."""

    def __init__(self) -> None:
        self.turns: list[Turn] = [Turn()]
        self.calls: dict[str, int] = {}
        self.origins: dict[str, m.ToolOrigin] = {}
        self.client_results = 0

    def take(self, event: Any, scope_id: str = m.ROOT) -> None:
        turn = self.turns[-1]
        match event:
            case m.MessageStarted():
                turn.messages.setdefault(scope_id, []).append(Message(scope_id, event.model))
            case m.BlockEnded():
                turn.messages[scope_id][-1].parts += self._parts(event)
            case m.MessageEnded():
                message = turn.messages[scope_id][-1]
                message.usage, message.stop = _usage(event.usage), (event.outcome, event.stop_reason)
            case m.ToolReturned() if self.origins[event.call_id] is m.ToolOrigin.CLIENT:
                self.client_results += 1
            case m.ToolReturned():
                turn.results.append((scope_id, self.calls[event.call_id], m.text_of(event.content), event.is_error))
            case m.SessionUpdated() if event.title is not None:
                turn.titles.append(event.title)
            case m.SessionCompacted():
                turn.compactions += 1
            case m.ScopeOpened():
                turn.scopes.append((scope_id, "opened", event.parent, event.title or event.agent))
            case m.ScopeStatusChanged():
                turn.scopes.append((scope_id, event.status, event.stop_reason))
            case m.ScopeMessage():
                turn.mail.append((event.sender, event.recipient, m.text_of(event.content), event.is_error))
            case m.FaultRaised():
                turn.faults.append((event.fault.code, event.fault.message))

    def ask(self, ask: m.AnyAsk) -> None:
        call = m.call_of(ask)
        told = [(one.question, one.multi_select, [c.label for c in one.options]) for one in ask.questions] \
            if isinstance(ask, m.QuestionAsk) else getattr(ask, "message", None) or getattr(ask, "options", None)
        self.turns[-1].asks.append((ask.kind, self.calls[call.call_id] if call else None, told))

    def end(self, stop: m.StopReason, outcome: Any, fault: Any) -> None:
        self.turns[-1].ended = (stop, outcome, (fault.code, fault.message) if fault else None)
        self.turns.append(Turn())

    def _parts(self, event: m.BlockEnded) -> list[Any]:
        if event.kind is m.BlockKind.TOOL_USE and event.call is not None and not event.torn:
            self.calls[event.call.call_id] = len(self.calls)
            self.origins[event.call.call_id] = event.call.origin
            return [("call", *_call(event.call))]
        said = m.image_markdown(event.image) if event.image else event.text
        return [("thinking" if event.kind is m.BlockKind.THINKING else "text", said)] if said else []


def _call(call: m.ToolCall) -> tuple[Any, ...]:
    origin = m.ToolOrigin.BUILTIN if call.origin is m.ToolOrigin.PROVIDER else call.origin
    server = (call.server or call.name) if origin is m.ToolOrigin.MCP else None
    permission = None if origin is m.ToolOrigin.CLIENT else call.permission
    return call.name, call.input, origin, permission, server


def _usage(usage: m.Usage) -> tuple[int, ...]:
    return usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens


# -- from a log, and from hearing -------------------------------------------------------------------------------------

def of_records(records: Iterable[m.Record]) -> Facts:
    facts = Facts()
    for record in records:
        event = record.event
        if isinstance(event, m.InputRequested):
            facts.ask(event.ask)
        elif isinstance(event, m.TurnEnded):
            raised = facts.turns[-1].faults
            if event.fault is not None and raised and raised[-1] == (event.fault.code, event.fault.message):
                raised.pop()  # a fault that ends the turn is told with its end
            facts.end(event.stop_reason, event.outcome, event.fault)
        else:
            facts.take(event, record.scope_id)
    return facts


class CheckedDecoder:
    """Takes what was heard as an engine would, holds it to the laws of the stream, and keeps the facts."""

    def __init__(self) -> None:
        self.facts = Facts()
        self.grammar = m.Grammar()
        self.in_turn = False
        self._asked: list[str] = []

    def hear(self, heard: Sequence[DecodedItem], paused: bool = False) -> None:
        if self._asked and (not paused or any(isinstance(one, RemoteAsk) for one in heard)):
            self._resume()
        for one in heard:
            self._take(one)
        if paused and not self._asked:
            self._suspend([one for one in heard if isinstance(one, RemoteAsk)])

    def _take(self, one: DecodedItem) -> None:
        self._begin()
        match one:
            case RemoteAsk():
                self.facts.ask(one.ask)
            case RemoteTurnEnd():
                self.grammar.check(m.TurnEnded(outcome=one.outcome, stop_reason=one.stop_reason))
                self.facts.end(one.stop_reason, one.outcome, one.fault)
                self.in_turn = False
            case ScopedEvent():
                self.grammar.check(one.event, one.scope_id)
                self.facts.take(one.event, one.scope_id)
            case _:
                self.grammar.check(one)
                self.facts.take(one)

    def _begin(self) -> None:
        if not self.in_turn:
            self.in_turn = True
            self.grammar.check(m.InputAccepted(command_id="c", command=m.SendMessage(content="x")))
            self.grammar.check(m.TurnStarted(command_id="c"))

    def _suspend(self, asked: list[RemoteAsk]) -> None:
        assert asked, "whoever waits has asked for something"
        for one in asked:
            call = m.call_of(one.ask)
            self.grammar.check(
                m.InputRequested(request_id=one.ref, ask=one.ask, call_id=call.call_id if call else None)
            )
        self._asked = [one.ref for one in asked]
        self.grammar.check(m.TurnSuspended(pending=tuple(self._asked)))

    def _resume(self) -> None:
        for request_id in self._asked:
            self.grammar.check(m.InputResolved(request_id=request_id, resolution=m.Resolution.ANSWERED))
        self._asked = []
        self.grammar.check(m.TurnResumed())
