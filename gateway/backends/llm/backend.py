"""The model as an agent: send a request, execute the calls of the response, repeat until there are no calls."""

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

import gateway.model as m
from gateway.backends.kinds import FeatureSupport
from gateway.backends.mcp import McpToolServers, check_installed
from gateway.backends.system_text import READ_SKILL, skill_tools, with_memories, with_skills
from gateway.backends.tool_executor import ToolExecutor
from gateway.backends.toolbox import Toolbox
from gateway.backends.tools import OutputSink, builtin_tools, is_planning
from gateway.client import (
    AddressPolicy,
    BackendEvents,
    BackendOutputs,
    HttpClient,
    SecretFilter,
    StreamAssembler,
    long_secrets,
)
from gateway.errors import BackendFailed, Interrupted, Invalid
from gateway.json_values import JsonObject
from gateway.ports import Addresses, BackendEvent, Clock, ServerTool, ToolOutcome, Turn

from .conversation import Conversation, ConversationMessage, InputMessage
from .service import ModelRequest, ModelResponse, ModelService, stop_reason_of
from .settings import BUILTIN_SPECS, LlmSettings

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
    """The state of one turn: the conversation, the writer of its events, and the tools that the model may use."""

    def __init__(self, turn: Turn, model: str, toolbox: Toolbox, secrets: tuple[str, ...]) -> None:
        self.turn, self.model, self.toolbox = turn, model, toolbox
        self.conversation = Conversation(turn)
        self.assembler = StreamAssembler(turn.mint, secret_filter=SecretFilter(secrets) if secrets else None)
        self.executor = ToolExecutor(turn, self.assembler.writer, toolbox.tools)

    def remember(self, events: list[BackendEvent]) -> list[BackendEvent]:
        """Add the events to the conversation, and return them."""
        for event in events:
            if type(event) is not m.BlockDelta:
                self.conversation.note(event)  # type: ignore[arg-type]  # in the root scope events are bare
        return events

    @property
    def calls(self) -> list[m.ToolCall]:
        """The calls of the last message that are executed here or by the client."""
        return [call for call in self.assembler.writer.calls if call.origin is not m.ToolOrigin.PROVIDER]

    def open_calls(self, answers: Sequence[m.Answer]) -> list[m.ToolCall]:
        """The calls that the answers are for, in the same order."""
        calls = self.conversation.open_calls
        if len(calls) != len(answers):
            raise Interrupted("The answers do not match the open calls.")
        return calls

    def note_broken_calls(self) -> None:
        """Add calls with invalid JSON to the conversation, each with an error as its result."""
        for call in self.assembler.broken_calls:
            self.conversation.note_torn(call)

    def forget_calls(self) -> None:
        """The calls of the last message have their results."""
        for call in self.calls:
            self.assembler.open_calls.pop(call.call_id, None)

    def skip_calls(self, stop: m.StopReason) -> Iterator[BackendEvent]:
        """An error for every call of a message after which the turn does not continue."""
        text = SKIPPED_CALL_TEXTS.get(stop, SKIPPED_CALL_TEXT)
        for call in self.calls:
            yield from self.assembler.returned(call.call_id, text, is_error=True)


LLM_SUPPORT = {
    "skills": FeatureSupport(m.SupportLevel.FULL),
    "mcp_servers": FeatureSupport(m.SupportLevel.FULL),
    "memories": FeatureSupport(m.SupportLevel.FULL),
    "user_settings": FeatureSupport(m.SupportLevel.PARTIAL, "the model; a model service has no options"),
}


