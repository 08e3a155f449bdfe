"""The turn as a user's function sees it, with shortcuts for questions and permissions."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

import gateway.model as m
from gateway.errors import NotFound
from gateway.json_values import JsonObject
from gateway.ports import Turn

from ..gateway_tools import GatewayTools
from ..system_text import with_memories, with_skills
from ..tool_executor import CALL_CANCELLED, ToolExecutor
from ..tools import QUESTION_TOOL, Tool, ToolCallResult, enabled_tools, question_input
from .reply_writer import ReplyWriter
from .worker import MAX_AHEAD, AskRequest, Pipe


class TurnView:
    """The fields of a turn, for tasks and threads alike."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    @property
    def session_id(self) -> str:
        return self._turn.session_id

    @property
    def turn_id(self) -> str:
        return self._turn.turn_id

    @property
    def agent(self) -> m.AgentCard:
        return self._turn.agent

    @property
    def settings(self) -> m.Settings:
        """The settings; the system text names the skills of the session, and has the memories that fit the message."""
        settings = self._turn.settings
        if not settings.skills and not self._turn.memories:
            return settings
        return replace(settings, system=with_memories(with_skills(settings.system, settings), self._turn.memories))

    @property
    def metadata(self) -> Mapping[str, Any]:
        return self._turn.metadata

    @property
    def command(self) -> m.SendMessage | m.Compact:
        return self._turn.command

    @property
    def history(self) -> Sequence[m.HistoryEntry]:
        return self._turn.history

    @property
    def memories(self) -> Sequence[m.MemoryRef]:
        """The memories of the user that fit the message; none if the session does not use memories."""
        return self._turn.memories

    @property
    def asked(self) -> Sequence[m.AnyAsk]:
        return self._turn.asked

    def mint(self, prefix: str) -> str:
        return self._turn.mint(prefix)


class AgentTurn(TurnView):
    """The turn of an async function; an ask ends the message that strings have opened."""

    def __init__(self, turn: Turn, pipe: Pipe, reply: ReplyWriter, tools: GatewayTools) -> None:
        super().__init__(turn)
        self._pipe, self._reply, self._tools = pipe, reply, tools
        self._connected = asyncio.Lock()
        self._is_connected = False

    async def say(self, *items: object) -> None:
        """Emit strings or events, for functions that do not yield."""
        for item in items:
            await self._pipe.put(self._reply.take(item), MAX_AHEAD if isinstance(item, str) else 0)

    async def ask(self, *asks: m.AnyAsk, scope_id: str = m.ROOT) -> list[m.Answer]:
        """Suspend the turn until every ask is settled."""
        pause = AskRequest(asks, scope_id)
        await self._pipe.put(self._reply.close(m.StopReason.NEEDS_INPUT), MAX_AHEAD)
        await self._pipe.put(pause, MAX_AHEAD)
        return await pause.answers

    async def read_skill(self, name: str, path: str = m.SKILL_FILE) -> m.SkillFile:
        """A file of a skill of the session, SKILL.md if no other is named."""
        return await self._turn.read_skill(name, path)

    async def ask_user(
        self, question: str, options: Sequence[str] = (), *, header: str | None = None, multi_select: bool = False,
    ) -> str:
        """The answer as text: an option, several with commas, or free text; empty if nobody answers."""
        choices = tuple(m.Choice(label=option) for option in options)
        asked = m.Question(question=question, options=choices, header=header, multi_select=multi_select)
        input = question_input([asked])
        await self._pipe.put(self._reply.call(_call(QUESTION_TOOL, input, m.Permission.ALLOW, "Ask the user")))
        call = self._reply.called
        await self.say(m.ToolStatusChanged(call_id=call.call_id, status=m.ToolStatus.AWAITING_INPUT))
        ask = m.QuestionAsk(questions=(asked,), call=call)
        [answer] = await self.ask(ask)
        text = _answer_text(ask, answer)
        if text is None:
            await self.say(m.ToolStatusChanged(call_id=call.call_id, status=m.ToolStatus.CANCELLED))
        content = CALL_CANCELLED if text is None else text
        await self.say(m.ToolReturned(call_id=call.call_id, content=content, is_error=text is None))
        return text or ""

    async def permission(self, name: str, input: JsonObject | None = None, *, title: str | None = None) -> bool:
        """Whether a tool of that name may be used: the session decides, or else the person."""
        permission = enabled_tools(self).get(name, m.Permission.ASK)
        await self._pipe.put(self._reply.call(_call(name, input or {}, permission, title)))
        call = self._reply.called
        executor = ToolExecutor(self, self._reply.writer, {name: Tool(m.ToolSpec(name=name), _granted)})
        async for event in executor.run([call]):
            await self.say(event)
        return not executor.results[call.call_id].is_error

    async def tools(self) -> Sequence[m.ToolSpec]:
        """The tools that `call_tool` runs: those of the session's MCP servers, and the one that reads its skills."""
        async with self._connected:
            if not self._is_connected:
                self._is_connected = True
                await self._tools.connect()
                await self.say(*self._tools.notices)
        return self._tools.specs

    async def call_tool(self, name: str, input: JsonObject | None = None) -> ToolCallResult:
        """Run a tool of the session; a tool of an MCP server asks the person for permission first."""
        known = [tool.name for tool in await self.tools()]
        offered = self._tools.offered(name)
        if offered is None:
            raise NotFound(f"this session has no tool '{name[:64]}'; it has: {', '.join(known) or 'none'}")
        await self._pipe.put(self._reply.call(replace(offered, input=input or {})))
        call = self._reply.called
        executor = ToolExecutor(self, self._reply.writer, self._tools.tools)
        async for event in executor.run([call]):
            await self.say(event)
        result = executor.results[call.call_id]
        return ToolCallResult(content=result.content, is_error=result.is_error)


