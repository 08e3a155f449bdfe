"""Projects a session: its chats begin, pause and end, and turns are written in them."""

from collections.abc import Callable, Sequence
from typing import Any

import gateway.model as m
from adapters.blade.wire import FILES_CHANGED

from .ask_projection import AskProjection
from .turn_projection import CueWriter, TurnProjection
from .turn_state import ChatRun, OpenTurns, blocks_of_parts

DIALECT_NAME = "blade"
FAULT_DELAY = 0.5
"""How many seconds a fault waits for the end of the turn, which would make it fatal."""
CHAT_COMMANDS: tuple[type[m.Command], ...] = (m.SendMessage, m.Compact, *m.ANSWERS)


def run_id_of(session_id: str, seq: int) -> str:
    """The id of the chat that a command began, made from the place of the command in the log."""
    return f"chat_{session_id.rpartition('_')[2]}_{seq}"


def command_seq(session_id: str, run_id: object) -> int:
    """The place in the log of the command that began this chat; 0 if the session has no chat of this id."""
    number = run_id.rpartition("_")[2] if isinstance(run_id, str) else ""
    seq = int(number) if number.isascii() and number.isdecimal() and len(number) < 16 else 0
    return seq if run_id == run_id_of(session_id, seq) else 0


class SessionProjection:
    """Writes the cues of one session, record by record."""

    def __init__(self, open_turns: OpenTurns, writer: CueWriter) -> None:
        self._open = open_turns
        self._writer = writer
        self._turns = TurnProjection(open_turns, writer)
        self._asks = AskProjection(open_turns, self._turns)
        self._accepted: list[tuple[m.Record, m.AnyCommand]] = []
        self._fault: tuple[m.Fault, float, int] | None = None
        self._replay_state: object = None
        self._earlier_turns = 0
        """How many turns the conversation had when the canonical turn began."""
        self._compactions: list[tuple[int, int]] = []
        """The place of each summary, and how many turns it and those before it replace."""
        self._steps: dict[type[m.Event], Callable[[m.Record, Any], None]] = {
            m.SessionCreated: self._session_created,
            m.SessionUpdated: self._session_updated,
            m.SessionCompacted: self._session_compacted,
            m.SessionRewound: self._session_rewound,
            m.NoticePosted: self._notice_posted,
            m.CustomEvent: self._custom_event,
            m.InputAccepted: self._input_accepted,
            m.InputRequested: self._asks.requested,
            m.InputResolved: self._input_resolved,
            m.TurnStarted: self._begin_chat,
            m.TurnSuspended: self._turn_suspended,
            m.TurnResumed: self._turn_resumed,
            m.TurnEnded: self._turn_ended,
            m.MessageStarted: self._turns.message_started,
            m.MessageAnnotated: self._turns.message_annotated,
            m.MessageEnded: self._turns.message_ended,
            m.BlockDelta: self._turns.delta,
            m.BlockEnded: self._turns.block_ended,
            m.ToolStatusChanged: self._turns.tool_status_changed,
            m.ToolReturned: self._turns.returned,
            m.ScopeOpened: self._turns.scope_opened,
            m.ScopeStatusChanged: self._turns.scope_status_changed,
            m.FaultRaised: self._fault_raised,
        }

    def project(self, record: m.Record) -> None:
        if self._open.holding or self._fault is not None:
            self._write_held(record)
        step = self._steps.get(type(record.event))
        if step is not None:
            step(record, record.event)

    # -- what was held back ---------------------------------------------------------------------------------------

    @property
    def deadline(self) -> float | None:
        """When text or a fault that is held back is due."""
        times = [turn.due for turn in self._open.holding]
        if self._fault is not None:
            times.append(self._fault[1])
        return min(times, default=None)

    def flush(self, now: float) -> None:
        """Write what is due by then."""
        self._turns.flush(now)
        if self._fault is not None and self._fault[1] <= now:
            self._write_fault()

    def _write_held(self, record: m.Record) -> None:
        self.flush(record.at)
        if self._fault is not None:
            if isinstance(record.event, m.TurnEnded) and record.event.fault == self._fault[0]:
                self._fault = None  # the end of the turn carries it
            else:
                self._write_fault()

    def _fault_raised(self, record: m.Record, event: m.FaultRaised) -> None:
        """The next record shows whether the fault ends the turn."""
        self._fault = (event.fault, record.at + FAULT_DELAY, record.seq)

    def _write_fault(self) -> None:
        """A fault that did not end the turn is a notice, because Blade's clients stop at an error."""
        assert self._fault is not None
        (fault, _, seq), self._fault = self._fault, None
        self._writer.write("fault.passing", None, {"fault": fault}, seq)

    # -- the session ----------------------------------------------------------------------------------------------

    def _session_created(self, record: m.Record, event: m.SessionCreated) -> None:
        self.write_history(record, event.history)

    def write_history(self, record: m.Record, messages: Sequence[m.SeedMessage]) -> None:
        """Write messages that a session was created with, as turns."""
        for message in messages:
            if message.role is not m.Role.TOOL:
                turn = self._turns.make_entry(f"{record.session_id}_{self._open.entries}", record, message.role)
                self._turns.write_whole(turn, blocks_of_parts(m.parts_of(message.content)))

    def _session_updated(self, record: m.Record, event: m.SessionUpdated) -> None:
        model = event.settings.model if event.settings else None
        private = (event.metadata or {}).get(m.PRIVATE, {}).get(DIALECT_NAME, {})
        replay = private.get("replay_state", self._replay_state)
        if event.title is not None or model is not None or replay != self._replay_state:
            names = {"intent": event.title, "model": model, "replay_state": replay}
            self._writer.write("session.changed", None, names)
        self._replay_state = replay

    def _session_compacted(self, record: m.Record, event: m.SessionCompacted) -> None:
        turn = self._turns.make_entry(event.compaction_id, record, m.Role.SYSTEM)
        self._open.positions.pop()  # a later summary does not replace this one
        replaced = self._earlier_turns if record.turn_id is not None else len(self._open.positions)
        turn.compaction = event
        turn.archived = replaced - (self._compactions[-1][1] if self._compactions else 0)
        self._compactions.append((record.seq, replaced))
        self._turns.write_whole(turn, [])

    def _session_rewound(self, record: m.Record, event: m.SessionRewound) -> None:
        self._open.positions = [seq for seq in self._open.positions if seq <= event.to_seq]
        self._compactions = [one for one in self._compactions if one[0] <= event.to_seq]

    def _notice_posted(self, record: m.Record, event: m.NoticePosted) -> None:
        self._writer.write("notice", None, {"event": event})

    def _custom_event(self, record: m.Record, event: m.CustomEvent) -> None:
        if event.topic == FILES_CHANGED:
            self._writer.write("files.changed", None, {"file_path": event.payload.get("file_path")})

    # -- a chat begins --------------------------------------------------------------------------------------------

    def _input_accepted(self, record: m.Record, event: m.InputAccepted) -> None:
        command = event.command
        if isinstance(command, CHAT_COMMANDS):
            self._accepted.append((record, command))
        elif isinstance(command, m.CustomCommand) and command.name == FILES_CHANGED:
            self._writer.write("files.changed", None, {"file_path": command.payload.get("file_path")})

    def _begin_chat(self, record: m.Record, event: m.Event) -> None:
        """Write the messages that begin a chat; an answer continues the chat that asked."""
        accepted, self._accepted = self._accepted, []
        if isinstance(event, m.TurnStarted):
            self._earlier_turns = len(self._open.positions)
        run_id = run_id_of(record.session_id, (accepted[-1][0] if accepted else record).seq)
        sent = next((command for _, command in accepted if isinstance(command, m.SendMessage)), None)
        before = self._open.chat
        if sent is not None:
            self._open.chat = ChatRun(run_id, sent.headless or sent.output_schema is not None, sent.output_schema)
            self._open.last_text = ""
        elif before is not None and not isinstance(event, m.TurnStarted):
            self._open.chat = ChatRun(run_id, before.headless, before.schema)
        else:
            self._open.chat = ChatRun(run_id)
        self._open.is_running, self._open.has_failed_tool = True, False
        self._writer.write("chat.started")
        for origin, command in accepted:
            self._write_command(origin, command)

    def _write_command(self, record: m.Record, command: m.AnyCommand) -> None:
        """Write a message or an answer of a person as a turn of theirs."""
        is_message = isinstance(command, m.SendMessage)
        blocks = (
            blocks_of_parts(m.parts_of(command.content)) if isinstance(command, m.SendMessage)
            else self._asks.reply_blocks(command)
        )
        if blocks or is_message:
            assert isinstance(record.event, m.InputAccepted)
            turn = self._turns.make_entry(record.event.command_id, record, m.Role.USER)
            self._turns.write_whole(turn, blocks)

    def _turn_resumed(self, record: m.Record, event: m.TurnResumed) -> None:
        self._begin_chat(record, event)
        for request_id in event.settled:
            self._asks.answered(request_id)

    def _input_resolved(self, record: m.Record, event: m.InputResolved) -> None:
        """An answer while other asks are open is a chat of its own that pauses at once; a withdrawal is no chat."""
        shown = self._asks.shown.get(event.request_id)
        if shown is None:
            return
        answers = [command for _, command in self._accepted if getattr(command, "request_id", "") == event.request_id]
        shown.resolution, shown.answer = event.resolution, answers[0] if answers else None  # type: ignore[assignment]
        pending = [request_id for request_id, other in self._asks.shown.items() if other.resolution is None]
        if answers and pending and not self._open.is_running:
            self._begin_chat(record, event)
            self._asks.answered(event.request_id)
            self._pause_chat(pending)
        elif not answers and shown.is_synthetic:
            self._asks.withdrawn(shown)

    # -- a chat ends ----------------------------------------------------------------------------------------------

    def _turn_suspended(self, record: m.Record, event: m.TurnSuspended) -> None:
        for turn in self._open.newest_first():
            if not turn.closed:
                self._turns.close(turn, m.SessionStatus.SUSPENDED, record)
        self._pause_chat(event.pending)

    def _pause_chat(self, pending: Sequence[str]) -> None:
        self._open.is_running = False
        for turn in self._open.newest_first():
            self._turns.end_again(turn)
        shown = self._asks.shown
        first = next((shown[request_id] for request_id in pending if request_id in shown), None)
        self._writer.write("chat.paused", None, {"call": first.call if first else None})

    def _turn_ended(self, record: m.Record, event: m.TurnEnded) -> None:
        for turn in self._open.newest_first():
            if not turn.closed:
                self._turns.close(turn, event.outcome, record)
            elif turn.state is m.SessionStatus.SUSPENDED:
                turn.state = event.outcome
                self._turns.patch("patch.status", turn)
            self._turns.end_again(turn)
            if turn.state is m.Outcome.FAILED and event.fault is not None:
                turn.failure = event.fault.message
        if event.fault is not None:
            self._writer.write("fault.fatal", None, {"fault": event.fault})
        if self._open.is_running:  # a chat ends once: a paused one is over already
            self._open.is_running = False
            self._writer.write("chat.ended", None, {"event": event})
        self._asks.shown.clear()
        self._open.reset()
