"""One turn: its backend is run, asks people and is answered; it ends exactly once, whatever happens."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import structlog

from gateway.errors import GatewayError, Interrupted, TimedOut
from gateway.model import (
    ROOT,
    AgentCard,
    Answer,
    AnyAsk,
    AnyEvent,
    Compact,
    Entry,
    Fault,
    FaultCode,
    GrammarError,
    InputRequested,
    Outcome,
    ScopeStatus,
    ScopeStatusChanged,
    SendMessage,
    Settings,
    StopReason,
    TurnEnded,
    TurnResumed,
    TurnSuspended,
    Usage,
    Withdraw,
    call_of,
)
from gateway.ports import Backend, Resuming, Telling

from .closing import say_end
from .desk import Desk
from .listening import TurnOver, let_go, listen, with_status
from .output import structured
from .returning import CHANGED, Past
from .writable import named, tellable, writable

if TYPE_CHECKING:
    from .session import Session

log = structlog.get_logger("dragoman.turn")


class TurnRun:
    """A turn while it runs or waits; to its backend it is a `gateway.ports.Turn`."""

    def __init__(
        self, session: "Session", turn_id: str, command: SendMessage | Compact, backend: Backend, agent: AgentCard,
        past: Past | None = None,
    ) -> None:
        self.turn_id = turn_id
        self.command = command
        self.agent = agent
        entries = session.view.compacted
        self.history: Sequence[Entry] = past.history(entries) if past else tuple(
            entry for entry in entries if entry.scope_id == ROOT)
        self.asked: Sequence[AnyAsk] = tuple(past.last.values()) if past else ()
        self.desk = Desk()
        self.over = False
        self.session = session
        self.backend = backend
        self.past = past
        """What the log has of the turn, until its backend has come to where the server stopped."""
        self.usage = past.usage if past else Usage()
        self.stop_reason = StopReason.END_TURN
        self._stem = f"{turn_id.partition('_')[2]}z"
        self._minted = count(1)
        self._started_at = past.started_at if past else session.now()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._counts = False
        """Whether it is one of its owner's running turns: who waits for people is none."""
        self._stream: AsyncGenerator[Telling, None] | None = None

    @property
    def session_id(self) -> str:
        return self.session.view.session_id

    @property
    def settings(self) -> Settings:
        return self.agent.filled(self.session.view.settings)

    @property
    def metadata(self) -> Mapping[str, Any]:
        return self.session.view.metadata

    def mint(self, prefix: str) -> str:
        """The same ids in the same order whenever the turn is run."""
        return f"{prefix}_{self._stem}{next(self._minted):x}"

    def start(self) -> None:
        self._count(True)
        self._wind(self.session.house.limits.turn_seconds)
        self._task = asyncio.create_task(self._run(), name=f"turn {self.turn_id}")

    def wait_on(self) -> None:
        """Go on waiting for people where the server was stopped; the agent is run anew when all have answered."""
        assert self.past is not None, "only a turn that comes back waits on"
        asks, past = self.session.view.asks, self.past
        answers = {request_id: past.answers[request_id] for request_id in past.last if request_id not in asks}
        self.desk.open(past.last, answers)
        until = min((ask.expires_at for ask in asks.values() if ask.expires_at is not None), default=None)
        seconds = self.session.house.limits.ask_seconds if until is None else max(0.0, until - self.session.now())
        self._wind(seconds)

    # -- what the backend says ------------------------------------------------------------------------------------

    async def _run(self) -> None:
        if not await self._guarded(self._hear()) and self._stream is not None:
            await self._guarded(let_go(self._stream))

    async def _hear(self) -> None:
        self._stream = self._begun()
        await listen(self, self._stream)

    def _begun(self) -> AsyncGenerator[Telling, None]:
        past = self.past
        if past is None or not isinstance(self.backend, Resuming):
            return self.backend.run(self)
        self.past = None
        self._stem = f"{self._stem}{len(past.pauses)}z"  # what it says now is new, and so are its ids
        self.history = tuple(entry for entry in self.session.view.compacted if entry.scope_id == ROOT)
        settled = self.desk.given
        return self.backend.resume(self, [settled[request_id] for request_id in past.last])

    async def _guarded(self, step: Coroutine[None, None, None]) -> bool:
        """Whether the step came to its end; whatever happens in it, the turn ends well."""
        try:
            await step
            return True
        except (TurnOver, asyncio.CancelledError):
            self.finish(Outcome.INTERRUPTED, StopReason.INTERRUPTED)
        except GatewayError as error:
            self.fail(error.fault)
        except GrammarError as error:
            log.error("the agent broke a law", turn=self.turn_id, agent=self.agent.name, law=str(error))
            self.fail(Fault(code=FaultCode.BACKEND, message=f"The agent broke the laws of the stream: {error}."))
        except Exception:  # whatever an agent throws must not reach a client's stream
            log.exception("the agent failed", turn=self.turn_id, agent=self.agent.name)
            self.fail(Fault(code=FaultCode.INTERNAL, message=f"The agent '{self.agent.name}' failed unexpectedly."))
        return False

    def complete(self) -> None:
        """The backend has said all it wanted to; where a schema was given, what does not fit it is no success."""
        if self.past is not None:
            raise Interrupted(CHANGED)
        schema = self.command.output_schema if isinstance(self.command, SendMessage) else None
        result = None if schema is None else structured(schema, self.session.view.entries, self.turn_id)
        self.finish(Outcome.COMPLETED, self.stop_reason, result=result)

    # -- asking people --------------------------------------------------------------------------------------------

    async def ask(self, *asks: AnyAsk, scope_id: str = ROOT) -> list[Answer]:
        if self.over:
            raise TurnOver
        requests = {self.mint("ask"): ask for ask in asks}
        self.asked = asks
        if self.past is not None:
            return await self._asked_before(asks)
        expires_at = self.session.now() + self.session.house.limits.ask_seconds
        if named(scope_id) != ROOT and scope_id in self.session.grammar.scopes:
            blocked = ScopeStatusChanged(status=ScopeStatus.BLOCKED, stop_reason=StopReason.NEEDS_INPUT)
            self._say_status(blocked, scope_id)
        for requested in [writable(_request(request_id, ask, expires_at)) for request_id, ask in requests.items()]:
            self._say(requested, named(scope_id))
        self._say(TurnSuspended(pending=tuple(requests)))
        self._count(False)
        self.desk.open(requests)
        self._wind(self.session.house.limits.ask_seconds)
        answers = await self.desk.answers()
        return [answers[request_id] for request_id in requests]

    async def _asked_before(self, asks: Sequence[AnyAsk]) -> list[Answer]:
        """The answers of then; where the turn was left waiting, those that have come by now."""
        assert self.past is not None
        answered = self.past.next(asks)
        if answered is not None:
            return answered
        past, self.past = self.past, None
        answers = await self.desk.answers()
        return [answers[request_id] for request_id in past.last]

    def resume(self) -> None:
        """Every ask is settled: say so and let the backend go on."""
        self._say(TurnResumed(settled=self.desk.settled))
        for scope_id in self.session.grammar.scopes:
            if scope_id != ROOT and self.session.view.scopes[scope_id].status is ScopeStatus.BLOCKED:
                self._say_status(ScopeStatusChanged(status=ScopeStatus.RUNNING), scope_id)
        self._count(True)
        self._wind(self.session.house.limits.turn_seconds)
        self.desk.resume()
        if self._task is None:
            self.start()

    # -- ending ---------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the turn at once; the backend is told afterwards and cannot delay it."""
        self.finish(Outcome.INTERRUPTED, StopReason.INTERRUPTED)
        if self._task is not None:
            self._task.cancel()

    def abandon(self) -> None:
        """The server stops while the turn waits for people: it waits on in the log."""
        self.over = True
        self._count(False)
        self._unwind()
        if self._task is not None:
            self._task.cancel()

    async def gone(self, seconds: float) -> None:
        """Wait until the backend has let go, or for so long."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=seconds)

    def break_off(self, fault: Fault) -> None:
        """End the turn with a fault at once; the backend is told afterwards."""
        self.fail(fault)
        if self._task is not None:
            self._task.cancel()

    def fail(self, fault: Fault) -> None:
        late = fault.code is FaultCode.TIMEOUT
        self.finish(Outcome.FAILED, StopReason.TIMEOUT if late else StopReason.ERROR, tellable(fault))

    def finish(
        self, outcome: Outcome, stop_reason: StopReason, fault: Fault | None = None, result: Any = None,
    ) -> None:
        """Say what is missing and `turn.ended`; a second call does nothing."""
        if self.over:
            return
        self.over = True
        self._count(False)
        self._unwind()
        took = round((self.session.now() - self._started_at) * 1000)
        ended = TurnEnded(
            outcome=outcome, stop_reason=stop_reason, fault=fault, result=result, usage=self.usage, duration_ms=took,
        )
        say_end(self.session, self.turn_id, ended)
        self.session.turn_over(self.turn_id, ended)

    def _say(self, event: AnyEvent, scope_id: str = ROOT) -> None:
        self.session.say(event, scope_id, self.turn_id)

    def _say_status(self, event: ScopeStatusChanged, scope_id: str) -> None:
        """Tell that a sub-agent waits for people or goes on, unless its backend has told it."""
        for one in with_status(self.session, event, scope_id):
            self._say(one, scope_id)

    def _count(self, counts: bool) -> None:
        if counts is not self._counts:
            self._counts = counts
            self.session.house.tally.add(self.session.view.owner, turns=1 if counts else -1)

    # -- every wait has an end ------------------------------------------------------------------------------------

    def _wind(self, seconds: float) -> None:
        self._unwind()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._expire)

    def _unwind(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        if self.desk.pending:
            self.session.expire(self, [Withdraw(request_id=request_id) for request_id in self.desk.pending])
            return
        seconds = self.session.house.limits.turn_seconds
        self.break_off(TimedOut(f"The turn took longer than {seconds:g} seconds.").fault)


def _request(request_id: str, ask: AnyAsk, expires_at: float) -> InputRequested:
    call = call_of(ask)
    return InputRequested(
        request_id=request_id, ask=ask, call_id=call.call_id if call else None, expires_at=expires_at,
    )
