"""A model made an agent: asked, heard, its calls carried out, and asked again, until it has nothing more to call."""

import time
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

from msgspec.structs import replace

import gateway.model as m
from gateway.backends.tool_executor import ToolExecutor
from gateway.backends.tools import builtin_tools, is_planning
from gateway.client import BackendEvents, BackendOutputs, HttpClient, RedactingAssembler
from gateway.errors import BackendFailed, GatewayError, Interrupted, Invalid
from gateway.ports import BackendEvent, Clock, Turn

from .conversation import Conversation, ConversationMessage, InputMessage
from .mcp_client import check_installed
from .mcp_servers import McpToolServers
from .service import ModelRequest, ModelService, ResponseDecoder, read_trailer, stop_reason_of
from .settings import BUILTIN_SPECS, LlmSettings
from .toolbox import LlmToolbox

SUMMARY_PROMPT = (
    "Summarise this conversation so that it can be continued from the summary alone: what was wanted, what was found "
    "and decided, names, numbers and open ends. Answer with the summary and nothing else."
)
SKIPPED_CALL_TEXTS = {
    m.StopReason.MAX_STEPS: "This call was not carried out: the turn has reached its limit of steps.",
    m.StopReason.MAX_TOKENS: "This call was not carried out: the answer was cut short.",
}
SKIPPED_CALL_TEXT = "This call was not carried out."


class LlmTurn:
    """One turn of one model: what it remembers, how it speaks, and what it may use."""

    def __init__(self, turn: Turn, model: str, toolbox: LlmToolbox, secrets: tuple[str, ...]) -> None:
        self.turn, self.model, self.toolbox = turn, model, toolbox
        self.conversation, self.assembler = Conversation(turn), RedactingAssembler(turn.mint, secrets)
        self.executor = ToolExecutor(turn, self.assembler.writer, toolbox.tools)

    def remember(self, said: list[BackendEvent]) -> list[BackendEvent]:
        """The same, remembered."""
        for event in said:
            if type(event) is not m.BlockDelta:
                self.conversation.note(event)  # type: ignore[arg-type]  # in the root scope events are bare
        return said

    @property
    def calls(self) -> list[m.ToolCall]:
        """What the last message wants to be carried out here or by the client."""
        return [call for call in self.assembler.writer.calls if call.origin is not m.ToolOrigin.PROVIDER]


