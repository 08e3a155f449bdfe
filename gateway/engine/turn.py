"""One turn: runs the backend, puts what it says into the session's log, and ends exactly once, whatever happens."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec
import orjson
import structlog

from gateway.errors import BackendFailed, GatewayError, Interrupted, TimedOut
from gateway.model import (
    BACKEND_EVENTS,
    ROOT,
    AgentCard,
    Answer,
    AnyAsk,
    AnyEvent,
    BlockDelta,
    Compact,
    Entry,
    Fault,
    FaultCode,
    GrammarError,
    InputRequested,
    MessageEnded,
    Outcome,
    ScopeStatus,
    ScopeStatusChanged,
    SendMessage,
    SessionUpdated,
    Settings,
    StopReason,
    TurnEnded,
    TurnResumed,
    TurnSuspended,
    Usage,
    Withdraw,
    call_of,
)
from gateway.ports import Backend, Said, Scoped

from .closing import say_end
from .desk import Desk
from .output import structured
from .returning import CHANGED, Past

if TYPE_CHECKING:
    from .session import Session

log = structlog.get_logger("dragoman.turn")

BREATH = 32
"""After so many events in a row a turn lets others run, so that a burst reaches its readers while it lasts."""

_NOT_AN_END = (StopReason.TOOL_USE, StopReason.NEEDS_INPUT)


LET_GO_SECONDS = 10.0
"""How long a backend may take to clean up after its turn has ended."""


class TurnOver(Exception):
    """The turn has ended; nothing said after that counts."""


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
        self._session = session
        self.backend = backend
        self._past = past
        self._stem = f"{turn_id.partition('_')[2]}z"
        self._minted = count(1)
        self._usage = past.usage if past else Usage()
        self._stop_reason = StopReason.END_TURN
        self._started_at = past.started_at if past else session.now()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def session_id(self) -> str:
        return self._session.view.session_id

    @property
    def settings(self) -> Settings:
        return self.agent.filled(self._session.view.settings)

    @property
    def metadata(self) -> Mapping[str, Any]:
        return self._session.view.metadata

    def mint(self, prefix: str) -> str:
        """The same ids in the same order whenever the turn is run."""
        return f"{prefix}_{self._stem}{next(self._minted):x}"

    def start(self) -> None:
        self._wind(self._session.house.limits.turn_seconds)
        self._task = asyncio.create_task(self._run(), name=f"turn {self.turn_id}")

    def wait_on(self) -> None:
        """Go on waiting for people where the server was stopped; the agent is run anew when all have answered."""
        assert self._past is not None, "only a turn that comes back waits on"
        asks, past = self._session.view.asks, self._past
        answers = {request_id: past.answers[request_id] for request_id in past.last if request_id not in asks}
        self.desk.open(past.last, answers)
        until = min((ask.expires_at for ask in asks.values() if ask.expires_at is not None), default=None)
        seconds = self._session.house.limits.ask_seconds if until is None else max(0.0, until - self._session.now())
        self._wind(seconds)

    # -- what the backend says ------------------------------------------------------------------------------------

    async def _run(self) -> None:
        stream = self._stream()
        await self._guarded(self._listen(stream))
        await self._guarded(self._let_go(stream))

    def _stream(self) -> AsyncGenerator[Said, None]:
        past, resume = self._past, getattr(self.backend, "resume", None)
        if past is None or resume is None:
            return self.backend.run(self)
        self._past = None
        self._stem = f"{self._stem}{len(past.pauses)}z"  # what it says now is new, and so are its ids
        self.history = tuple(entry for entry in self._session.view.compacted if entry.scope_id == ROOT)
        settled = self.desk.given
        stream: AsyncGenerator[Said, None] = resume(self, [settled[request_id] for request_id in past.last])
        return stream

    async def _guarded(self, step: Coroutine[None, None, None]) -> None:
        """Whatever happens in the step, the turn ends well."""
        try:
            await step
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

    async def _listen(self, stream: AsyncGenerator[Said, None]) -> None:
        say, say_delta, turn_id, spoken = self._session.say, self._session.say_delta, self.turn_id, 0
        most = self._session.house.limits.turn_events
        async for said in stream:
            spoken += 1
            if spoken % BREATH == 0:
                await asyncio.sleep(0)
                if spoken > most:
                    raise BackendFailed(f"The agent said more than {most} things in one turn.")
            if self.over:
                raise TurnOver
            if self._past is not None:
                continue  # it was said before the server stopped
            if type(said) is BlockDelta and _is_text(said.delta):
                say_delta(said, turn_id)
                continue
            event, scope_id = (said.event, said.scope_id) if isinstance(said, Scoped) else (said, ROOT)
            event = _spoken(event)
            say(event, scope_id, turn_id)
            if type(event) is MessageEnded:
                self._take_stock(event, scope_id)
        if self._past is not None:
            raise Interrupted(CHANGED)
        self.finish(Outcome.COMPLETED, self._stop_reason, result=self._result())

    def _result(self) -> Any:
        """What was asked for, where a schema was given; an answer that does not fit it is a fault, not a success."""
        schema = self.command.output_schema if isinstance(self.command, SendMessage) else None
        return None if schema is None else structured(schema, self._session.view.entries, self.turn_id)

    async def _let_go(self, stream: AsyncGenerator[Said, None]) -> None:
        async with asyncio.timeout(LET_GO_SECONDS):
            await stream.aclose()

    def _take_stock(self, event: MessageEnded, scope_id: str) -> None:
        self._usage += event.usage
        if scope_id == ROOT:
            self._stop_reason = StopReason.END_TURN if event.stop_reason in _NOT_AN_END else event.stop_reason

    # -- asking people --------------------------------------------------------------------------------------------

    async def ask(self, *asks: AnyAsk, scope_id: str = ROOT) -> list[Answer]:
        if self.over:
            raise TurnOver
        requests = {self.mint("ask"): ask for ask in asks}
        self.asked = asks
        if self._past is not None:
            return await self._asked_before(asks)
        expires_at = self._session.now() + self._session.house.limits.ask_seconds
        for request_id, ask in requests.items():
            call = call_of(ask)
            self._say(InputRequested(
                request_id=request_id, ask=ask, call_id=call.call_id if call else None, expires_at=expires_at,
            ), scope_id)
        self._say(TurnSuspended(pending=tuple(requests)))
        self.desk.open(requests)
        self._wind(self._session.house.limits.ask_seconds)
        answers = await self.desk.answers()
        return [answers[request_id] for request_id in requests]

    async def _asked_before(self, asks: Sequence[AnyAsk]) -> list[Answer]:
        """The answers of then; where the turn was left waiting, those that have come by now."""
        assert self._past is not None
        answered = self._past.next(asks)
        if answered is not None:
            return answered
        past, self._past = self._past, None
        answers = await self.desk.answers()
        return [answers[request_id] for request_id in past.last]

    def resume(self) -> None:
        """Every ask is settled: say so and let the backend go on."""
        self._say(TurnResumed(settled=self.desk.settled))
        self._wind(self._session.house.limits.turn_seconds)
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
        self.finish(Outcome.FAILED, StopReason.TIMEOUT if late else StopReason.ERROR, fault)

    def finish(
        self, outcome: Outcome, stop_reason: StopReason, fault: Fault | None = None, result: Any = None,
    ) -> None:
        """Say what is missing and `turn.ended`; a second call does nothing."""
        if self.over:
            return
        self.over = True
        self._unwind()
        took = round((self._session.now() - self._started_at) * 1000)
        ended = TurnEnded(
            outcome=outcome, stop_reason=stop_reason, fault=fault, result=result, usage=self._usage,
            duration_ms=took,
        )
        say_end(self._session, self.turn_id, ended)
        self._session.turn_over(self.turn_id, ended)

    def _say(self, event: AnyEvent, scope_id: str = ROOT) -> None:
        self._session.say(event, scope_id, self.turn_id)

    # -- every wait has an end ------------------------------------------------------------------------------------

    def _wind(self, seconds: float) -> None:
        self._unwind()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._expire)

    def _unwind(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        if self.desk.pending:
            self._session.expire(self, [Withdraw(request_id=request_id) for request_id in self.desk.pending])
            return
        seconds = self._session.house.limits.turn_seconds
        self.break_off(TimedOut(f"The turn took longer than {seconds:g} seconds.").fault)


def _is_text(delta: str) -> bool:
    """Nine events of ten need no more than this: a string that can be written everywhere."""
    return type(delta) is str and (delta.isascii() or _is_unicode(delta))


def _is_unicode(delta: str) -> bool:
    try:
        delta.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _spoken(event: AnyEvent) -> AnyEvent:
    """An agent may say anything; only events of a backend, with fields that can be written and read, get further."""
    kind = type(event)
    if kind not in BACKEND_EVENTS:
        raise GrammarError(f"{getattr(kind, 'name', kind.__name__)} is not a backend's to say")
    if isinstance(event, ScopeStatusChanged) and event.status is ScopeStatus.ARCHIVED:
        raise GrammarError("to archive a sub-agent is not a backend's to say")
    if isinstance(event, SessionUpdated) and event.agent is not None:
        raise GrammarError("which agent a session has is not a backend's to say")
    try:
        written = orjson.dumps(msgspec.to_builtins(event, builtin_types=(bytes,)))
        return msgspec.json.decode(written, type=kind)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as error:
        raise GrammarError(f"{kind.name} has a field that cannot be written: {error}") from None
