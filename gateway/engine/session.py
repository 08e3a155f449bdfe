"""One session: the only writer of its log; it accepts commands, runs one turn, and appends every record."""

from collections.abc import Sequence

import structlog
from msgspec.structs import replace

import gateway.model as m
from gateway.errors import Busy, Conflict, Overloaded
from gateway.ids import Mint
from gateway.ports import ChosenRoute, Receipt

from .recovery import TurnHistory, close_turn
from .runtime import Runtime
from .turn import TurnRun
from .validation import check_schema, validate_settings

log = structlog.get_logger("dragoman.session")

STOPPING = "the server is about to stop and starts no new turns; ask again when it is back"
TURN_COMMANDS: tuple[type[m.Command], ...] = (m.SendMessage, m.Compact, *m.ANSWERS)
"""Commands after which a turn runs."""


class Session:
    """The one writer of its log. Everything up to the log is one step of the event loop, so nothing needs a lock.

    A session that another server writes is a copy here: its view follows the log, and nothing is appended.
    """

    __slots__ = ("changed_seq", "grammar", "is_copy", "run", "runtime", "stored_seq", "view")

    def __init__(self, session_id: str, runtime: Runtime, *, is_copy: bool = False) -> None:
        self.runtime = runtime
        self.is_copy = is_copy
        self.view = m.SessionView(session_id=session_id)
        self.grammar = m.Grammar()
        self.run: TurnRun | None = None
        self.stored_seq = 0
        """The number of the last record that is stored."""
        self.changed_seq = 0
        """The number of the last record that changed more than the view's number."""

    def now(self) -> float:
        """The time, which never goes back within a session."""
        return max(self.runtime.clock(), self.view.at)

    def append(self, event: m.AnyEvent, scope_id: str = m.ROOT, turn_id: str | None = None) -> m.Record:
        """Check the event against the grammar, number it, and append it to the log."""
        view = self.view
        self.grammar.check(event, scope_id)
        record = m.Record(
            seq=view.head + 1, at=max(self.runtime.clock(), view.at), session_id=view.session_id, event=event,
            turn_id=turn_id, scope_id=scope_id,
        )
        m.apply(view, record)
        self.changed_seq = record.seq
        self.runtime.log.append(record)
        return record

    def append_delta(self, event: m.BlockDelta, turn_id: str) -> None:
        """Append one delta of the agent itself, which nine of ten events are; it changes only the view's number."""
        view, now = self.view, self.runtime.clock()
        self.grammar.check(event)
        view.head += 1
        if now > view.at:
            view.at = now
        self.runtime.log.append(m.Record(
            seq=view.head, at=view.at, session_id=view.session_id, event=event, turn_id=turn_id,
        ))

    def append_deltas(self, deltas: Sequence[m.BlockDelta], turn_id: str) -> None:
        """Append several deltas that arrived together."""
        if not self.grammar.take_deltas(deltas):
            for event in deltas:
                self.append_delta(event, turn_id)
            return
        view, first = self.view, self.view.head + 1
        at, session_id = max(self.runtime.clock(), view.at), view.session_id
        records = [
            m.Record(seq=seq, at=at, session_id=session_id, event=event, turn_id=turn_id)
            for seq, event in enumerate(deltas, first)
        ]
        view.head, view.at = records[-1].seq, at
        self.runtime.log.append_deltas(records)

    # -- commands -------------------------------------------------------------------------------------------------

    def submit(self, commands: Sequence[m.AnyCommand], mint: Mint | None = None) -> Receipt:
        """Accept all commands, or raise and change nothing; `mint` makes the ids of the commands."""
        commands = self._checked(commands)
        records, turn_id, after, begun = [], self.view.turn_id, self.view.head, False
        for command in commands:
            record, begins = self._accept(command, mint or self.runtime.mint)
            records.append(record)
            turn_id = record.turn_id or turn_id
            after, begun = (after, begun) if begins is None else (begins, True)
        log.debug("commands_accepted", session=self.view.session_id, turn=turn_id, kinds=[c.kind for c in commands],
                  **(self.run.trace_fields if self.run is not None else {}))
        return Receipt(turn_id=turn_id, records=tuple(records), after=after, begun=begun)

    def _checked(self, commands: Sequence[m.AnyCommand]) -> list[m.AnyCommand]:
        """The commands, each of which fits the state that the commands before it lead to."""
        if self.view.closed is not None:
            raise Conflict(f"the session is {self.view.closed}")
        if (error := self.runtime.log.error_of(self.view.session_id)) is not None:
            raise error
        status, checked = self.view.status, list[m.AnyCommand]()
        pending = set(self.view.asks)
        for command in commands:
            if self.runtime.is_draining and isinstance(command, TURN_COMMANDS):
                raise Overloaded(STOPPING)
            if isinstance(command, m.SendMessage | m.Compact):
                self._agent()
                if isinstance(command, m.SendMessage) and command.output_schema is not None:
                    check_schema(command.output_schema)
                if status is m.SessionStatus.RUNNING:
                    raise Busy("a turn is running in this session; wait for its end or interrupt it")
                self.runtime.tally.check(self.view.owner, "turns")
                self.runtime.tally.check(self.view.owner, "stored_bytes")
                status, pending = m.SessionStatus.RUNNING, set()
            elif isinstance(command, m.ANSWERS):
                self._check_answer(command, pending)  # type: ignore[arg-type]  # ANSWERS are the members of Answer
                pending.discard(command.request_id)  # type: ignore[union-attr]
                if not pending:
                    self.runtime.tally.check(self.view.owner, "turns")
                    status = m.SessionStatus.RUNNING
            elif isinstance(command, m.Interrupt):
                if command.turn_id in (None, self.view.turn_id):
                    status, pending = m.SessionStatus.IDLE, set()
            elif isinstance(command, m.Configure):
                command = m.Configure(settings=self._configured(command.settings))
            checked.append(command)
        return checked

    def _configured(self, settings: m.Settings) -> m.Settings:
        """New settings of the session; those that say nothing about memories leave their use as it is."""
        if settings.memory is None:
            old = self.view.settings
            settings = replace(settings, memory=old.memory, memory_user=settings.memory_user or old.memory_user)
        return validate_settings(self._agent(), settings)

    def _agent(self) -> m.AgentCard:
        card = self.runtime.agents.get(self.view.agent)
        if card is None:
            raise Conflict(f"agent '{self.view.agent}' of this session is not served any more")
        return card

    def _check_answer(self, answer: m.Answer, pending: set[str]) -> None:
        if self.run is None or answer.request_id not in pending:
            raise Conflict(f"nothing is pending under '{answer.request_id}'")
        self.run.pending_asks.check(answer)

    def _accept(self, command: m.AnyCommand, name: Mint) -> tuple[m.Record, int | None]:
        """Append the command and carry it out; return its record, and after which record a turn begins or resumes."""
        starts = isinstance(command, m.SendMessage | m.Compact)
        if starts and self.run is not None:  # the turn waits for people, who have sent a new message
            self._accept(m.Interrupt(turn_id=self.run.turn_id), self.runtime.mint)
        turn_id = self.runtime.mint("turn") if starts else self.view.turn_id
        command_id = name("cmd")
        accepted = self.append(m.InputAccepted(command_id=command_id, command=command), turn_id=turn_id)
        if isinstance(command, m.SendMessage | m.Compact):
            assert turn_id is not None
            return accepted, self._start(turn_id, command_id, command)
        if isinstance(command, m.ANSWERS):
            return accepted, self._settle(command)  # type: ignore[arg-type]
        if isinstance(command, m.Interrupt):
            self._interrupt(command)
        elif isinstance(command, m.Configure):
            self.append(m.SessionUpdated(settings=command.settings))
        return accepted, None

    def _start(self, turn_id: str, command_id: str, command: m.SendMessage | m.Compact) -> int:
        agent = self._agent()
        begins = self.view.head
        tracer = self.runtime.tracer
        trace, parent = (None, None) if tracer is None else tracer.begin()
        replacement = self.runtime.replacement_backends.get(self.view.session_id)
        route = self._route(turn_id, command) if replacement is None else None
        if route is not None:
            agent = self.runtime.agents[route.agent]
        self.append(m.TurnStarted(
            command_id=command_id, trace=trace, trace_parent=parent, agent=route.agent if route else None,
        ), turn_id=turn_id)
        backend = replacement or self.runtime.backends[agent.name]
        self.run = TurnRun(self, turn_id, command, backend, agent, recalls=replacement is None, trace=trace)
        self.run.rule = route.rule if route else None
        self.run.start()
        return begins

    def _route(self, turn_id: str, command: m.SendMessage | m.Compact) -> ChosenRoute | None:
        """The agent that runs the turn in place of the agent of the session."""
        route = self.runtime.routes.choose(self.view, command.via)
        if route is None or route.agent not in self.runtime.backends:
            return None
        log.info("turn_routed", session=self.view.session_id, turn=turn_id, agent=self.view.agent, to=route.agent)
        return route

    def revive(self, records: Sequence[m.Record]) -> None:
        """Close the turn that ran when the server stopped; a turn that waited for people waits on."""
        view, runtime = self.view, self.runtime
        if view.turn_id is None:
            return
        past = TurnHistory(view.turn_id, records)
        agent = past.agent or view.agent
        card, backend = runtime.agents.get(agent), runtime.backends.get(agent)
        if view.status is not m.SessionStatus.SUSPENDED or card is None or backend is None or past.command is None:
            close_turn(self, view.turn_id, past)
            return
        self.run = TurnRun(self, view.turn_id, past.command, backend, card, past)
        self.run.keep_waiting()

    def _settle(self, answer: m.Answer, resolution: m.Resolution | None = None) -> int | None:
        run = self.run
        assert run is not None, "an answer was checked against a run"
        resolution = resolution or run.pending_asks.settle(answer)
        ask = self.view.asks[answer.request_id]
        self.append(
            m.InputResolved(request_id=ask.request_id, resolution=resolution, call_id=ask.call_id),
            ask.scope_id, run.turn_id,
        )
        if run.pending_asks.pending:
            return None
        begins = self.view.head
        run.resume()
        return begins

    def expire(self, run: TurnRun, withdrawals: Sequence[m.Withdraw]) -> None:
        """Settle asks that nobody answered in time: the turn goes on without answers."""
        for withdrawal in withdrawals:
            run.pending_asks.settle(withdrawal)
            self._settle(withdrawal, m.Resolution.EXPIRED)

    def _interrupt(self, command: m.Interrupt) -> None:
        if self.run is not None and command.turn_id in (None, self.run.turn_id):
            self.run.stop()

    def turn_ended(self, turn_id: str, ended: m.TurnEnded) -> None:
        trace: dict[str, str] = {}
        if self.run is not None and self.run.turn_id == turn_id:
            if self.run.rule is not None:
                self.runtime.routes.turn_ended(self.run.rule, ended)
            trace, self.run = self.run.trace_fields, None
        self.runtime.observer.turn_ended(self.view, ended)
        fault = ended.fault
        (log.warning if fault else log.info)(
            "turn_failed" if fault else "turn_ended",
            session=self.view.session_id, turn=turn_id, agent=self.view.agent, outcome=ended.outcome,
            stop_reason=ended.stop_reason, duration_ms=ended.duration_ms, fault=fault.code if fault else None,
            **({"reason": fault.message} if fault else {}), **trace,
        )
