"""Conversations over HTTP, and the search in them; they are the sessions that every dialect has."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from aiohttp import web
from msgspec.structs import replace

import gateway.model as m
from adapters.zenflux import wire
from adapters.zenflux.bodies import FoundBody, PreloadBody, SummaryBody, spell
from adapters.zenflux.server import history, views
from adapters.zenflux.server.agents import choose_agent, default_agent
from adapters.zenflux.server.chat_service import ChatService, conversation_errors
from adapters.zenflux.server.history import StoredMessage, StoredMessages
from adapters.zenflux.wire import LOCAL_USER, ZenfluxSettings
from gateway.errors import Invalid, NotFound
from gateway.http import OWNER, Answers, Context, Row, encode_array
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import ListedSession, ListOrder
from gateway.time_slices import next_slice, one_at_a_time, sliced

SESSIONS_PER_SLICE, MAX_CONVERSATIONS = 100, 10_000
"""How many conversations are read at a time, and how many are searched."""


class ConversationRoutes:
    """The routes of conversations, one method each."""

    def __init__(self, context: Context[ZenfluxSettings]) -> None:
        self.context = context
        self.chats = ChatService(context)
        self._stored = StoredMessages()

    @Answers(views.wrapped("conversation"), query={"agent_id": str, "user_id": str, "title": str})
    async def create(self, request: web.Request) -> web.Response:
        agent = request.query.get("agent_id") or await default_agent(self.context, request[OWNER])
        chosen = await choose_agent(self.context, request[OWNER], agent)
        user_id = request.query.get("user_id") or LOCAL_USER
        title = wire.title_param(request)
        named = title if title != self.context.settings.default_title else None  # a client may name the role as we do
        view = await self.chats.converse(request[OWNER], chosen.card.name, user_id, named, chosen.settings)
        return views.reply(self.context, self._shown(view))

    @Answers(
        views.wrapped({"conversations": ["conversation"], "total": int, "limit": int, "offset": int}),
        query={"user_id": str, "limit": int, "offset": int},
    )
    async def listed(self, request: web.Request) -> web.Response:
        limit, offset = wire.page_params(request, 20, 100)
        found, total = await self._rows(request, "updated", offset, limit)
        shown = [self._shown(view) async for view in self._views(request, found)]
        body = {"conversations": shown, "total": total, "limit": limit, "offset": offset}
        return views.reply(self.context, body)

    @Answers(views.wrapped("conversation"))
    async def get(self, request: web.Request) -> web.Response:
        return views.reply(self.context, self._shown(await self._found(request)))

    @Answers(views.wrapped("conversation"), query={"title": str})
    async def rename(self, request: web.Request) -> web.Response:
        view, title = await self._found(request), wire.title_param(request)
        if title is None:
            raise Invalid("title: say what to call it", param="title")
        with conversation_errors(view.session_id):
            view = await self.context.sessions.update(request[OWNER], view.session_id, title=title)
        return views.reply(self.context, self._shown(view))

    @Answers(views.wrapped({"deleted": bool}))
    async def delete(self, request: web.Request) -> web.Response:
        with conversation_errors(request.match_info["id"]):
            await self.context.sessions.delete(request[OWNER], request.match_info["id"])
        return views.reply(self.context, {"deleted": True})

    @Answers(
        views.wrapped({"conversations": [Row("found", conversation="conversation")], "total": int}),
        query={"q": str, "limit": int, "user_id": str},
    )
    async def search(self, request: web.Request) -> web.Response:
        """Search the conversations for a plain text, in which no character has a special meaning."""
        limit, wanted = wire.whole_number_param(request, "limit", 20, 1, 50), request.query.get("q", "").strip()
        if not wanted:
            raise Invalid("q: say what to look for", param="q")
        async with one_at_a_time(request[OWNER]):
            rows, _ = await self._rows(request, "created", 0, MAX_CONVERSATIONS, wanted)
            hits = [
                (view, hit)
                async for view in self._views(request, rows)
                if (hit := await search_conversation(view, wanted)) is not None
            ]
        shown = [
            spell(self.context.table, FoundBody(conversation=self._shown(view), where=hit.where, snippet=hit.snippet))
            for view, hit in hits[:limit]
        ]
        return views.reply(self.context, {"conversations": shown, "total": len(hits)})

    # -- messages -------------------------------------------------------------------------------------------------

    @Answers(
        views.wrapped({
            "conversation_id": str, "conversation_metadata": JsonObject, "messages": ["message"], "total": int,
            "limit": int, "offset": int, "has_more": bool, "next_cursor": str | None,
        }), query={"limit": int, "offset": int, "order": {"asc", "desc"}, "before_cursor": str},
    )
    async def messages(self, request: web.Request) -> web.Response:
        """List messages, oldest or newest first; with a cursor, the last ones before the cursor, oldest first."""
        view, (limit, offset) = await self._found(request), wire.page_params(request, 50, 200)
        messages, newest = self._messages(view), wire.choice_param(request, "order", "asc", "desc") == "desc"
        before = request.query.get("before_cursor")
        total, end = len(messages), _end_before(messages, before)
        back = newest or bool(before)
        if back:
            end = max(0, end - offset)
            start = max(0, end - limit)
        else:
            start, end = min(offset, end), min(offset + limit, end)
        shown, more = messages[start:end], start > 0 if back else end < total
        cursor = shown[0].id if shown and more and back else None
        if newest and not before:
            shown.reverse()
        return views.reply(self.context, {
            "conversation_id": view.session_id, "conversation_metadata": view.shown_metadata,
            "messages": await encode_array(
                message for one in shown for message in history.message_bodies(self.context.table, view, [one])),
            "total": total, "limit": limit,
            "offset": offset, "has_more": more, "next_cursor": cursor,
        })

    @Answers(views.wrapped("preload"), query={"limit": int})
    async def preload(self, request: web.Request) -> web.Response:
        """Answer at once: there is nothing to preload."""
        view, limit = await self._found(request), wire.whole_number_param(request, "limit", 50, 1, 200)
        messages = self._messages(view)
        return views.reply(self.context, spell(self.context.table, PreloadBody(
            session_id=view.session_id, count=len(messages), oldest=messages[-limit:][0].id if messages else None,
            updated_at=view.updated_at, limit=limit,
        )))

    @Answers(views.wrapped("summary"))
    async def summary(self, request: web.Request) -> web.Response:
        view = await self._found(request)
        messages = self._messages(view)
        return views.reply(self.context, spell(self.context.table, SummaryBody(
            session_id=view.session_id, title=view.title or self.context.settings.default_title,
            count=len(messages), created_at=view.created_at, updated_at=view.updated_at,
            summary=view.compaction.summary if view.compaction else None,
            last=messages[-1].text[:200] if messages else None,
        )))

    # -- pieces ---------------------------------------------------------------------------------------------------

    async def _found(self, request: web.Request) -> m.SessionView:
        with conversation_errors(request.match_info["id"]):
            return await self.context.sessions.get(request[OWNER], request.match_info["id"])

    async def _rows(
        self, request: web.Request, order: ListOrder, offset: int, limit: int, text: str = "",
    ) -> tuple[Sequence[ListedSession], int]:
        """A page of the user's conversations that may have the text, newest first, and how many there are."""
        wanted = replace(self.chats.filter_of(request[OWNER], request.query.get("user_id")), text=text)
        return await self.context.sessions.find(request[OWNER], wanted, order=order, offset=offset, limit=limit)

    async def _views(self, request: web.Request, rows: Sequence[ListedSession]) -> AsyncIterator[m.SessionView]:
        async for some in sliced(rows, SESSIONS_PER_SLICE):
            for row in some:
                with suppress(NotFound):  # it was deleted since
                    yield await self.context.sessions.get(request[OWNER], row.session_id)

    def _messages(self, view: m.SessionView) -> list[StoredMessage]:
        return self._stored.of(view, multi_message=self.context.settings.multi_message)

    def _shown(self, view: m.SessionView) -> JsonValue:
        return views.conversation_body(self.context.table, view, self.context.settings.default_title)


