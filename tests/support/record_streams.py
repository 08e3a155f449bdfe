"""Canonical streams nobody wrote: a random walk over what may happen next, and the records it leaves behind."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import orjson
from hypothesis import strategies as st

import gateway.model as m

stops = (m.StopReason.END_TURN, m.StopReason.MAX_TOKENS, m.StopReason.REFUSAL, m.StopReason.TOOL_USE)
pauses = (0.0, 0.001, 0.2)
kinds = (*m.BlockKind, m.BlockKind.TEXT)
Option = TypeVar("Option")


def spread(number: int, most: int = 12) -> list[int]:
    """The places of a stream, or so many of them: the first, the last, and others that depend on its length."""
    return list(range(number)) if number <= most else [round(step * (number - 1) / (most - 1)) for step in range(most)]


class DrawnChoices:
    """The choices of one walk, drawn all at once: a draw for each would cost more than the laws that are tested."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self._recording = draw(st.binary(min_size=400, max_size=400))
        self._letters = draw(st.text(min_size=16, max_size=16))
        self._at = 0

    def below(self, limit: int) -> int:
        """A number from 0; always 0 where the tape has come to its end."""
        self._at += 1
        return self._recording[self._at - 1] % limit if self._at <= len(self._recording) else 0

    def among(self, options: Sequence[Option]) -> Option:
        return options[self.below(len(options))]

    def is_so(self) -> bool:
        return self.below(2) == 1

    def words(self, longest: int = 12) -> str:
        start = self.below(len(self._letters))
        return self._letters[start:start + self.below(longest + 1)]

    def input(self) -> dict[str, Any]:
        return {self.words(5): self.value() for _ in range(self.below(4))}

    def value(self) -> bool | int | str | None:
        return self.among([lambda: None, self.is_so, lambda: self.below(19) - 9, self.words])()

    def usage(self) -> m.Usage:
        return m.Usage(input_tokens=self.below(100), output_tokens=self.below(100))


