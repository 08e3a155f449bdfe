"""Records in, what to say out: chats that begin, pause and end, and the turns that are told in them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gateway.model as m
from adapters.blade import asks
from adapters.blade.wire import FILES_CHANGED, BlockType

from .ask_projection import AskProjection
from .turn_projection import Cue, Cues
from .turn_state import TurnBlock, blocks_of_parts, newest_first

DIALECT_NAME = "blade"
FAULT_DELAY = 0.5
"""How long a fault may wait for the end of the turn that would make it fatal."""
CHAT_COMMANDS: tuple[type[m.Command], ...] = (m.SendMessage, m.Compact, *m.ANSWERS)


@dataclass(slots=True)
class ChatRun:
    """From a `chat:send` to where the agent yields; a turn of the house is one of them or more."""

    run_id: str
    headless: bool = False
    schema: dict[str, Any] | None = None


def run_id_of(session_id: str, seq: int) -> str:
    """The name of the chat that a command began, from where the command stands in the log."""
    return f"chat_{session_id.rpartition('_')[2]}_{seq}"


def command_seq(session_id: str, run_id: Any) -> int:
    """Where the command stands that began a chat of this name; 0 if no chat of the session is called so."""
    number = run_id.rpartition("_")[2] if isinstance(run_id, str) else ""
    seq = int(number) if number.isascii() and number.isdecimal() and len(number) < 16 else 0
    return seq if run_id == run_id_of(session_id, seq) else 0


class SessionProjection(AskProjection):
    """The state of one session's telling; iterate over what `take` gives."""

    def __init__(self) -> None:
        super().__init__()
        self.chat: ChatRun | None = None
        self._accepted: list[tuple[m.Record, m.AnyCommand]] = []
        self._fault: tuple[m.Fault, float, int] | None = None
        self._replay_state: Any = None
        self._past = 0
        """How many turns there were when the turn of the house began."""
        self._summed_up: list[tuple[int, int]] = []
        """Where each summary stands, and how many turns it and those before it take the place of."""

    def project(self, record: m.Record) -> Cues:
        if self._holding or self._fault is not None:
            yield from self._before(record)
        step = _STEPS.get(type(record.event))
        if step is not None:
            yield from step(self, record, record.event)

    # -- what was held back ---------------------------------------------------------------------------------------

    @property
    def deadline(self) -> float | None:
        times = [turn.due for turn in self._holding] + ([self._fault[1]] if self._fault else [])
        return min(times, default=None)

    def flush(self, now: float) -> Cues:
        """What is due by then."""
        yield from self._due(now)
        if self._fault is not None and self._fault[1] <= now:
            yield self._passing()

    def _before(self, record: m.Record) -> Cues:
        yield from self.flush(record.at)
        if self._fault is not None:
            if isinstance(record.event, m.TurnEnded) and record.event.fault == self._fault[0]:
                self._fault = None  # it is told with the end of the turn
            else:
                yield self._passing()

    def _broke(self, record: m.Record, event: m.FaultRaised) -> Cues:
        """Whether a fault ends the turn is known when the next record comes."""
        self._fault = (event.fault, record.at + FAULT_DELAY, record.seq)
        return iter(())

    def _passing(self) -> Cue:
        """A fault that did not end the turn is a notice; to Blade's clients an error ends everything."""
        assert self._fault is not None
        (fault, _, seq), self._fault = self._fault, None
        return Cue("fault.passing", None, {"fault": fault}, seq)

    # -- the session ----------------------------------------------------------------------------------------------

    def _created(self, record: m.Record, event: m.SessionCreated) -> Cues:
        for message in event.history:
            if message.role is not m.Role.TOOL:
                turn = self._entry(f"{record.session_id}_{self.entries}", record, message.role)
                yield from self._whole(turn, blocks_of_parts(m.parts_of(message.content)))

    def _updated(self, record: m.Record, event: m.SessionUpdated) -> Cues:
        model = event.settings.model if event.settings else None
        kept = (event.metadata or {}).get(m.PRIVATE, {}).get(DIALECT_NAME, {})
        replay = kept.get("replay_state", self._replay_state)
        if event.title is not None or model is not None or replay != self._replay_state:
            yield Cue("session.changed", None, {"intent": event.title, "model": model, "replay_state": replay})
        self._replay_state = replay

    def _compacted(self, record: m.Record, event: m.SessionCompacted) -> Cues:
        turn = self._entry(event.compaction_id, record, m.Role.SYSTEM)
        self._places.pop()  # a summary is no part of what is summed up
        past = self._past if record.turn_id is not None else len(self._places)
        turn.compaction, turn.archived = event, past - (self._summed_up[-1][1] if self._summed_up else 0)
        self._summed_up.append((record.seq, past))
        yield from self._whole(turn, [])

    def _rewound(self, record: m.Record, event: m.SessionRewound) -> Cues:
        self._places = [seq for seq in self._places if seq <= event.to_seq]
        self._summed_up = [one for one in self._summed_up if one[0] <= event.to_seq]
        return iter(())

    def _notice(self, record: m.Record, event: m.NoticePosted) -> Cues:
        yield Cue("notice", None, {"event": event})

    def _custom(self, record: m.Record, event: m.CustomEvent) -> Cues:
        if event.topic == FILES_CHANGED:
            yield Cue("files.changed", None, {"file_path": event.payload.get("file_path")})

    # -- a chat begins --------------------------------------------------------------------------------------------

    def _command(self, record: m.Record, event: m.InputAccepted) -> Cues:
        command = event.command
        if isinstance(command, CHAT_COMMANDS):
            self._accepted.append((record, command))
        elif isinstance(command, m.CustomCommand) and command.name == FILES_CHANGED:
            yield Cue("files.changed", None, {"file_path": command.payload.get("file_path")})

    def _begin(self, record: m.Record, event: m.Event) -> Cues:
        """With what people said to begin it; an answer goes on with the chat that asked."""
        accepted, self._accepted = self._accepted, []
        if isinstance(event, m.TurnStarted):
            self._past = len(self._places)
        run_id = run_id_of(record.session_id, (accepted[-1][0] if accepted else record).seq)
        sent = next((command for _, command in accepted if isinstance(command, m.SendMessage)), None)
        if sent is not None:
            self.chat = ChatRun(run_id, sent.headless or sent.output_schema is not None, sent.output_schema)
        elif self.chat is not None and not isinstance(event, m.TurnStarted):
            self.chat = ChatRun(run_id, self.chat.headless, self.chat.schema)
        else:
            self.chat = ChatRun(run_id)
        self.last_words = self.last_words if sent is None else ""
        self.resumed, self.has_failed_tool = True, False
        yield Cue("chat.started")
        for said, command in accepted:
            yield from self._said(said, command)

    def _said(self, record: m.Record, command: m.AnyCommand) -> Cues:
        """What a person said or answered, as a turn of theirs."""
        blocks = (
            blocks_of_parts(m.parts_of(command.content)) if isinstance(command, m.SendMessage) else self._reply(command)
        )
        if blocks or isinstance(command, m.SendMessage):
            assert isinstance(record.event, m.InputAccepted)
            yield from self._whole(self._entry(record.event.command_id, record, m.Role.USER), blocks)

    def _reply(self, command: Any) -> list[TurnBlock]:
        asked = self._asks.get(getattr(command, "request_id", ""))
        picks = asks.picks_of_answer(asked.ask, command) if asked is not None else None
        if asked is None or picks is None:
            return []
        answer = {"tool_call_id": asked.call.id, "selections": picks[0], "custom": picks[1]}
        words = getattr(command, "message", "")
        return [TurnBlock(BlockType.ASK_USER_ANSWER, answer), *([TurnBlock(BlockType.TEXT, words)] if words else [])]

    def _resumed(self, record: m.Record, event: m.TurnResumed) -> Cues:
        yield from self._begin(record, event)
        for request_id in event.settled:
            yield from self._answered(request_id)

    def _resolved(self, record: m.Record, event: m.InputResolved) -> Cues:
        """An answer while others are awaited is a chat of its own, over at once; a withdrawal is none."""
        asked = self._asks.get(event.request_id)
        if asked is None:
            return
        said = [command for _, command in self._accepted if getattr(command, "request_id", "") == event.request_id]
        asked.resolution, asked.answer = event.resolution, said[0] if said else None  # type: ignore[assignment]
        left = [request_id for request_id, other in self._asks.items() if other.resolution is None]
        if said and left and not self.resumed:
            yield from self._begin(record, event)
            yield from self._answered(event.request_id)
            yield from self._pause(left)
        elif not said and asked.is_synthetic:
            yield from self._withdrawn(asked)

    # -- and ends -------------------------------------------------------------------------------------------------

    def _suspended(self, record: m.Record, event: m.TurnSuspended) -> Cues:
        for turn in newest_first(self._turns.values()):
            if not turn.closed:
                yield from self._close(turn, m.SessionStatus.SUSPENDED, record)
        yield from self._pause(event.pending)

    def _pause(self, pending: "list[str] | tuple[str, ...]") -> Cues:
        self.resumed = False
        for turn in newest_first(self._turns.values()):
            yield from self._end_again(turn)
        first = next((self._asks[request_id] for request_id in pending if request_id in self._asks), None)
        yield Cue("chat.paused", None, {"call": first.call if first else None})

    def _ended(self, record: m.Record, event: m.TurnEnded) -> Cues:
        for turn in newest_first(self._turns.values()):
            if not turn.closed:
                yield from self._close(turn, event.outcome, record)
            elif turn.state is m.SessionStatus.SUSPENDED:
                turn.state = event.outcome
                yield from self._patch("patch.status", turn)
            yield from self._end_again(turn)
            if turn.state is m.Outcome.FAILED and event.fault is not None:
                turn.failure = event.fault.message
        yield from self._farewell(event)
        self._asks = {}
        self._forget()

    def _farewell(self, event: m.TurnEnded) -> Cues:
        """A chat ends once: one that was paused is over already."""
        if event.fault is not None:
            yield Cue("fault.fatal", None, {"fault": event.fault})
        if self.resumed:
            self.resumed = False
            yield Cue(f"chat.{event.outcome}", None, {"event": event})


