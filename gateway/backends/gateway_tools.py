"""Tools that the gateway runs for an agent which can call tools of its clients: of MCP servers, and to read skills."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing

from msgspec.structs import replace

import gateway.model as m
from gateway.client import BackendEvents, EventWriter
from gateway.json_values import JsonObject
from gateway.ports import Addresses, DecodedItem, RemoteAsk, ScopedEvent, SessionPlaces, Turn

from .mcp import McpToolServers
from .system_text import READ_SKILL, skill_tools, with_skills
from .tool_executor import ToolExecutor, ask_about, needs_answer
from .toolbox import Toolbox
from .tools import Tool, is_planning

CALLS_CLIENT_TOOLS = SessionPlaces(client_tools=True)
SERVER_FIELDS = ("type", "name", "url")
"""The fields of an MCP server that are sent to a remote agent."""


class GatewayTools:
    """The tools of one turn, as an async context manager whose exit closes the connections to MCP servers."""

    def __init__(
        self, turn: Turn, addresses: Addresses, find_places: Callable[[], Awaitable[SessionPlaces]] | None = None,
    ) -> None:
        """`find_places` says what the agent has a place for; without it, the agent can call tools of its clients."""
        self.specs: tuple[m.ToolSpec, ...] = ()
        """The tools that the agent is offered beside those of the client."""
        self.tools: dict[str, Tool] = {}
        self.notices: tuple[m.NoticePosted, ...] = ()
        """Which MCP servers cannot be used."""
        self._turn, self._addresses, self._find_places = turn, addresses, find_places
        self._calls: dict[str, m.ToolCall] = {}
        self._passed_on: Sequence[JsonObject] = ()
        self._servers: McpToolServers | None = None

    async def __aenter__(self) -> "GatewayTools":
        settings = self._turn.settings
        if settings.mcp_servers or settings.skills:
            await self.connect()
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._servers is not None:
            await self.close()

    async def close(self) -> None:
        if self._servers is not None:
            await self._servers.close()

    async def connect(self) -> None:
        """Connect to the MCP servers, and find out which tools there are; `close` disconnects."""
        settings = self._turn.settings
        places = await self._find_places() if self._find_places is not None else CALLS_CLIENT_TOOLS
        is_offered = places.client_tools and not is_planning(self._turn)
        self._passed_on = [one for one in settings.mcp_servers if places.mcp_servers and _is_plain(one, settings)]
        used = tuple(one for one in settings.mcp_servers if is_offered and one not in self._passed_on)
        self._servers = McpToolServers.of_session(replace(settings, mcp_servers=used), self._addresses)
        if is_offered:
            await self._list()

    async def _list(self) -> None:
        assert self._servers is not None, "it was made before"
        found, notices = await self._servers.tools()
        toolbox = Toolbox(self._turn, {}, {}, found, skill_tools(self._turn), are_prefixed=True)
        calls = {spec.name: toolbox.call(spec.name, "") for spec in toolbox.specs}
        self._calls = {name: replace(call, name=name) for name, call in calls.items()
                       if call.origin is not m.ToolOrigin.CLIENT}
        self.tools = {name: toolbox.tools[calls[name].name] for name in self._calls}
        self.specs = tuple(spec for spec in toolbox.specs if spec.name in self._calls)
        self.notices = tuple(notices)

    def offered(self, name: str) -> m.ToolCall | None:
        """A call of the tool of that name, to be filled in."""
        return self._calls.get(name)

    def added_to(self, settings: m.Settings) -> m.Settings:
        """The settings for the agent: with these tools among those of the client, and without what they stand for.

        The system text names the skills if the agent can read them. The agent gets no token of an MCP server.
        """
        if self._servers is None:
            return settings
        can_read = READ_SKILL.name in self.tools
        return replace(
            settings, system=with_skills(settings.system, settings) if can_read else settings.system,
            client_tools=(*settings.client_tools, *self.specs), mcp_headers={},
            mcp_servers=tuple({name: one[name] for name in SERVER_FIELDS if name in one} for one in self._passed_on),
        )

    def shown(self, items: Sequence[DecodedItem]) -> Sequence[DecodedItem]:
        """The items of the agent; its calls of these tools are not calls of the client's tools."""
        return [self._shown(item) for item in items] if self._calls else items

    def _shown(self, item: DecodedItem) -> DecodedItem:
        match item:
            case ScopedEvent(scope_id=scope_id, event=m.BlockStarted() | m.BlockEnded() as event):
                return ScopedEvent(scope_id, self._shown_block(event))
            case m.BlockStarted() | m.BlockEnded():
                return self._shown_block(item)
            case RemoteAsk(ask=m.ClientToolAsk(call=call)):
                return replace(item, ask=m.ClientToolAsk(call=self._own(call)))
        return item

    def _shown_block(self, event: m.BlockStarted | m.BlockEnded) -> m.BlockStarted | m.BlockEnded:
        return event if event.call is None else replace(event, call=self._own(event.call))

    def _own(self, call: m.ToolCall) -> m.ToolCall:
        known = self._calls.get(call.name) if call.origin is m.ToolOrigin.CLIENT else None
        return replace(known, call_id=call.call_id, input=call.input) if known is not None else call

    def runs(self, call: m.ToolCall) -> bool:
        """Whether the call, as it is in the log, is one that the gateway runs."""
        known = self._calls.get(call.name)
        return known is not None and (call.origin, call.server) == (known.origin, known.server)


