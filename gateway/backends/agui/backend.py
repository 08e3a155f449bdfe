"""The agui backend: a turn here is a run there, and another one for every time that people or their tools are asked."""

from collections.abc import Sequence
from contextlib import aclosing

import gateway.model as m
from gateway.client import BackendEvents, redact
from gateway.errors import BackendFailed, Interrupted, Unsupported
from gateway.ports import BackendEvent, Turn

from .interrupts import RunResume
from .messages import open_calls, run_input
from .settings import AguiSettings
from .turn import AguiSessionState, AguiTurn
from .wire import decode_event


class AguiBackend:
    """One address for all sessions; each session is a thread there."""

    def __init__(self, settings: AguiSettings) -> None:
        self._settings = settings
        self._upstream = settings.upstream

    async def close(self) -> None:
        await self._upstream.close()

    async def run(self, turn: Turn) -> BackendEvents:
        if not isinstance(turn.command, m.SendMessage):
            raise Unsupported("the agent is sent the whole conversation, which cannot be compacted from here")
        talk = AguiTurn(turn, AguiSessionState.of(turn, self._settings.url))
        async with aclosing(self._runs(talk, RunResume())) as speech:
            async for said in speech:
                yield said

    async def resume(self, turn: Turn, answers: Sequence[m.Answer]) -> BackendEvents:
        """The turn waited here while the gateway stopped; the agent's run was over by then."""
        talk = AguiTurn(turn, AguiSessionState.of(turn, self._settings.url))
        if len(talk.memory.waiting) != len(turn.asked):
            raise Interrupted("What the agent waits for was forgotten while the server was stopped.")
        pending = list(zip(turn.asked, talk.memory.waiting, strict=True))
        for call in open_calls(turn.history):
            talk.decoder.take_up(call)
        resumed = talk.settle(pending, answers)
        for said in talk.client_results:
            yield said
        async with aclosing(self._runs(talk, resumed)) as speech:
            async for said in speech:
                yield said

    async def _runs(self, talk: AguiTurn, resume: RunResume) -> BackendEvents:
        for _ in range(self._settings.max_runs):
            async with aclosing(self._run(talk, resume)) as speech:
                async for said in speech:
                    yield said
            pending = talk.pending()
            for said in talk.pause(pending):
                yield said
            if not pending:
                return
            answers = await talk.turn.ask(*(ask for ask, _ in pending))
            resume = talk.settle(pending, answers)
            for said in talk.client_results:
                yield said
        for said in talk.give_up():
            yield said

    async def _run(self, talk: AguiTurn, resume: RunResume) -> BackendEvents:
        """One run, from its request to the end of its last message."""
        hearing, url = talk.decoder, self._upstream.name
        body = run_input(
            talk.turn, talk.entries, thread_id=talk.memory.thread_id, state=hearing.shared.state, ids=talk.ids,
            forward=self._settings.forward, resume=resume,
        )
        for said in talk.note(hearing.start()):
            yield said
        async with aclosing(self._upstream.events("POST", "", body)) as events:
            async for event in events:
                for said in talk.note(self._heard(talk, event.data)):
                    yield said
                if hearing.outcome is not None:
                    break
        if hearing.outcome is None:
            raise BackendFailed(f"{url} stopped without finishing its run")
        for said in talk.note(hearing.finish()):
            yield said
        if hearing.outcome.type == "cancelled":
            raise Interrupted("the agent's run was cancelled")

    def _heard(self, talk: AguiTurn, data: str) -> list[BackendEvent]:
        try:
            return talk.decoder.feed(decode_event(data))
        except BackendFailed as error:
            raise BackendFailed(redact(error.message, self._settings.secrets), details=error.details) from None
