"""Conversations as AAP can carry them: streams nobody wrote, the laws they are held to, and the facts they tell."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

import gateway.model as m
from adapters.aap.client.readers import SessionTools
from gateway.model.stream_closer import missing_ends
from gateway.ports import ScopedEvent
from gateway.ports.remote import DecodedItem, RemoteAsk, RemoteTurnEnd
from tests.support.record_streams import RandomWalk

TOOLBOX = SessionTools(
    client=frozenset(("camera",)), server={"calc": m.Permission.ASK, "clock": m.Permission.ALLOW},
    titles={"calc": "Calculator"},
)
NAMES = {
    "camera": m.ToolOrigin.CLIENT,
    "calc": m.ToolOrigin.BUILTIN,
    "clock": m.ToolOrigin.BUILTIN,
    "inner": m.ToolOrigin.MCP,
}
"""A tool of the client's, one to be permitted, one that is trusted, and one that nobody was told of."""


# -- streams nobody wrote ---------------------------------------------------------------------------------------------

class AapWalk(RandomWalk):
    """A walk in which calls are asked about as a session with those tools would ask, once each, and are answered."""

    def __init__(self, draw: Any, *, loose: bool = True) -> None:
        self.loose = loose
        self.asked: set[str] = set()
        super().__init__(draw)

    def open_block(self, scope_id: str, kind: m.BlockKind) -> None:
        if kind is not m.BlockKind.TOOL_USE:
            super().open_block(scope_id, kind)
            return
        name = self.chance.among(list(NAMES))
        call = m.ToolCall(call_id=self.id("call"), name=name, origin=NAMES[name])
        message_id = self.grammar.scopes[scope_id].message_id
        self.say(m.BlockStarted(block_id=self.id("blk"), message_id=message_id, kind=kind, call=call), scope_id)

    def waits(self, call_id: str) -> bool:
        call = self.grammar.calls[call_id]
        return call.scope_id == m.ROOT and call.call.name in ("camera", "calc") and call_id not in self.asked

    def give_back(self, call_id: str) -> None:
        if not self.waits(call_id):
            super().give_back(call_id)

    def wind_up(self) -> None:
        for scope_id, scope in reversed(list(self.grammar.scopes.items())):
            if scope.phase is m.ScopePhase.IN_BLOCK:
                self.end_block(scope_id)
            if scope.phase is m.ScopePhase.IN_MESSAGE:
                self.end_message(scope_id)
        if any(self.waits(call_id) for call_id in self.grammar.calls):
            self.ask()
        super().wind_up()

    def ask(self) -> None:
        calls = [call_id for call_id in self.grammar.calls if self.waits(call_id)]
        asks = [self.ask_about(call_id) for call_id in calls] or ([self.ask_anything()] if self.loose else [])
        if not asks:
            return
        requests = {self.id("ask"): ask for ask in asks}
        for request_id, (ask, call_id) in requests.items():
            self.say(m.InputRequested(request_id=request_id, ask=ask, call_id=call_id))
        self.say(m.TurnSuspended(pending=tuple(requests)))
        answers = {request_id: self.answer(request_id, ask) for request_id, (ask, _) in requests.items()}
        for request_id, answer in answers.items():
            self.say(m.InputAccepted(command_id=self.id("cmd"), command=answer))
            self.say(m.InputResolved(request_id=request_id, resolution=m.Resolution.ANSWERED))
        self.say(m.TurnResumed(settled=tuple(requests)))
        self.asked.update(calls)
        clients_first = sorted(requests, key=lambda request_id: not isinstance(answers[request_id], m.ReturnResult))
        for request_id in clients_first:  # AAP does not tell when the agent takes note of what a client returned
            self.after(answers[request_id], requests[request_id][1])

    def ask_anything(self) -> tuple[Any, None]:
        return self.chance.among([
            m.ContinuationAsk(turn=3, message="go on?"),
            m.RollbackAsk(task_id="task_1", options=({"id": "all"},), error="it broke"),
        ]), None

    def answer(self, request_id: str, ask: m.AnyAsk) -> Any:
        if isinstance(ask, m.PermissionAsk):
            return m.DecidePermission(request_id=request_id, granted=self.chance.is_so())
        if isinstance(ask, m.ClientToolAsk):
            return m.ReturnResult(request_id=request_id, content=self.chance.words(), is_error=self.chance.is_so())
        if isinstance(ask, m.ContinuationAsk):
            return m.ContinueTurn(request_id=request_id, proceed=self.chance.is_so())
        return m.RollBack(request_id=request_id, option="all")

    def after(self, answer: Any, call_id: str | None) -> None:
        """What an answer makes of its call at once."""
        if isinstance(answer, m.ReturnResult):
            self.say(m.ToolReturned(
                call_id=call_id or "", origin=m.ToolOrigin.CLIENT, content=answer.content, is_error=answer.is_error,
            ))
        elif isinstance(answer, m.DecidePermission) and not answer.granted:
            self.say(m.ToolReturned(call_id=call_id or "", content="Tool call denied", is_error=True))


@st.composite
def talks(draw: Any, *, turns: int = 2, steps: int = 30, loose: bool = True) -> list[m.Record]:
    talk = AapWalk(draw, loose=loose)
    for _ in range(1 + talk.chance.below(turns)):
        talk.turn(talk.chance.below(steps + 1))
    return talk.records


# -- the laws ---------------------------------------------------------------------------------------------------------