class RandomWalk:
    """One session being told; `moves` are what may happen next, and each step is checked by the grammar."""

    def __init__(self, draw: Callable[[Any], Any], session_id: str = "sess_walk") -> None:
        self.chance = DrawnChoices(draw)
        self.session_id = session_id
        self.grammar = m.Grammar()
        self.records: list[m.Record] = []
        self.turn_id: str | None = None
        self.at = 1_700_000_000.0
        self.count = 0
        self.deltas: dict[str, list[str]] = {}
        self.stop_reason = m.StopReason.END_TURN
        self.say(m.SessionCreated(agent="demo"))

    def id(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}_{self.count}"

    def say(self, event: m.AnyEvent, scope_id: str = m.ROOT) -> None:
        self.grammar.check(event, scope_id)
        self.at += self.chance.among(pauses)
        self.records.append(m.Record(
            seq=len(self.records) + 1, at=self.at, session_id=self.session_id, event=event, turn_id=self.turn_id,
            scope_id=scope_id,
        ))

    # -- one turn -------------------------------------------------------------------------------------------------

    def turn(self, steps: int, *, suspend: bool = True) -> None:
        self.turn_id = self.id("turn")
        self.say(m.InputAccepted(command_id=self.id("cmd"), command=m.SendMessage(content=self.chance.words())))
        self.say(m.TurnStarted(command_id=f"cmd_{self.count}"))
        for _ in range(steps):
            moves = self.moves(suspend)
            self.chance.among(moves)()
        self.wind_up()
        stop = m.StopReason.END_TURN if self.stop_reason is m.StopReason.TOOL_USE else self.stop_reason
        self.say(m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=stop))
        self.turn_id = None

    def moves(self, suspend: bool) -> list[Callable[[], None]]:
        moves: list[Callable[[], None]] = [self.notice, self.custom, self.title]
        for scope_id, scope in self.grammar.scopes.items():
            moves += {
                m.ScopePhase.QUIET: [self.on(self.start_message, scope_id)],
                m.ScopePhase.IN_MESSAGE: [
                    *[self.on(self.start_block, scope_id)] * 2, self.on(self.annotate, scope_id),
                    self.on(self.end_message, scope_id), self.on(self.whole_call, scope_id),
                ],
                m.ScopePhase.IN_BLOCK: [*[self.on(self.delta, scope_id)] * 2, self.on(self.end_block, scope_id)],
            }[scope.phase]
            if scope_id != m.ROOT and scope.phase is m.ScopePhase.QUIET:
                moves.append(self.on(self.end_scope, scope_id))
        for call_id in self.grammar.calls:
            moves += [self.on(self.output, call_id), self.on(self.give_back, call_id)]
        if len(self.grammar.scopes) < 3:
            moves.append(self.open_scope)
        if suspend and all(scope.phase is m.ScopePhase.QUIET for scope in self.grammar.scopes.values()):
            moves.append(self.ask)
        return moves

    @staticmethod
    def on(move: Callable[[str], None], key: str) -> Callable[[], None]:
        return lambda: move(key)

    def wind_up(self) -> None:
        """Close whatever is open, by ordinary means."""
        for scope_id in reversed(list(self.grammar.scopes)):
            if self.grammar.scopes[scope_id].phase is m.ScopePhase.IN_BLOCK:
                self.end_block(scope_id)
            if self.grammar.scopes[scope_id].phase is m.ScopePhase.IN_MESSAGE:
                self.end_message(scope_id)
        for call_id in list(self.grammar.calls):
            self.give_back(call_id)
        for scope_id in [scope_id for scope_id in self.grammar.scopes if scope_id != m.ROOT]:
            self.end_scope(scope_id)

    # -- moves ----------------------------------------------------------------------------------------------------

    def notice(self) -> None:
        self.say(m.NoticePosted(topic="note", title=self.chance.words()))

    def custom(self) -> None:
        self.say(m.CustomEvent(topic="own", payload=self.chance.input()))

    def title(self) -> None:
        self.say(m.SessionUpdated(title=self.chance.words()))

    def start_message(self, scope_id: str) -> None:
        self.say(m.MessageStarted(message_id=self.id("msg"), model="m-1"), scope_id)

    def annotate(self, scope_id: str) -> None:
        message_id = self.grammar.scopes[scope_id].message_id
        topic = self.chance.among(list(m.AnnotationTopic))
        self.say(m.MessageAnnotated(message_id=message_id, topic=topic, content=self.chance.words()), scope_id)

    def end_message(self, scope_id: str) -> None:
        stop = self.chance.among(stops)
        self.stop_reason = stop if scope_id == m.ROOT else self.stop_reason
        message_id = self.grammar.scopes[scope_id].message_id
        self.say(m.MessageEnded(message_id=message_id, stop_reason=stop, usage=self.chance.usage()), scope_id)

    def start_block(self, scope_id: str) -> None:
        kind = self.chance.among(kinds)
        self.open_block(scope_id, kind)

    def open_block(self, scope_id: str, kind: m.BlockKind) -> None:
        block_id, call = self.id("blk"), None
        if kind is m.BlockKind.TOOL_USE:
            origin = self.chance.among(list(m.ToolOrigin))
            call = m.ToolCall(call_id=self.id("call"), name="tool", origin=origin)
        message_id = self.grammar.scopes[scope_id].message_id
        self.say(m.BlockStarted(block_id=block_id, message_id=message_id, kind=kind, call=call), scope_id)

    def delta(self, scope_id: str) -> None:
        block = self.grammar.scopes[scope_id].block
        assert block is not None
        if block.kind in (m.BlockKind.TEXT, m.BlockKind.THINKING):
            self.say(m.BlockDelta(
                block_id=block.block_id, message_id=block.message_id, kind=block.kind, delta=self.chance.words(),
            ), scope_id)

    def end_block(self, scope_id: str) -> None:
        block = self.grammar.scopes[scope_id].block
        assert block is not None
        ended: dict[str, Any] = {"block_id": block.block_id, "message_id": block.message_id, "kind": block.kind}
        if block.kind in (m.BlockKind.TEXT, m.BlockKind.THINKING):
            ended["text"] = "".join(block.deltas)
        elif block.kind is m.BlockKind.IMAGE:
            ended["image"] = m.ImagePart(url=f"https://example.test/{self.count}.png")
        elif block.kind is m.BlockKind.DATA:
            ended["data"] = m.DataPart(type="plan_status", content=self.chance.input())
        else:
            assert block.call is not None
            given = self.chance.input()
            self.write_input(scope_id, given)
            ended["call"] = m.ToolCall(
                call_id=block.call.call_id, name=block.call.name, origin=block.call.origin, input=given,
            )
        self.say(m.BlockEnded(**ended), scope_id)

    def write_input(self, scope_id: str, given: dict[str, Any]) -> None:
        """The JSON of a call's input, in one fragment, in two, or not at all."""
        block, text = self.grammar.scopes[scope_id].block, orjson.dumps(given).decode()
        assert block is not None
        half = self.chance.below(len(text) + 1)
        for piece in {0: (), 1: (text,), 2: (text[:half], text[half:])}[self.chance.below(3)]:
            self.say(m.BlockDelta(
                block_id=block.block_id, message_id=block.message_id, kind=block.kind, delta=piece,
            ), scope_id)

    def whole_call(self, scope_id: str) -> None:
        self.open_block(scope_id, m.BlockKind.TOOL_USE)
        self.end_block(scope_id)

    def output(self, call_id: str) -> None:
        scope_id = self.grammar.calls[call_id].scope_id
        if scope_id in self.grammar.scopes:
            self.say(m.ToolStatusChanged(call_id=call_id, status=m.ToolStatus.RUNNING), scope_id)
            self.say(m.ToolOutput(call_id=call_id, delta=self.chance.words()), scope_id)

    def give_back(self, call_id: str) -> None:
        call = self.grammar.calls[call_id]
        self.say(m.ToolReturned(
            call_id=call_id, origin=call.call.origin, content=self.chance.words(), is_error=self.chance.is_so(),
        ), call.scope_id)

    def open_scope(self) -> None:
        parent = self.chance.among(list(self.grammar.scopes))
        scope_id = self.id("scope")
        self.say(m.ScopeOpened(parent=parent, agent="helper"), scope_id)
        self.say(m.ScopeMessage(sender=parent, recipient=scope_id, content=self.chance.words()), scope_id)

    def end_scope(self, scope_id: str) -> None:
        self.say(m.ScopeStatusChanged(status=m.ScopeStatus.ENDED, stop_reason=m.StopReason.END_TURN), scope_id)

    def ask(self) -> None:
        """Everything that is pending is asked, the turn waits, and everything is answered."""
        asks = [self.ask_about(call_id) for call_id in self.grammar.calls] or [self.ask_anything()]
        pending = []
        for ask, call_id in asks:
            pending.append(self.id("ask"))
            self.say(m.InputRequested(request_id=pending[-1], ask=ask, call_id=call_id))
        self.say(m.TurnSuspended(pending=tuple(pending)))
        for request_id in pending:
            answer = m.DecidePermission(request_id=request_id, granted=True)
            self.say(m.InputAccepted(command_id=self.id("cmd"), command=answer))
            self.say(m.InputResolved(request_id=request_id, resolution=m.Resolution.GRANTED))
        self.say(m.TurnResumed(settled=tuple(pending)))

    def ask_about(self, call_id: str) -> tuple[Any, str]:
        call = self.grammar.calls[call_id].call
        client = call.origin is m.ToolOrigin.CLIENT
        return (m.ClientToolAsk(call=call) if client else m.PermissionAsk(call=call)), call_id

    def ask_anything(self) -> tuple[Any, None]:
        question = m.Question(question="Which?", options=(m.Choice(label="this"), m.Choice(label="that")))
        return self.chance.among([
            m.ContinuationAsk(turn=3, message="go on?"), m.QuestionAsk(questions=(question,)),
        ]), None

    def fault(self) -> None:
        self.say(m.FaultRaised(fault=m.Fault(code=m.FaultCode.BACKEND, message="broke")))


@st.composite
def sessions(draw: Any, *, turns: int = 2, steps: int = 25, suspend: bool = True) -> list[m.Record]:
    """A lawful session of one or more whole turns."""
    walk = RandomWalk(draw)
    for _ in range(1 + walk.chance.below(turns)):
        walk.turn(walk.chance.below(steps + 1), suspend=suspend)
    return walk.records


ENGINES = (
    m.SessionCreated,
    m.InputAccepted,
    m.InputRequested,
    m.InputResolved,
    m.TurnStarted,
    m.TurnSuspended,
    m.TurnResumed,
    m.TurnEnded,
)


@st.composite
def backend_turns(draw: Any, *, steps: int = 25) -> list[m.Record]:
    """What a backend says in one turn without pausing, from its first word to its last."""
    walk = RandomWalk(draw)
    walk.turn(walk.chance.below(steps + 1), suspend=False)
    return [record for record in walk.records if not isinstance(record.event, ENGINES)]
