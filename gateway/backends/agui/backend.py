"""The agui backend: a turn is one run of an AG-UI agent, and one more after every ask of a run."""

from collections.abc import Sequence
from contextlib import aclosing

from pydantic import Field, PositiveInt

import gateway.model as m
from gateway.backends.gateway_tools import GatewayTools
from gateway.backends.setting_types import SecretSetting, UpstreamSettings
from gateway.client import AddressPolicy, BackendOutputs, EventStream, HttpClient
from gateway.errors import BackendFailed, Interrupted, Unsupported
from gateway.json_values import JsonObject
from gateway.ports import Addresses, BackendEvent, Turn

from .messages import run_input
from .turn import AguiSessionState, AguiTurn
from .wire import decode_frame


class AguiSettings(UpstreamSettings):
    headers: dict[str, SecretSetting] = Field(default_factory=dict)
    forward: JsonObject = Field(default_factory=dict)
    max_runs: PositiveInt = 25

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets that are removed from messages of the agent."""
        return (self.key.get_secret_value(), *(value.get_secret_value() for value in self.headers.values()))

    @property
    def upstream(self) -> HttpClient:
        key = self.key.get_secret_value()
        headers = {name: value.get_secret_value() for name, value in self.headers.items()}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        return HttpClient(self.url, headers=headers, secrets=self.secrets, timeouts=self.timeouts)


class AguiBackend:
    """One URL for all sessions; each session is a thread of the agent."""

    def __init__(self, settings: AguiSettings, addresses: Addresses | None = None) -> None:
        self._settings = settings
        self._addresses: Addresses = addresses or AddressPolicy()
        self._upstream = settings.upstream

    async def close(self) -> None:
        await self._upstream.close()

    def run(self, turn: Turn) -> BackendOutputs:
        return self._events(turn, None)

    def resume(self, turn: Turn, answers: Sequence[m.Answer]) -> BackendOutputs:
        """Continue a turn that waited while the gateway was stopped; the agent's run had ended by then."""
        return self._events(turn, answers)

    async def _events(self, turn: Turn, answers: Sequence[m.Answer] | None) -> BackendOutputs:
        """Run the agent until a run leaves nothing open; `answers` are those to the asks of an earlier run."""
        if answers is None and not isinstance(turn.command, m.SendMessage):
            raise Unsupported("the agent is sent the whole conversation, which cannot be compacted from here")
        async with GatewayTools(turn, self._addresses) as tools:
            for notice in tools.notices:
                yield notice
            state = AguiTurn(turn, AguiSessionState.of(turn, self._settings.url), tools)
            if answers is not None:
                state.take_up()
            for runs_left in range(self._settings.max_runs, -1, -1):
                if answers is not None:
                    async with aclosing(state.calls.run(answers)) as events_of_calls:
                        async for event in events_of_calls:
                            yield state.ran(event)
                    if results := state.settle():
                        yield results
                if not runs_left:
                    break
                body = run_input(
                    turn, state.entries, state.settings, thread_id=state.memory.thread_id,
                    state=state.decoder.shared.state, ids=state.ids, forward=self._settings.forward,
                    resume=state.resume,
                )
                if started := state.note(state.decoder.start()):
                    yield started
                async with self._upstream.stream("POST", "", body) as stream:
                    response = RunResponse(stream, state, self._upstream)
                    while events := await response.read():
                        yield events
                if state.is_cancelled:
                    raise Interrupted("the agent's run was cancelled")
                if paused := state.pause():
                    yield paused
                if not state.decoder.pending:
                    return
                people = state.calls.people
                answers = await turn.ask(*(asked.ask for asked in people)) if people else ()
            yield state.give_up()


class RunResponse:
    """The response to one run, as canonical events."""

    def __init__(self, stream: EventStream, state: AguiTurn, upstream: HttpClient) -> None:
        self._stream, self._turn, self._upstream = stream, state, upstream
        self._failure: BackendFailed | None = None

    async def read(self) -> list[BackendEvent]:
        """All events that have arrived, at least one; an empty list once the run has an outcome."""
        while self._failure is None and self._turn.decoder.outcome is None:
            received = await self._stream.read()
            if not received:
                raise BackendFailed(f"{self._upstream.name} stopped without finishing its run")
            events: list[BackendEvent] = []
            try:
                for event in received:
                    events += self._turn.note(self._turn.decoder.feed(decode_frame(event.data)))
                    if self._turn.decoder.outcome is not None:
                        break
            except BackendFailed as error:
                self._failure = BackendFailed(self._upstream.redactor.message(error.message), details=error.details)
            if events:
                return events
        if self._failure is not None:
            raise self._failure
        return []
