"""One turn: runs the backend, asks people and passes their answers on; it ends exactly once, whatever happens."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Protocol

import structlog

import gateway.model as m
from gateway.errors import GatewayError, Interrupted, NotFound, TimedOut
from gateway.ports import Backend, BackendOutput, ResumableBackend
from gateway.trace_context import TRACEPARENT, trace_fields

from .event_sink import (
    TurnOver,
    check_scope_id,
    close_backend,
    consume_backend,
    ensure_serializable,
    ensure_serializable_fault,
    with_scope_status,
)
from .pending_asks import PendingAsks
from .recovery import AGENT_CHANGED, TurnHistory, append_turn_end
from .runtime import SessionWriter
from .validation import parse_structured_output

log = structlog.get_logger("dragoman.turn")


class TurnSession(SessionWriter, Protocol):
    """The session of a turn."""

    def now(self) -> float:
        """The time, which never goes back within a session."""
    def expire(self, run: "TurnRun", withdrawals: Sequence[m.Withdraw]) -> None:
        """Settle asks that nobody answered in time."""


class TurnRun:
    """A turn while it runs or waits; to its backend it is a `gateway.ports.Turn`."""

    rule: str | None = None
    """The rule of `route` that has moved the turn to another agent."""

    def __init__(
        self,
        session: TurnSession,
        turn_id: str,
        command: m.SendMessage | m.Compact,
        backend: Backend,
        agent: m.AgentCard,
        recorded: TurnHistory | None = None,
        *,
        recalls: bool = True,
        trace: str | None = None,
    ) -> None:
        self.turn_id = turn_id
        self.trace = recorded.trace if recorded else trace
        self.trace_fields = {} if self.trace is None else trace_fields(self.trace)
        self.command = command
        self.agent = agent
        entries = session.view.compacted
        self.history: Sequence[m.HistoryEntry] = recorded.history(entries) if recorded else tuple(
            entry for entry in entries if entry.scope_id == m.ROOT)
        self.memories: Sequence[m.MemoryRef] = recorded.memories if recorded else ()
        self._recalls = recalls and recorded is None
        self._is_announced = recorded is not None
        self.asked: Sequence[m.AnyAsk] = tuple(recorded.last.values()) if recorded else ()
        self.pending_asks = PendingAsks()
        self.is_ended = False
        self.session = session
        self.backend = backend
        self.recorded = recorded
        """The records of the turn, while its backend repeats the events from before the restart."""
        self.usage = recorded.usage if recorded else m.Usage()
        self.stop_reason = m.StopReason.END_TURN
        self._stem = f"{turn_id.partition('_')[2]}z"
        self._minted = count(1)
        self._started_at = recorded.started_at if recorded else session.now()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._counts = False
        """Whether the turn counts as one of its owner's running turns, which a turn that waits for people does not."""
        self._stream: AsyncGenerator[BackendOutput, None] | None = None

    @property
    def session_id(self) -> str:
        return self.session.view.session_id

    @property
    def settings(self) -> m.Settings:
        return self.agent.filled(self.session.view.settings)

    @property
    def metadata(self) -> Mapping[str, object]:
        return self.session.view.metadata

    def mint(self, prefix: str) -> str:
        """A new id; a turn that is run again gets the same ids in the same order."""
        return f"{prefix}_{self._stem}{next(self._minted):x}"

    async def read_skill(self, name: str, path: str = m.SKILL_FILE) -> m.SkillFile:
        skills = {skill.name: skill for skill in self.session.view.settings.skills or ()}
        if name not in skills:
            raise NotFound(f"this session has no skill '{name[:64]}'; it has: {', '.join(skills) or 'none'}")
        return await self.session.runtime.skills.read_file(self.session.view.owner, skills[name], path)

    def start(self) -> None:
        self._count(True)
        self._start_timer(self.session.runtime.limits.turn_seconds)
        self._task = asyncio.create_task(self._run(), name=f"turn {self.turn_id}")

    def keep_waiting(self) -> None:
        """Wait on for people after a restart; the backend runs again when every ask is settled."""
        assert self.recorded is not None, "only a turn that comes back waits on"
        asks, past = self.session.view.asks, self.recorded
        answers = {request_id: past.answers[request_id] for request_id in past.last if request_id not in asks}
        self.pending_asks.open(past.last, answers)
        until = min((ask.expires_at for ask in asks.values() if ask.expires_at is not None), default=None)
        seconds = self.session.runtime.limits.ask_seconds if until is None else max(0.0, until - self.session.now())
        self._start_timer(seconds)

    # -- the backend ----------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        if self.trace is not None:  # this task is the turn's own, and so is its context
            TRACEPARENT.set(self.trace)
            structlog.contextvars.bind_contextvars(**self.trace_fields)
        is_done = False
        with self._border():
            if self._recalls and self.session.view.settings.memory and isinstance(self.command, m.SendMessage):
                await self._recall(self.command)
            self._stream = self._backend_stream()
            await consume_backend(self, self._stream)
            is_done = True
        if not is_done and self._stream is not None:
            with self._border():
                await close_backend(self._stream)

    def _backend_stream(self) -> AsyncGenerator[BackendOutput, None]:
        past = self.recorded
        if past is not None and isinstance(self.backend, ResumableBackend):
            return self._resumed(self.backend, past)
        return self.backend.run(self)

    async def _recall(self, command: m.SendMessage) -> None:
        """Find the memories that fit the message; if the store fails, the turn goes on without memories."""
        view = self.session.view
        try:
            self.memories = await self.session.runtime.memories.recall(
                view.owner, m.text_of(command.content), view.settings.memory_user)
        except GatewayError as error:
            log.warning("memories_not_recalled", session=view.session_id, turn=self.turn_id, error=error.message)

    def take_annotation(self, message_id: str) -> m.MessageAnnotated | None:
        """The memories that the turn was given, for its first message; None for every further message."""
        if self._is_announced or not self.memories:
            return None
        self._is_announced = True
        return m.MessageAnnotated(
            message_id=message_id, topic=m.AnnotationTopic.MEMORY_REFS,
            content=[memory.as_annotation() for memory in self.memories],
        )

    def _resumed(self, backend: ResumableBackend, past: TurnHistory) -> AsyncGenerator[BackendOutput, None]:
        """The output of a backend that goes on after the answers, in place of running the turn again."""
        self.recorded = None
        self._stem = f"{self._stem}{len(past.pauses)}z"  # its events from now on are new, and so are their ids
        self.history = tuple(entry for entry in self.session.view.compacted if entry.scope_id == m.ROOT)
        settled = self.pending_asks.given
        return backend.resume(self, [settled[request_id] for request_id in past.last])

    @contextmanager
    def _border(self) -> Iterator[None]:
        """Whatever the backend raises in the block, the turn ends with an outcome."""
        try:
            yield
        except (TurnOver, asyncio.CancelledError):
            self.finish(m.Outcome.INTERRUPTED, m.StopReason.INTERRUPTED)
        except GatewayError as error:
            self.fail(error.fault)
        except m.GrammarError as error:
            log.error("grammar_violation", turn=self.turn_id, agent=self.agent.name, rule=str(error))
            self.fail(m.Fault(code=m.FaultCode.BACKEND, message=f"The agent broke the laws of the stream: {error}."))
        except Exception:  # the border of the turn: no exception of an agent may reach the stream of a client
            log.exception("agent_failed", turn=self.turn_id, agent=self.agent.name)
            self.fail(m.Fault(code=m.FaultCode.INTERNAL, message=f"The agent '{self.agent.name}' failed unexpectedly."))

    def complete(self) -> None:
        """End the turn after the last event of its backend; if the answer does not fit the schema, the turn fails."""
        if self.recorded is not None:
            raise Interrupted(AGENT_CHANGED)
        schema = self.command.output_schema if isinstance(self.command, m.SendMessage) else None
        result = None if schema is None else parse_structured_output(schema, self.session.view.entries, self.turn_id)
        self.finish(m.Outcome.COMPLETED, self.stop_reason, result=result)

    # -- asking people --------------------------------------------------------------------------------------------

    async def ask(self, *asks: m.AnyAsk, scope_id: str = m.ROOT) -> list[m.Answer]:
        if self.is_ended:
            raise TurnOver
        requests = {self.mint("ask"): ask for ask in asks}
        self.asked = asks
        if self.recorded is not None:
            return await self._recorded_answers(asks)
        expires_at = self.session.now() + self.session.runtime.limits.ask_seconds
        if check_scope_id(scope_id) != m.ROOT and scope_id in self.session.grammar.scopes:
            blocked = m.ScopeStatusChanged(status=m.ScopeStatus.BLOCKED, stop_reason=m.StopReason.NEEDS_INPUT)
            self._append_status(blocked, scope_id)
        for requested in [
            ensure_serializable(_request(request_id, ask, expires_at)) for request_id, ask in requests.items()
        ]:
            self._append(requested, check_scope_id(scope_id))
        self._append(m.TurnSuspended(pending=tuple(requests)))
        self._count(False)
        self.pending_asks.open(requests)
        self._start_timer(self.session.runtime.limits.ask_seconds)
        answers = await self.pending_asks.answers()
        return [answers[request_id] for request_id in requests]

    async def _recorded_answers(self, asks: Sequence[m.AnyAsk]) -> list[m.Answer]:
        """The recorded answers; at the pause at which the server stopped, the answers that come now."""
        assert self.recorded is not None
        answered = self.recorded.next(asks)
        if answered is not None:
            return answered
        past, self.recorded = self.recorded, None
        answers = await self.pending_asks.answers()
        return [answers[request_id] for request_id in past.last]

    def resume(self) -> None:
        """Every ask is settled: append that, and let the backend go on."""
        self._append(m.TurnResumed(settled=self.pending_asks.settled))
        for scope_id in self.session.grammar.scopes:
            if scope_id != m.ROOT and self.session.view.scopes[scope_id].status is m.ScopeStatus.BLOCKED:
                self._append_status(m.ScopeStatusChanged(status=m.ScopeStatus.RUNNING), scope_id)
        self._count(True)
        self._start_timer(self.session.runtime.limits.turn_seconds)
        self.pending_asks.resume()
        if self._task is None:
            self.start()

    # -- ending ---------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the turn at once; the backend is cancelled afterwards, and cannot delay the end."""
        self.finish(m.Outcome.INTERRUPTED, m.StopReason.INTERRUPTED)
        if self._task is not None:
            self._task.cancel()

    def abandon(self) -> None:
        """Stop the turn without ending it: in the log it waits on, or another server goes on with it."""
        self.is_ended = True
        self._count(False)
        self._stop_timer()
        if self._task is not None:
            self._task.cancel()

    async def wait_finished(self, seconds: float) -> None:
        """Wait until the backend has cleaned up, for so many seconds at most."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=seconds)

    def fail_now(self, fault: m.Fault) -> None:
        """End the turn with a fault at once; the backend is cancelled afterwards."""
        self.fail(fault)
        if self._task is not None:
            self._task.cancel()

    def fail(self, fault: m.Fault) -> None:
        late = fault.code is m.FaultCode.TIMEOUT
        self.finish(
            m.Outcome.FAILED, m.StopReason.TIMEOUT if late else m.StopReason.ERROR, ensure_serializable_fault(fault)
        )

    def finish(
        self, outcome: m.Outcome, stop_reason: m.StopReason, fault: m.Fault | None = None, result: object = None,
    ) -> None:
        """Close what is open and append `turn.ended`; a second call does nothing."""
        if self.is_ended:
            return
        self.is_ended = True
        self._count(False)
        self._stop_timer()
        took = round((self.session.now() - self._started_at) * 1000)
        ended = m.TurnEnded(
            outcome=outcome, stop_reason=stop_reason, fault=fault, result=result, usage=self.usage, duration_ms=took,
        )
        append_turn_end(self.session, self.turn_id, ended)
        self.session.turn_ended(self.turn_id, ended)

    def _append(self, event: m.AnyEvent, scope_id: str = m.ROOT) -> None:
        self.session.append(event, scope_id, self.turn_id)

    def _append_status(self, event: m.ScopeStatusChanged, scope_id: str) -> None:
        """Append that a sub-agent waits for people or goes on, unless its backend has emitted that event."""
        for one in with_scope_status(self.session, event, scope_id):
            self._append(one, scope_id)

    def _count(self, counts: bool) -> None:
        if counts is not self._counts:
            self._counts = counts
            self.session.runtime.tally.add(self.session.view.owner, turns=1 if counts else -1)

    # -- timeouts -------------------------------------------------------------------------------------------------

    def _start_timer(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._expire)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        if self.pending_asks.pending:
            self.session.expire(self, [m.Withdraw(request_id=request_id) for request_id in self.pending_asks.pending])
            return
        seconds = self.session.runtime.limits.turn_seconds
        self.fail_now(TimedOut(f"The turn took longer than {seconds:g} seconds.").fault)


def _request(request_id: str, ask: m.AnyAsk, expires_at: float) -> m.InputRequested:
    call = m.call_of(ask)
    return m.InputRequested(
        request_id=request_id, ask=ask, call_id=call.call_id if call else None, expires_at=expires_at,
    )
