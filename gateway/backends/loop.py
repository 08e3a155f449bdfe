"""A model made an agent: asked, heard, its calls carried out, and asked again, until it has nothing more to call."""

import time
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

from msgspec.structs import replace

from gateway.errors import BackendFailed, GatewayError, Interrupted, Invalid
from gateway.model import (
    AgentCard,
    AgentTool,
    Answer,
    BlockDelta,
    BlockKind,
    Compact,
    Permission,
    Role,
    SendMessage,
    SessionCompacted,
    StopReason,
    TextPart,
    ToolCall,
    ToolOrigin,
)
from gateway.ports import Clock, Said, Turn
from gateway.speech import Speech, Tellings
from gateway.upstream import Upstream

from .loop_mcp import McpServers
from .loop_mcp_wire import check_installed
from .loop_memory import Exchange, Heard, Memory
from .loop_scribe import DiscreetScribe
from .loop_service import Asking, Reading, Service, hear_out, stop_of
from .loop_settings import BUILT_IN, ModelSettings
from .loop_tools import Toolbox
from .round import Round
from .tools import builtin, is_planning

SUMMARISE = (
    "Summarise this conversation so that it can be continued from the summary alone: what was wanted, what was found "
    "and decided, names, numbers and open ends. Answer with the summary and nothing else."
)
NOT_DONE = {
    StopReason.MAX_STEPS: "This call was not carried out: the turn has reached its limit of steps.",
    StopReason.MAX_TOKENS: "This call was not carried out: the answer was cut short.",
}
UNDONE = "This call was not carried out."


class Talk:
    """One turn of one model: what it remembers, how it speaks, and what it may use."""

    def __init__(self, turn: Turn, model: str, toolbox: Toolbox, secrets: tuple[str, ...]) -> None:
        self.turn, self.model, self.toolbox = turn, model, toolbox
        self.memory, self.scribe = Memory(turn), DiscreetScribe(turn.mint, secrets)
        self.round = Round(turn, self.scribe.pen, toolbox.tools)

    def noted(self, said: list[Said]) -> list[Said]:
        """The same, remembered."""
        for event in said:
            if type(event) is not BlockDelta:
                self.memory.note(event)  # type: ignore[arg-type]  # in the root scope events are bare
        return said

    @property
    def calls(self) -> list[ToolCall]:
        """What the last message wants to be carried out here or by the client."""
        return [call for call in self.scribe.pen.calls if call.origin is not ToolOrigin.PROVIDER]


