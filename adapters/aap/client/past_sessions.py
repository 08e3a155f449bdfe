"""Reads the sessions that an AAP server has: its list, and the history of each."""

from collections.abc import Iterable, Sequence

import gateway.model as m
from adapters.aap.bodies import HistoryBody, MessageBody, SessionBody, SessionsBody
from gateway.client import HttpClient, PastMessage, PastTurns, suppress_statuses, upstream_status
from gateway.errors import BackendFailed, GatewayError, NotFound
from gateway.ids import Mint, make_mint
from gateway.json_values import JsonValue
from gateway.ports import PastItem, PastSession, RemoteAddress, RemoteSession

from .readers import AAP, NO_TOOLS_KNOWN, read_tool_spec, with_media_types

HISTORY_KINDS = ("full", "compacted")
"""The kinds of histories, the best first; a server answers 404 for a kind that it does not have."""
UNKNOWN = 404
NO_TIMES = "times and ids of messages, the model and the usage: AAP does not show them"
SETTINGS = "the chosen tools and options of the agent: they belong to the agent of that server"
COMPACTED = "messages before the last compaction: the server has no full history"
NO_HISTORY = "all messages: the server has no history"
OPEN_CALLS = "calls that were left open: they get a result here, that their turn has ended"
HINTS = "the hints how to answer a question whether to go on, or what to go back to"
STRAY_RESULTS = "results of calls that the history does not have"


class PastSessions:
    """See `gateway.ports.PastSessions`. A key sees its own sessions; AAP has no other users."""

    def __init__(self, address: RemoteAddress, user: str = "", mint: Mint | None = None) -> None:
        self._upstream = HttpClient.at(address)
        self._mint = mint or make_mint()

    async def page(self, name: str | None) -> tuple[Sequence[RemoteSession], str | None]:
        query = None if name is None else {"after": name}
        page = AAP.read_as(SessionsBody, await self._upstream.json("GET", "/sessions", query=query), "the sessions")
        return [RemoteSession(session_id=one.session_id, agent=one.agent.name) for one in page.sessions], page.next

    async def read(self, session_id: str) -> PastSession:
        place = f"/sessions/{session_id}"
        session = AAP.read_as(SessionBody, await self._get(place), "the session")
        messages: Sequence[MessageBody] = ()
        unseen = [NO_TIMES]
        for kind in HISTORY_KINDS:
            with suppress_statuses((UNKNOWN,)):
                messages = _messages(await self._upstream.json("GET", f"{place}/history", query={"type": kind}))
                unseen += [COMPACTED] if kind != HISTORY_KINDS[0] else []
                break
        else:
            unseen.append(NO_HISTORY)
        if session.agent.tools or session.agent.options:
            unseen.append(SETTINGS)
        history = HistoryReader([tool.name for tool in session.tools or ()], self._mint)
        history.read(messages)
        return PastSession(
            session=RemoteSession(session_id=session_id, agent=session.agent.name),
            settings=m.Settings(client_tools=tuple(map(read_tool_spec, session.tools or ()))),
            history=history.seeds, turns=history.turns.end(), unseen=(*unseen, *history.unseen),
        )

    async def close(self) -> None:
        await self._upstream.close()

    async def _get(self, path: str) -> JsonValue:
        try:
            return await self._upstream.json("GET", path)
        except GatewayError as error:
            if upstream_status(error) == UNKNOWN:
                raise NotFound(error.message) from None
            raise


def _messages(body: JsonValue) -> Sequence[MessageBody]:
    history = AAP.read_as(HistoryBody, body, "the history").history
    messages = history.full if history.full is not None else history.compacted
    if messages is None:
        raise BackendFailed("the server sent a history without messages")
    return messages


class HistoryReader:
    """Makes turns of a history; what is there before the first message of a person is the beginning of the session."""

    def __init__(self, client_tools: Iterable[str], mint: Mint) -> None:
        self.seeds: list[m.SeedMessage] = []
        self.turns = PastTurns()
        self.unseen: list[str] = []
        self._client_tools, self._mint = frozenset(client_tools), mint
        self._has_begun = False

    def read(self, messages: Iterable[MessageBody]) -> None:
        for message in messages:
            self._take(message)
        self._note(OPEN_CALLS, bool(self.turns.open_calls))

    def _take(self, message: MessageBody) -> None:
        content = with_media_types(message.content or "")
        if message.role == m.Role.USER:
            self._has_begun = True
            self._note(OPEN_CALLS, bool(self.turns.open_calls))
            self.turns.begin()
            self.turns.add([PastItem(m.SendMessage(content=content))])
        elif not self._has_begun or message.role == m.Role.SYSTEM:
            self.seeds.append(m.SeedMessage(role=m.Role(message.role), content=content, call_id=message.call_id))
        elif message.role == m.Role.ASSISTANT:
            spoken = PastMessage(content=self._with_origins(content))
            self._note(HINTS, any(map(NO_TOOLS_KNOWN.is_ask, spoken.calls)))
            self.turns.add_message(spoken, self._mint)
        else:
            self._note(STRAY_RESULTS, not self.turns.add_result(message.call_id or "", content, None))

    def _note(self, loss: str, is_met: bool) -> None:
        if is_met and loss not in self.unseen:
            self.unseen.append(loss)

    def _with_origins(self, content: m.Content) -> m.Content:
        """The content, with the calls of the tools that the client has."""
        if isinstance(content, str):
            return content
        return tuple(
            m.ToolUsePart(call=m.ToolCall(
                call_id=part.call.call_id, name=part.call.name, input=part.call.input, origin=m.ToolOrigin.CLIENT,
            )) if isinstance(part, m.ToolUsePart) and part.call.name in self._client_tools else part
            for part in content
        )