class LlmBackend:
    """An agent that is a model behind an address, with tools of the house, of MCP servers and of its clients."""

    def __init__(
        self, card: m.AgentCard, settings: LlmSettings, service: ModelService, base: Path, *, clock: Clock = time.time,
    ) -> None:
        if settings.mcp:
            check_installed()
        own = builtin_tools(clock)
        self.card = replace(card, model=settings.model, tools=tuple(
            m.AgentTool(spec=BUILTIN_SPECS[tool], permission=permission) for tool, permission in settings.tools.items()
            if permission is not m.Permission.DENY
        ))
        self._settings, self._service, self._secrets = settings, service, settings.secrets
        self._own = {tool: own[tool] for tool in settings.tools}
        self._mcp = McpToolServers(settings.mcp, base)
        further = {header: value.get_secret_value() for header, value in settings.headers.items()}
        self._upstream = HttpClient(
            str(settings.url), secrets=self._secrets, timeouts=settings.patience,
            headers=service.headers(settings) | further,
        )

    def run(self, turn: Turn) -> BackendOutputs:
        return self._summarise(turn) if isinstance(turn.command, m.Compact) else self._converse(turn, ())

    def resume(self, turn: Turn, answers: Sequence[m.Answer]) -> BackendOutputs:
        """Go on where the calls of the last message waited for people."""
        return self._converse(turn, answers)

    async def close(self) -> None:
        await self._mcp.close()
        await self._upstream.close()

    # -- the loop -------------------------------------------------------------------------------------------------

    async def _converse(self, turn: Turn, answers: Sequence[m.Answer]) -> BackendOutputs:
        offers, notices = await self._mcp.tools()
        for notice in notices:
            yield notice
        toolbox = LlmToolbox(turn, self._own, self._settings.tools, offers)
        talk = LlmTurn(turn, self._model(turn), toolbox, self._secrets)
        if answers:
            async with aclosing(_apply_answers(talk, answers)) as speech:
                async for said in speech:
                    yield said
        for step in range(talk.conversation.steps + 1, self._settings.max_steps + 1):
            reading = self._reading(talk)
            async with aclosing(self._ask(talk, reading, talk.conversation.messages)) as tellings:
                async for telling in tellings:
                    yield telling
            stop = stop_reason_of(reading, is_last=step == self._settings.max_steps)
            yield talk.remember(talk.assembler.finish(stop, reading.usage))
            if stop is not m.StopReason.TOOL_USE:
                for said in _skip_calls(talk, stop):
                    yield said
                return
            async with aclosing(_run_calls(talk)) as speech:
                async for said in speech:
                    yield said

    async def _ask(
        self, talk: LlmTurn, reading: ResponseDecoder, exchanges: Sequence[ConversationMessage]
    ) -> BackendOutputs:
        """One request, and its answer as it comes; the end of the message is left to be said."""
        body = self._service.request_body(self._asking(talk, exchanges), self._settings)
        yield talk.remember(talk.assembler.begin(model=talk.model))
        async with aclosing(self._upstream.event_batches("POST", self._service.path, body)) as batches:
            async for events in batches:
                said, failure = list[BackendEvent](), None
                try:
                    reading.feed(events, said)
                except GatewayError as error:
                    failure = error
                if said:
                    yield talk.remember(said)
                if reading.is_complete:
                    break
                if failure is not None:
                    raise failure
            await read_trailer(batches, reading)

    # -- what is asked --------------------------------------------------------------------------------------------

    def _reading(self, talk: LlmTurn) -> ResponseDecoder:
        return self._service.decoder(talk.assembler, talk.toolbox, talk.conversation.call_ids, self._upstream)

    def _asking(self, talk: LlmTurn, exchanges: Sequence[ConversationMessage]) -> ModelRequest:
        settings, command = talk.turn.settings, talk.turn.command
        works = isinstance(command, m.SendMessage) and not is_planning(talk.turn)
        return ModelRequest(
            model=talk.model, exchanges=exchanges, toolbox=talk.toolbox,
            system="\n\n".join(filter(None, (self._settings.system, settings.system))),
            provider_tools=self._settings.provider_tools if works else (),
            schema=command.output_schema if isinstance(command, m.SendMessage) else None,
        )

    def _model(self, turn: Turn) -> str:
        wanted = turn.command.model if isinstance(turn.command, m.SendMessage) else None
        model = wanted or turn.settings.model or self._settings.model or turn.agent.model
        if not model:
            raise Invalid("No model was chosen: name one in the session, or in the settings of the agent.")
        return model

    # -- compaction -----------------------------------------------------------------------------------------------

    async def _summarise(self, turn: Turn) -> BackendEvents:
        """The history in the model's own words, which take its place from now on."""
        assert isinstance(turn.command, m.Compact)
        talk = LlmTurn(turn, self._model(turn), LlmToolbox.empty(), self._secrets)
        reading = self._reading(talk)
        wanted = [*talk.conversation.messages, InputMessage(m.Role.USER, (m.TextPart(text=SUMMARY_PROMPT),))]
        async with aclosing(self._ask(talk, reading, wanted)) as speech:
            async for _ in speech:
                pass  # it is told as a summary, not as a message
        talk.assembler.finish()
        summary = "".join(text for kind, text in talk.assembler.writer.texts if kind is m.BlockKind.TEXT).strip()
        if not summary:
            raise BackendFailed("The model gave no summary.")
        cost = reading.usage
        yield m.SessionCompacted(
            compaction_id=turn.mint("cmp"), summary=summary, preview=summary[:80], archived=len(turn.history),
            tokens_before=cost.input_tokens + cost.cache_read_tokens + cost.cache_write_tokens,
            tokens_after=cost.output_tokens, trigger=turn.command.trigger,
        )


async def _apply_answers(talk: LlmTurn, answers: Sequence[m.Answer]) -> BackendEvents:
    """What the answers make of the calls that waited for them: all that have not come back, in their order."""
    calls = talk.conversation.open_calls
    if len(calls) != len(answers):
        raise Interrupted("The answers do not match the open calls.")
    async with aclosing(talk.executor.resume(calls, answers)) as speech:
        async for said in speech:
            yield talk.remember([said])[0]


async def _run_calls(talk: LlmTurn) -> BackendEvents:
    """The calls of the last message; those that were torn are only remembered, as errors."""
    for torn in talk.assembler.broken_calls:
        talk.conversation.note_torn(torn)
    async with aclosing(talk.executor.run(talk.calls)) as speech:
        async for said in speech:
            yield talk.remember([said])[0]
    for call in talk.calls:
        talk.assembler.open_calls.pop(call.call_id, None)


def _skip_calls(talk: LlmTurn, stop: m.StopReason) -> Iterator[BackendEvent]:
    for call in talk.calls:
        yield from talk.assembler.returned(call.call_id, SKIPPED_CALL_TEXTS.get(stop, SKIPPED_CALL_TEXT), is_error=True)