class ModelBackend:
    """An agent that is a model behind an address, with tools of the house, of MCP servers and of its clients."""

    def __init__(
        self, card: AgentCard, settings: ModelSettings, service: Service, base: Path, *, clock: Clock = time.time,
    ) -> None:
        if settings.mcp:
            check_installed()
        own = builtin(clock)
        self.card = replace(card, model=settings.model, tools=tuple(
            AgentTool(spec=BUILT_IN[tool], permission=permission) for tool, permission in settings.tools.items()
            if permission is not Permission.DENY
        ))
        self._settings, self._service, self._secrets = settings, service, settings.secrets
        self._own = {tool: own[tool] for tool in settings.tools}
        self._mcp = McpServers(settings.mcp, base)
        further = {header: value.get_secret_value() for header, value in settings.headers.items()}
        self._upstream = Upstream(
            str(settings.url), secrets=self._secrets, patience=settings.patience,
            headers=service.headers(settings) | further,
        )

    def run(self, turn: Turn) -> Tellings:
        return self._summarise(turn) if isinstance(turn.command, Compact) else self._converse(turn, ())

    def resume(self, turn: Turn, answers: Sequence[Answer]) -> Tellings:
        """Go on where the calls of the last message waited for people."""
        return self._converse(turn, answers)

    async def close(self) -> None:
        await self._mcp.close()
        await self._upstream.close()

    # -- the loop -------------------------------------------------------------------------------------------------

    async def _converse(self, turn: Turn, answers: Sequence[Answer]) -> Tellings:
        offers, notices = await self._mcp.tools()
        for notice in notices:
            yield notice
        toolbox = Toolbox(turn, self._own, self._settings.tools, offers)
        talk = Talk(turn, self._model(turn), toolbox, self._secrets)
        if answers:
            async with aclosing(_settle(talk, answers)) as speech:
                async for said in speech:
                    yield said
        for step in range(talk.memory.steps + 1, self._settings.max_steps + 1):
            reading = self._reading(talk)
            async with aclosing(self._ask(talk, reading, talk.memory.exchanges)) as tellings:
                async for telling in tellings:
                    yield telling
            stop = stop_of(reading, is_last=step == self._settings.max_steps)
            yield talk.noted(talk.scribe.finish(stop, reading.usage))
            if stop is not StopReason.TOOL_USE:
                for said in _left_undone(talk, stop):
                    yield said
                return
            async with aclosing(_carry_out(talk)) as speech:
                async for said in speech:
                    yield said

    async def _ask(self, talk: Talk, reading: Reading, exchanges: Sequence[Exchange]) -> Tellings:
        """One request, and its answer as it comes; the end of the message is left to be said."""
        body = self._service.body(self._asking(talk, exchanges), self._settings)
        yield talk.noted(talk.scribe.begin(model=talk.model))
        async with aclosing(self._upstream.batches("POST", self._service.path, body)) as batches:
            async for events in batches:
                said, failure = list[Said](), None
                try:
                    reading.hear(events, said)
                except GatewayError as error:
                    failure = error
                if said:
                    yield talk.noted(said)
                if reading.finished:
                    break
                if failure is not None:
                    raise failure
            await hear_out(batches, reading)

    # -- what is asked --------------------------------------------------------------------------------------------

    def _reading(self, talk: Talk) -> Reading:
        return self._service.reading(talk.scribe, talk.toolbox, talk.memory.call_ids, self._upstream)

    def _asking(self, talk: Talk, exchanges: Sequence[Exchange]) -> Asking:
        settings, command = talk.turn.settings, talk.turn.command
        works = isinstance(command, SendMessage) and not is_planning(talk.turn)
        return Asking(
            model=talk.model, exchanges=exchanges, toolbox=talk.toolbox,
            system="\n\n".join(filter(None, (self._settings.system, settings.system))),
            provider_tools=self._settings.provider_tools if works else (),
            schema=command.output_schema if isinstance(command, SendMessage) else None,
        )

    def _model(self, turn: Turn) -> str:
        wanted = turn.command.model if isinstance(turn.command, SendMessage) else None
        model = wanted or turn.settings.model or self._settings.model or turn.agent.model
        if not model:
            raise Invalid("No model was chosen: name one in the session, or in the settings of the agent.")
        return model

    # -- compaction -----------------------------------------------------------------------------------------------

    async def _summarise(self, turn: Turn) -> Speech:
        """The history in the model's own words, which take its place from now on."""
        assert isinstance(turn.command, Compact)
        talk = Talk(turn, self._model(turn), Toolbox.empty(), self._secrets)
        reading = self._reading(talk)
        wanted = [*talk.memory.exchanges, Heard(Role.USER, (TextPart(text=SUMMARISE),))]
        async with aclosing(self._ask(talk, reading, wanted)) as speech:
            async for _ in speech:
                pass  # it is told as a summary, not as a message
        talk.scribe.finish()
        summary = "".join(text for kind, text in talk.scribe.pen.wholes if kind is BlockKind.TEXT).strip()
        if not summary:
            raise BackendFailed("The model gave no summary.")
        cost = reading.usage
        yield SessionCompacted(
            compaction_id=turn.mint("cmp"), summary=summary, preview=summary[:80], archived=len(turn.history),
            tokens_before=cost.input_tokens + cost.cache_read_tokens + cost.cache_write_tokens,
            tokens_after=cost.output_tokens, trigger=turn.command.trigger,
        )


async def _settle(talk: Talk, answers: Sequence[Answer]) -> Speech:
    """What the answers make of the calls that waited for them: all that have not come back, in their order."""
    calls = talk.memory.open_calls
    if len(calls) != len(answers):
        raise Interrupted("The calls that waited for an answer are not the ones that were answered.")
    async with aclosing(talk.round.settle(calls, answers)) as speech:
        async for said in speech:
            yield talk.noted([said])[0]


async def _carry_out(talk: Talk) -> Speech:
    """The calls of the last message; those that were torn are only remembered, as errors."""
    for torn in talk.scribe.torn:
        talk.memory.note_torn(torn)
    async with aclosing(talk.round.run(talk.calls)) as speech:
        async for said in speech:
            yield talk.noted([said])[0]
    for call in talk.calls:
        talk.scribe.open_calls.pop(call.call_id, None)


def _left_undone(talk: Talk, stop: StopReason) -> Iterator[Said]:
    for call in talk.calls:
        yield from talk.scribe.returned(call.call_id, NOT_DONE.get(stop, UNDONE), is_error=True)