class LlmBackend:
    """An agent that is a model behind a URL, with built-in tools, tools of MCP servers and tools of its clients."""

    def __init__(
        self, card: m.AgentCard, settings: LlmSettings, service: ModelService, base: Path, *,
        addresses: Addresses | None = None, clock: Clock = time.time,
    ) -> None:
        if settings.mcp:
            check_installed()
        own = builtin_tools(clock)
        self.card = replace(card, model=settings.model, mcp_servers=tuple(settings.mcp), tools=tuple(
            m.AgentTool(spec=BUILTIN_SPECS[tool], permission=permission) for tool, permission in settings.tools.items()
            if permission is not m.Permission.DENY
        ))
        self._settings, self._service, self._secrets = settings, service, long_secrets(settings.secrets)
        self._own = {tool: own[tool] for tool in settings.tools}
        self._mcp = McpToolServers(settings.mcp, base)
        self._addresses: Addresses = addresses or AddressPolicy()
        further = {header: value.get_secret_value() for header, value in settings.headers.items()}
        self._upstream = HttpClient(
            str(settings.url), secrets=settings.secrets, timeouts=settings.patience,
            headers=service.headers(settings) | further,
        )

    def run(self, turn: Turn) -> BackendOutputs:
        return self._summarise(turn) if isinstance(turn.command, m.Compact) else self._conversation(turn, ())

    def resume(self, turn: Turn, answers: Sequence[m.Answer]) -> BackendOutputs:
        """Continue after the answers to the open calls of the last message."""
        return self._conversation(turn, answers)

    async def close(self) -> None:
        await self._mcp.close()
        await self._upstream.close()

    # -- the operator's MCP servers outside of a turn -------------------------------------------------------------

    async def list_server_tools(self, server: str) -> Sequence[ServerTool]:
        return [one.as_server_tool for one in await self._mcp.server(server).offered()]

    async def call_server_tool(
        self, server: str, tool: str, input: JsonObject, out: OutputSink,
    ) -> ToolOutcome:
        return await self._mcp.server(server).call(tool, input, out)

    # -- the loop -------------------------------------------------------------------------------------------------

    def _conversation(self, turn: Turn, answers: Sequence[m.Answer]) -> BackendOutputs:
        if turn.settings.mcp_servers:
            return self._with_session_servers(turn, answers)
        return self._converse(turn, answers, McpToolServers({}))

    async def _with_session_servers(self, turn: Turn, answers: Sequence[m.Answer]) -> BackendOutputs:
        """The turn with connections to the MCP servers of its session, which end with the turn."""
        servers = McpToolServers.of_session(turn.settings, self._addresses)
        try:
            async with aclosing(self._converse(turn, answers, servers)) as outputs:
                async for output in outputs:
                    yield output
        finally:
            await servers.close()

    async def _converse(self, turn: Turn, answers: Sequence[m.Answer], servers: McpToolServers) -> BackendOutputs:
        offers, notices = await self._mcp.tools()
        named, further = await servers.tools()
        for notice in (*notices, *further):
            yield notice
        toolbox = Toolbox(turn, self._own, self._settings.tools, [*offers, *named], skill_tools(turn))
        state = LlmTurn(turn, self._model(turn), toolbox, self._secrets)
        if answers:
            async with aclosing(state.executor.resume(state.open_calls(answers), answers)) as events:
                async for event in events:
                    yield state.remember([event])
        for step in range(state.conversation.steps + 1, self._settings.max_steps + 1):
            async with self._request(state, state.conversation.messages) as response:
                yield state.remember(state.assembler.begin(model=state.model))
                while received := await response.read():
                    yield state.remember(received)
            stop = stop_reason_of(response.decoder, is_last=step == self._settings.max_steps)
            yield state.remember(state.assembler.finish(stop, response.decoder.usage))
            if stop is not m.StopReason.TOOL_USE:
                if skipped := list(state.skip_calls(stop)):
                    yield skipped
                return
            state.note_broken_calls()
            async with aclosing(state.executor.run(state.calls)) as events:
                async for event in events:
                    yield state.remember([event])
            state.forget_calls()

    # -- one request ----------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _request(self, state: LlmTurn, messages: Sequence[ConversationMessage]) -> AsyncIterator[ModelResponse]:
        """The response to one request, which is sent at the first read."""
        decoder = self._service.decoder(state.assembler, state.toolbox, state.conversation.call_ids, self._upstream)
        body = self._service.request_body(self._model_request(state, messages), self._settings)
        async with self._upstream.stream("POST", self._service.path, body) as stream:
            yield ModelResponse(stream, decoder)

    def _model_request(self, state: LlmTurn, messages: Sequence[ConversationMessage]) -> ModelRequest:
        settings, command = state.turn.settings, state.turn.command
        works = isinstance(command, m.SendMessage) and not is_planning(state.turn)
        return ModelRequest(
            model=state.model, exchanges=messages, toolbox=state.toolbox,
            system=with_memories(
                _system_text(self._settings.system, settings, can_read=READ_SKILL.name in state.toolbox.tools),
                state.turn.memories,
            ) or "",
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
        """Let the model write the summary that replaces the history; its message is not an event of the turn."""
        assert isinstance(turn.command, m.Compact)
        state = LlmTurn(turn, self._model(turn), Toolbox.empty(), self._secrets)
        wanted = [*state.conversation.messages, InputMessage(m.Role.USER, (m.TextPart(text=SUMMARY_PROMPT),))]
        async with self._request(state, wanted) as response:
            state.assembler.begin(model=state.model)
            while await response.read():
                pass
        state.assembler.finish()
        summary = "".join(text for kind, text in state.assembler.writer.texts if kind is m.BlockKind.TEXT).strip()
        if not summary:
            raise BackendFailed("The model gave no summary.")
        cost = response.decoder.usage
        yield m.SessionCompacted(
            compaction_id=turn.mint("cmp"), summary=summary, preview=summary[:80], archived=len(turn.history),
            tokens_before=cost.input_tokens + cost.cache_read_tokens + cost.cache_write_tokens,
            tokens_after=cost.output_tokens, trigger=turn.command.trigger,
        )


def _system_text(own: str | None, settings: m.Settings, *, can_read: bool) -> str:
    """The texts of the operator and of the session; the names of the skills, if the model can read skills."""
    text = "\n\n".join(filter(None, (own, settings.system)))
    return (with_skills(text, settings) or "") if can_read else text
