"""What was heard of a conversation, and what was said in it, in the same few facts, so that they can be compared."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import gateway.model as m
from adapters.blade.asks import ASK_TOOL, questions_of
from adapters.blade.client.decoder import Decoder
from adapters.blade.server.turn_projection import FORK_TOOL
from adapters.blade.server.turn_state import data_block, make_loop, wire_call_id
from gateway.ids import make_mint
from gateway.ports import BackendEvent, ScopedEvent
from gateway.ports.remote import DecodedItem, ParsedFrame, RemoteAsk, RemoteTurnEnd
from tests.support.dialect_tables import table

Part = tuple[Any, ...]


@dataclass
class Facts:
    """All that Blade can carry. Scopes go by the names of their loops, calls by the ids that Blade gives them."""

    messages: dict[str, list[list[Part]]] = field(default_factory=dict)
    """By scope, those in which anything is said: words of a kind that follow each other are one, pictures are words.
    Pieces of a kind that Blade does not know are notifications."""
    usage: dict[str, m.Usage] = field(default_factory=dict)
    results: dict[str, Part] = field(default_factory=dict)
    asks: list[Any] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    notices: list[Part] = field(default_factory=list)
    compactions: list[Part] = field(default_factory=list)
    ends: list[Part] = field(default_factory=list)
    files: list[Any] = field(default_factory=list)

    def take(self, event: m.AnyEvent, scope: str) -> None:
        match event:
            case m.MessageStarted():
                self.messages.setdefault(scope, []).append([])
            case m.MessageEnded(usage=usage):
                told = m.Usage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
                self.usage[scope] = self.usage.get(scope, m.Usage()) + told
            case m.BlockEnded(torn=False):
                self._block(event, self.messages[scope][-1])
            case m.ToolReturned(call_id=call_id):
                self.results[wire_call_id(call_id)] = (event.content, event.is_error, event.meta)
            case m.SessionUpdated(title=str(title)):
                self.titles.append(title)
            case m.NoticePosted():
                self.notices.append((event.topic, event.title, event.level, event.detail))
            case m.SessionCompacted():
                self.compactions.append((event.summary, event.preview, event.archived, event.tokens_before,
                                         event.tokens_after, event.trigger))
            case m.FaultRaised(fault=fault):
                self.notices.append(("fault", fault.message))
            case m.CustomEvent(topic="workspace.files_changed"):
                self.files.append(event.payload)

    def _block(self, event: m.BlockEnded, message: list[Part]) -> None:
        if event.call is not None:
            call = event.call
            shown = call.display_name if call.display_name != call.name else None
            message.append(("call", wire_call_id(call.call_id), call.name, call.input, shown))
        elif event.data is not None:
            piece = data_block(event.data.type, event.data.content, None)
            message.append(("data", piece.type, piece.content))
        else:
            kind, said = ("text", m.image_markdown(event.image)) if event.image else (str(event.kind), event.text or "")
            if said and message and message[-1][0] == kind:
                message[-1] = (kind, message[-1][1] + said)
            elif said:
                message.append((kind, said))

    def close(self, *, without: Iterable[str] = ()) -> "Facts":
        """Messages that said nothing are left out, and the calls named."""
        left_out = set(without)
        for scope, listed in self.messages.items():
            kept = [[part for part in message if part[0] != "call" or part[1] not in left_out] for message in listed]
            self.messages[scope] = [merged(message) for message in kept if message]
        self.messages = {scope: listed for scope, listed in self.messages.items() if listed}
        self.usage = {scope: usage for scope, usage in self.usage.items() if usage != m.Usage()}
        self.results = {call_id: result for call_id, result in self.results.items() if call_id not in left_out}
        return self

    @property
    def calls(self) -> list[Part]:
        said = [part for listed in self.messages.values() for message in listed for part in message]
        return [part for part in said if part[0] == "call"]


def merged(message: list[Part]) -> list[Part]:
    """A call that was left out may have stood between words."""
    parts: list[Part] = []
    for part in message:
        if parts and part[0] in ("text", "thinking") and parts[-1][0] == part[0]:
            parts[-1] = (part[0], parts[-1][1] + part[1])
        else:
            parts.append(part)
    return parts


def said_in(records: Iterable[m.Record]) -> Facts:
    """The facts of a log."""
    facts, waiting = Facts(), None
    for record in records:
        event = record.event
        scope = m.ROOT if record.scope_id == m.ROOT else make_loop(record.scope_id, m.ROOT, None, None).loop_id
        if isinstance(event, m.FaultRaised):
            waiting = event
            continue
        if waiting is not None and not (isinstance(event, m.TurnEnded) and event.fault == waiting.fault):
            facts.take(waiting, m.ROOT)
        waiting = None
        facts.take(event, scope)
        if isinstance(event, m.InputRequested):
            facts.asks.append(event.ask)
        elif isinstance(event, m.TurnEnded):
            facts.ends.append((event.outcome, event.stop_reason, event.fault, event.result))
    return facts.close()


class CheckedDecoder:
    """A hearing whose every word is checked: lawful, and what may stand beside it in a log."""

    def __init__(self) -> None:
        self.hearing = Decoder(make_mint("h"))
        self.grammar = m.Grammar()
        self.facts = Facts()
        self.asked: list[RemoteAsk] = []
        self.said: list[DecodedItem] = []
        self.is_over = False

    def hear(self, name: str, body: Any) -> list[DecodedItem]:
        if name == "chat:start":
            self.go_on()
        heard = self.hearing.feed(ParsedFrame(name, body))
        self.take(heard)
        return heard

    def take(self, heard: Iterable[DecodedItem]) -> None:
        for one in heard:
            self.said.append(one)
            if isinstance(one, RemoteAsk):
                self.asked.append(one)
                self.facts.asks.append(one.ask)
            elif isinstance(one, RemoteTurnEnd):
                self._end(one)
            else:
                self._say(one)
        if self.hearing.paused and not self.grammar.asks:
            self.wait(self.hearing._calls.pending.values())

    def go_on(self) -> None:
        """A turn begins; or every ask is answered and it goes on."""
        if not self.grammar.asks:
            if self.grammar.turn.name == "IDLE":
                self.grammar.check(m.TurnStarted(command_id="cmd"))
                self.asked = []
            return
        settled = tuple(self.grammar.asks)
        for request_id in settled:
            self.grammar.check(m.InputResolved(request_id=request_id, resolution=m.Resolution.ANSWERED))
        self.grammar.check(m.TurnResumed(settled=settled))

    def wait(self, asks: Iterable[RemoteAsk]) -> None:
        """The turn waits for people; what they are asked about is open."""
        for asked in asks:
            call = m.call_of(asked.ask)
            known = call.call_id if call and call.call_id in self.grammar.calls else None
            event = m.InputRequested(request_id=f"req_{asked.ref}", ask=asked.ask, call_id=known)
            self.grammar.check(event, asked.scope_id)
        self.grammar.check(m.TurnSuspended(pending=tuple(self.grammar.asks)))

    def _say(self, said: BackendEvent) -> None:
        event, scope = (said.event, said.scope_id) if isinstance(said, ScopedEvent) else (said, m.ROOT)
        self.grammar.check(event, scope)
        self.facts.take(event, scope)

    def _end(self, ended: RemoteTurnEnd) -> None:
        for request_id in tuple(self.grammar.asks):
            self.grammar.check(m.InputResolved(request_id=request_id, resolution=m.Resolution.CANCELLED))
        if self.grammar.turn.name == "SUSPENDED":
            self.grammar.check(m.TurnResumed())
        self.grammar.check(m.TurnEnded(outcome=ended.outcome, stop_reason=ended.stop_reason, fault=ended.fault))
        self.facts.ends.append((ended.outcome, ended.stop_reason, ended.fault, ended.result))


def asked_like(heard: list[Any], said: list[Any]) -> None:
    """Each ask looks as it did; what it is about is either right or left open."""
    assert [questions_of(ask) for ask in heard] == [questions_of(ask) for ask in said]
    for one, other in zip(heard, said, strict=True):
        if one.kind != "question":
            assert one.kind == other.kind
            about, call = m.call_of(one), m.call_of(other)
            assert (about is None) == (call is None)
            assert about is None or call is None or about.call_id == wire_call_id(call.call_id)


def made_up_calls(heard: Facts, said: Facts) -> set[str]:
    """The calls that Blade makes up: for questions that no call has put, and sub-agents that none has brought about."""
    own = {part[1] for part in said.calls}
    return {part[1] for part in heard.calls if part[2] in (ASK_TOOL, FORK_TOOL) and part[1] not in own}


def as_told(end: Part) -> Part:
    """How a turn came out, as far as Blade's words go."""
    outcome, stop, fault, result = end
    if outcome is m.Outcome.INTERRUPTED:
        return outcome, m.StopReason.INTERRUPTED, None, result
    words = table("blade")
    return outcome, words._meanings("stop_reason", m.StopReason)[words.word("stop_reason", stop)], fault, result