def _end_before(messages: list[StoredMessage], before: str | None) -> int:
    """The index at which the messages before the cursor end."""
    if not before:
        return len(messages)
    for place in reversed(range(len(messages))):
        if messages[place].id == before:
            return place
    raise Invalid(f"before_cursor: there is no message '{before}' in this conversation", param="before_cursor")


SNIPPET_MARGIN = 40
"""How many characters are shown on either side of a match."""
CHARACTERS_PER_SLICE, ENTRY_COST = 250_000, 2000
"""How many characters are searched in one slice, and how many of them one entry counts for."""


class SearchHit(NamedTuple):
    """The place of a match, and the text around it."""

    where: str
    snippet: str


async def search_conversation(view: m.SessionView, wanted: str) -> SearchHit | None:
    folded = wanted.casefold()
    if folded in (view.title or "").casefold():
        return SearchHit("title", view.title or "")
    seen = 0
    for entry in reversed(view.entries[:]):
        if entry.scope_id == m.ROOT and entry.role in (m.Role.USER, m.Role.ASSISTANT):
            text = m.text_of(entry.content)
            if folded in text.casefold():
                return SearchHit("content", _snippet(text, wanted))
            seen += ENTRY_COST + len(text)
            if seen > CHARACTERS_PER_SLICE:
                await next_slice()
                seen = 0
    return None


def _snippet(text: str, wanted: str) -> str:
    """The text around the first match. Folding may change the length of a text, so an exact match is preferred."""
    at = text.find(wanted)
    at = at if at >= 0 else max(0, text.casefold().find(wanted.casefold()))
    start, end = max(0, at - SNIPPET_MARGIN), min(len(text), at + len(wanted) + SNIPPET_MARGIN)
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