class OwnCalls:
    """What an agent waits for: calls that the gateway runs itself, and asks for people and clients."""

    def __init__(self, turn: Turn, tools: GatewayTools, asked: Iterable[RemoteAsk]) -> None:
        self._turn, self._tools = turn, tools
        self._asked = [(one, _own_call(tools, one.ask)) for one in asked]
        self.answered: list[tuple[RemoteAsk, m.Answer]] = []
        """After the run, what the agent is answered: the results of the calls, and the answers of people."""
        self.of_people: list[tuple[RemoteAsk, m.Answer]] = []
        """After the run, those of them that people and clients have answered."""

    @classmethod
    def resumed(cls, turn: Turn, tools: GatewayTools, people: Sequence[RemoteAsk]) -> "OwnCalls":
        """Those of a turn that waited for people while the gateway was stopped."""
        asked = [replace(one, ask=m.ClientToolAsk(call=one.ask.call))
                 if isinstance(one.ask, m.PermissionAsk) and tools.runs(one.ask.call) else one for one in people]
        known = {call.call_id for one in people if (call := m.call_of(one.ask)) is not None}
        asked += [RemoteAsk(ask=m.ClientToolAsk(call=call), ref=call.call_id)
                  for call in open_calls(turn.history) if call.call_id not in known and tools.runs(call)]
        return cls(turn, tools, asked)

    def __bool__(self) -> bool:
        return bool(self._asked)

    @property
    def people(self) -> list[RemoteAsk]:
        """What must be asked, in the order of the answers: a call of the gateway may need permission."""
        return [one if call is None else replace(one, ask=ask_about(call))
                for one, call in self._asked if call is None or needs_answer(call, self._turn)]

    async def run(self, answers: Sequence[m.Answer]) -> BackendEvents:
        """Run the calls that need no permission and those that got it; the answers are those to `people`."""
        given = iter(answers)
        settled = [(one, call, next(given) if call is None or needs_answer(call, self._turn) else GRANTED)
                   for one, call in self._asked]
        results: dict[str, m.ToolReturned] = {}
        for scope_id in dict.fromkeys(one.scope_id for one, call, _ in settled if call is not None):
            own = [(call, answer) for one, call, answer in settled if call is not None and one.scope_id == scope_id]
            executor = ToolExecutor(self._turn, EventWriter(self._turn, scope_id), self._tools.tools)
            async with aclosing(executor.resume([call for call, _ in own], [answer for _, answer in own])) as events:
                async for event in events:
                    yield event
            results |= executor.results
        self.of_people = [(one, answer) for one, call, answer in settled if call is None]
        self.answered = [(one, answer if call is None else _result(results[call.call_id]))
                         for one, call, answer in settled]


GRANTED = m.DecidePermission(request_id="", granted=True)


def _is_plain(server: JsonObject, settings: m.Settings) -> bool:
    """Whether the server needs no token, and all of its tools may be used, so that any agent may connect to it."""
    url = server.get("url")
    return "headers" not in server and "tools" not in server and not settings.mcp_headers_of(str(url))


def _result(returned: m.ToolReturned) -> m.ReturnResult:
    return m.ReturnResult(request_id="", content=returned.content, is_error=returned.is_error)


def _own_call(tools: GatewayTools, ask: m.AnyAsk) -> m.ToolCall | None:
    """The call if the gateway runs it: the agent waits for its result as it does for a tool of its client."""
    call = ask.call if isinstance(ask, m.ClientToolAsk) else None
    return call if call is not None and tools.runs(call) else None


def open_calls(entries: Iterable[m.HistoryEntry]) -> list[m.ToolCall]:
    """The calls of the conversation without a result."""
    made: dict[str, m.ToolCall] = {}
    for entry in entries:
        if entry.role is m.Role.TOOL:
            made.pop(entry.call_id or "", None)
        made |= {part.call.call_id: part.call for part in m.parts_of(entry.content) if isinstance(part, m.ToolUsePart)}
    return list(made.values())