class BlockingTurn(TurnView):
    """The turn of a plain function or generator, which runs in a thread: no await is needed."""

    def __init__(self, turn: AgentTurn, pipe: Pipe) -> None:
        super().__init__(turn)
        self._agent_turn, self._pipe = turn, pipe

    def say(self, *items: object) -> None:
        self._pipe.call_from_thread(self._agent_turn.say(*items))

    def ask(self, *asks: m.AnyAsk, scope_id: str = m.ROOT) -> list[m.Answer]:
        return self._pipe.call_from_thread(self._agent_turn.ask(*asks, scope_id=scope_id))

    def read_skill(self, name: str, path: str = m.SKILL_FILE) -> m.SkillFile:
        return self._pipe.call_from_thread(self._agent_turn.read_skill(name, path))

    def ask_user(
        self, question: str, options: Sequence[str] = (), *, header: str | None = None, multi_select: bool = False,
    ) -> str:
        asking = self._agent_turn.ask_user(question, options, header=header, multi_select=multi_select)
        return self._pipe.call_from_thread(asking)

    def permission(self, name: str, input: JsonObject | None = None, *, title: str | None = None) -> bool:
        return self._pipe.call_from_thread(self._agent_turn.permission(name, input, title=title))

    def tools(self) -> Sequence[m.ToolSpec]:
        return self._pipe.call_from_thread(self._agent_turn.tools())

    def call_tool(self, name: str, input: JsonObject | None = None) -> ToolCallResult:
        return self._pipe.call_from_thread(self._agent_turn.call_tool(name, input))


def _call(name: str, input: JsonObject, permission: m.Permission, title: str | None) -> m.ToolCall:
    return m.ToolCall(call_id="", name=name, input=input, permission=permission, display_name=title)


def _answer_text(ask: m.QuestionAsk, answer: m.Answer) -> str | None:
    """The answer as text; None if nobody answered."""
    if isinstance(answer, m.AnswerQuestion):
        return m.format_answer(ask, answer)
    return m.text_of(answer.content) if isinstance(answer, m.ReturnResult) and not answer.is_error else None


async def _granted(input: JsonObject, out: object) -> ToolCallResult:
    return ToolCallResult(content="Permission granted")
