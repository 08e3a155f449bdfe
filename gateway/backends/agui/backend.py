"""The agui backend: a turn is one run of an AG-UI agent, and one more after every ask of a run."""

from collections.abc import Sequence

import gateway.model as m
from gateway.client import BackendOutputs, EventStream, redact
from gateway.errors import BackendFailed, Interrupted, Unsupported
from gateway.ports import BackendEvent, Turn

from .messages import run_input
from .settings import AguiSettings
from .turn import AguiSessionState, AguiTurn
from .wire import decode_event


class AguiBackend:
    """One URL for all sessions; each session is a thread of the agent."""

    def __init__(self, settings: AguiSettings) -> None:
        self._settings = settings
        self._upstream = settings.upstream

    async def close(self) -> None:
        await self._upstream.close()

    def run(self, turn: Turn) -> BackendOutputs:
        return self._events(turn, None)

    def resume(self, turn: Turn, answers: Sequence[m.Answer]) -> BackendOutputs:
        """Continue a turn that waited while the gateway was stopped; the agent's run had ended by then."""
        return self._events(turn, answers)

    async def _events(self, turn: Turn, answers: Sequence[m.Answer] | None) -> BackendOutputs:
        """Run the agent until a run leaves no asks; `answers` are those to the asks of an earlier run."""
        talk = AguiTurn(turn, AguiSessionState.of(turn, self._settings.url))
        if answers is not None:
            talk.take_up()
            if results := talk.settle(talk.stored_asks(), answers):
                yield results
        elif not isinstance(turn.command, m.SendMessage):
            raise Unsupported("the agent is sent the whole conversation, which cannot be compacted from here")
        for _ in range(self._settings.max_runs):
            body = run_input(
                turn, talk.entries, thread_id=talk.memory.thread_id, state=talk.decoder.shared.state, ids=talk.ids,
                forward=self._settings.forward, resume=talk.resume,
            )
            if started := talk.note(talk.decoder.start()):
                yield started
            async with self._upstream.stream("POST", "", body) as stream:
                response = RunResponse(stream, talk, self._upstream.name, self._settings.secrets)
                while events := await response.read():
                    yield events
            if ends := talk.note(talk.decoder.finish()):
                yield ends
            if talk.is_cancelled:
                raise Interrupted("the agent's run was cancelled")
            pending = talk.pending()
            if paused := talk.pause(pending):
                yield paused
            if not pending:
                return
            if results := talk.settle(pending, await turn.ask(*(ask for ask, _ in pending))):
                yield results
        yield talk.give_up()


class RunResponse:
    """The response to one run, as canonical events; the end of its last message is left to the caller."""

    def __init__(self, stream: EventStream, talk: AguiTurn, server: str, secrets: Sequence[str]) -> None:
        self._stream, self._talk, self._server, self._secrets = stream, talk, server, secrets
        self._failure: BackendFailed | None = None

    async def read(self) -> list[BackendEvent]:
        """All events that have arrived, at least one; an empty list once the run has an outcome."""
        while self._failure is None and self._talk.decoder.outcome is None:
            received = await self._stream.read()
            if not received:
                raise BackendFailed(f"{self._server} stopped without finishing its run")
            events: list[BackendEvent] = []
            try:
                for event in received:
                    events += self._talk.note(self._talk.decoder.feed(decode_event(event.data)))
                    if self._talk.decoder.outcome is not None:
                        break
            except BackendFailed as error:
                self._failure = BackendFailed(redact(error.message, self._secrets), details=error.details)
            if events:
                return events
        if self._failure is not None:
            raise self._failure
        return []