class CheckingEngine:
    """Takes what was heard as the engine would: every event is checked, and the turn is the engine's to tell."""

    def __init__(self) -> None:
        self.grammar = m.Grammar()
        self.records: list[m.Record] = []
        self.asked: list[RemoteAsk] = []
        self.say(m.SessionCreated(agent="remote"))

    def say(self, event: m.AnyEvent | m.Event, scope_id: str = m.ROOT) -> None:
        self.grammar.check(event, scope_id)
        seq = len(self.records) + 1
        self.records.append(m.Record(  # type: ignore[arg-type]
            seq=seq, at=float(seq), session_id="sess_heard", event=event, turn_id="turn", scope_id=scope_id,
        ))

    def start(self) -> None:
        """A turn begins, or goes on after what was asked has been answered."""
        if not self.asked:
            self.say(m.InputAccepted(command_id="cmd", command=m.SendMessage(content="")))
            self.say(m.TurnStarted(command_id="cmd"))
            return
        for asked in self.asked:
            self.say(m.InputResolved(request_id=asked.ref, resolution=m.Resolution.ANSWERED))
        self.say(m.TurnResumed(settled=tuple(asked.ref for asked in self.asked)))
        self.asked = []

    def take(self, heard: Sequence[DecodedItem]) -> None:
        """What was heard together; what is asked comes all at once, and then the turn waits."""
        for one in heard:
            self._take(one)
        if any(isinstance(one, RemoteAsk) for one in heard):
            self.say(m.TurnSuspended(pending=tuple(asked.ref for asked in self.asked)))

    def _take(self, one: DecodedItem) -> None:
        if isinstance(one, RemoteAsk):
            call = getattr(one.ask, "call", None)
            self.say(m.InputRequested(request_id=one.ref, ask=one.ask, call_id=call.call_id if call else None))
            self.asked.append(one)
        elif isinstance(one, RemoteTurnEnd):
            for scope_id, event in missing_ends(self.grammar, one.outcome, one.stop_reason):
                self.say(event, scope_id)
            self.say(m.TurnEnded(outcome=one.outcome, stop_reason=one.stop_reason, fault=one.fault))
        elif isinstance(one, ScopedEvent):
            self.say(one.event, one.scope_id)
        else:
            self.say(one)


# -- facts ------------------------------------------------------------------------------------------------------------

Fact = tuple[Any, ...]


def facts(records: Sequence[m.Record], *, mode: str = "delta") -> list[Fact]:
    """What the agent itself said and did, in order: words in a row are one, however they were cut into pieces.

    Words are said when they come or, in the other mode, when their block is whole.
    """
    found: list[Fact] = []
    for record in records:
        if record.scope_id == m.ROOT:
            for fact in _words(record.event, mode) or _facts(record.event):
                if found and fact[0] in ("text", "thinking") and found[-1][0] == fact[0]:
                    found[-1] = (fact[0], found[-1][1] + fact[1])
                else:
                    found.append(fact)
    return found


def _words(event: m.AnyEvent, mode: str) -> list[Fact]:
    if isinstance(event, m.BlockDelta if mode == "delta" else m.BlockEnded) and event.kind in ("text", "thinking"):
        said = event.delta if isinstance(event, m.BlockDelta) else event.text
        return [(str(event.kind), said)] if said else []
    return []


def _facts(event: m.AnyEvent) -> list[Fact]:
    match event:
        case m.BlockEnded(image=m.ImagePart(url=url)):
            return [("image", url)]
        case m.BlockEnded(call=m.ToolCall() as call, torn=False):
            return [("call", call.call_id, call.name, call.input)]
        case m.ToolReturned():
            return [("result", event.call_id, event.content)]
        case m.InputRequested():
            return [("asked", event.ask.kind, event.call_id, _loose(event.ask))]
        case m.TurnSuspended():
            return [("waits",)]
        case m.TurnEnded():
            return [("ended", event.stop_reason)]
    return []


def _loose(ask: m.AnyAsk) -> m.AnyAsk | None:
    """All of an ask that is about no call."""
    return ask if isinstance(ask, m.ContinuationAsk | m.RollbackAsk) else None


def errors(records: Sequence[m.Record]) -> set[str]:
    """The calls that came back as errors, of those of which AAP tells it: a client knows what it said itself."""
    denied = {r.event.call_id for r in records if isinstance(r.event, m.ToolReturned)
              and r.event.content == "Tool call denied"}
    return {r.event.call_id for r in records if isinstance(r.event, m.ToolReturned) and r.scope_id == m.ROOT
            and r.event.is_error and (r.event.origin is m.ToolOrigin.CLIENT or r.event.call_id in denied)}


def said(view: m.SessionView) -> dict[str, Any]:
    """A session's history added up: all words, thoughts, pictures, calls and results of the agent itself."""
    own = [entry for entry in view.entries if entry.scope_id == m.ROOT]
    parts = [part for entry in own if entry.role is m.Role.ASSISTANT for part in m.parts_of(entry.content)]
    return {
        "text": "".join(part.text for part in parts if isinstance(part, m.TextPart)),
        "thinking": "".join(part.text for part in parts if isinstance(part, m.ThinkingPart)),
        "images": [part.url for part in parts if isinstance(part, m.ImagePart)],
        "calls": [(p.call.call_id, p.call.name, p.call.input) for p in parts if isinstance(p, m.ToolUsePart)],
        "results": [(entry.call_id, entry.content) for entry in own if entry.role is m.Role.TOOL],
    }


def folded(records: Sequence[m.Record]) -> dict[str, Any]:
    return said(m.fold("sess", records))