_STEPS: dict[type[m.Event], Callable[[SessionProjection, m.Record, Any], Iterator[Cue]]] = {
    m.SessionCreated: SessionProjection._created,
    m.SessionUpdated: SessionProjection._updated,
    m.SessionCompacted: SessionProjection._compacted,
    m.SessionRewound: SessionProjection._rewound,
    m.NoticePosted: SessionProjection._notice,
    m.CustomEvent: SessionProjection._custom,
    m.InputAccepted: SessionProjection._command,
    m.InputRequested: SessionProjection._requested,
    m.InputResolved: SessionProjection._resolved,
    m.TurnStarted: SessionProjection._begin,
    m.TurnSuspended: SessionProjection._suspended,
    m.TurnResumed: SessionProjection._resumed,
    m.TurnEnded: SessionProjection._ended,
    m.MessageStarted: SessionProjection._message,
    m.MessageAnnotated: SessionProjection._annotated,
    m.MessageEnded: SessionProjection._spoken,
    m.BlockDelta: SessionProjection._delta,
    m.BlockEnded: SessionProjection._block,
    m.ToolStatusChanged: SessionProjection._status,
    m.ToolReturned: SessionProjection._returned,
    m.ScopeOpened: SessionProjection._forked,
    m.ScopeStatusChanged: SessionProjection._scope_status,
    m.FaultRaised: SessionProjection._broke,
}
