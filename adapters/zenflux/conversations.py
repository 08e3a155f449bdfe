"""Conversations over HTTP: the same sessions that every dialect sees."""

from typing import Any

from aiohttp import web

from gateway.errors import Invalid
from gateway.model import SessionView
from gateway.time_slices import one_at_a_time
from gateway.web import OWNER, Context, encoded, reply

from . import history, params, views
from .chat import Chats, NoAgent, spoken
from .history import Message
from .manner import LOCAL
from .search import look

PAGE, MOST = 1000, 10_000
"""How many conversations are read at a time, and how many are listed and searched."""


class Conversations:
    """One method per route."""

    def __init__(self, context: Context) -> None:
        self.house = context
        self.chats = Chats(context)

    async def create(self, request: web.Request) -> web.Response:
        agent = request.query.get("agent_id") or next(iter(self.house.agents), "")
        if agent not in self.house.agents:
            raise NoAgent(f"there is no agent '{agent}'")
        user_id = request.query.get("user_id") or LOCAL
        title = params.title(request)
        named = title if title != self.house.settings.default_title else None  # a client may say what we would
        view = await self.chats.converse(request[OWNER], agent, user_id, named)
        return self._reply(self._shown(view))

    async def listed(self, request: web.Request) -> web.Response:
        limit, offset = params.page(request, 20, 100)
        found = sorted(await self._all(request), key=lambda view: view.updated_at, reverse=True)
        shown = [self._shown(view) for view in found[offset:offset + limit]]
        return self._reply({"conversations": shown, "total": len(found), "limit": limit, "offset": offset})

    async def get(self, request: web.Request) -> web.Response:
        return self._reply(self._shown(await self._found(request)))

    async def rename(self, request: web.Request) -> web.Response:
        view, title = await self._found(request), params.title(request)
        if title is None:
            raise Invalid("title: say what to call it", param="title")
        with spoken(view.session_id):
            view = await self.house.sessions.update(request[OWNER], view.session_id, title=title)
        return self._reply(self._shown(view))

    async def delete(self, request: web.Request) -> web.Response:
        with spoken(request.match_info["id"]):
            await self.house.sessions.delete(request[OWNER], request.match_info["id"])
        return self._reply({"deleted": True})

    async def search(self, request: web.Request) -> web.Response:
        """Plain text: characters that mean something elsewhere are just characters here."""
        limit, wanted = params.whole(request, "limit", 20, 1, 50), request.query.get("q", "").strip()
        if not wanted:
            raise Invalid("q: say what to look for", param="q")
        async with one_at_a_time(request[OWNER]):
            hits = [(view, hit) for view in await self._all(request) if (hit := await look(view, wanted)) is not None]
        shown = [
            self.house.table.object("found", conversation=self._shown(view), where=hit.where, snippet=hit.snippet)
            for view, hit in hits[:limit]
        ]
        return self._reply({"conversations": shown, "total": len(hits)})

    # -- what was said --------------------------------------------------------------------------------------------

    async def messages(self, request: web.Request) -> web.Response:
        """The oldest first, or the newest first; before a cursor, the last ones in order of time."""
        view, (limit, offset) = await self._found(request), params.page(request, 50, 200)
        said, newest = self._messages(view), params.one_of(request, "order", "asc", "desc") == "desc"
        before = request.query.get("before_cursor")
        total, end = len(said), _end(said, before)
        back = newest or bool(before)
        if back:
            end = max(0, end - offset)
            start = max(0, end - limit)
        else:
            start, end = min(offset, end), min(offset + limit, end)
        shown, more = said[start:end], start > 0 if back else end < total
        cursor = shown[0].id if shown and more and back else None
        if newest and not before:
            shown.reverse()
        return self._reply({
            "conversation_id": view.session_id, "conversation_metadata": view.shown_metadata,
            "messages": await encoded(
                message for one in shown for message in history.spelled(self.house.table, view, [one])),
            "total": total, "limit": limit,
            "offset": offset, "has_more": more, "next_cursor": cursor,
        })

    async def preload(self, request: web.Request) -> web.Response:
        """There is nothing to load: what the gateway knows it has at hand."""
        view, limit = await self._found(request), params.whole(request, "limit", 50, 1, 200)
        said = self._messages(view)
        return self._reply(self.house.table.object(
            "preload", session_id=view.session_id, count=len(said), oldest=said[-limit:][0].id if said else None,
            updated_at=view.updated_at, limit=limit,
        ))

    async def summary(self, request: web.Request) -> web.Response:
        view = await self._found(request)
        said = self._messages(view)
        return self._reply(self.house.table.object(
            "summary", session_id=view.session_id, title=view.title or self.house.settings.default_title,
            count=len(said), created_at=view.created_at, updated_at=view.updated_at,
            summary=view.compaction.summary if view.compaction else None,
            last=said[-1].text[:200] if said else None,
        ))

    # -- pieces ---------------------------------------------------------------------------------------------------

    async def _found(self, request: web.Request) -> SessionView:
        with spoken(request.match_info["id"]):
            return await self.house.sessions.get(request[OWNER], request.match_info["id"])

    async def _all(self, request: web.Request) -> list[SessionView]:
        """The user's conversations, newest first; of very many the newest."""
        found, before = list[SessionView](), None
        while True:
            views_, before = await self.house.sessions.list(request[OWNER], before=before, limit=PAGE)
            found += [view for view in views_ if self.chats.is_of(view, request.query.get("user_id"))]
            if before is None or len(found) >= MOST:
                return found

    def _messages(self, view: SessionView) -> list[Message]:
        return history.messages_of(view, multi_message=self.house.settings.multi_message)

    def _shown(self, view: SessionView) -> Any:
        return views.conversation(self.house.table, view, self.house.settings.default_title)

    def _reply(self, data: object) -> web.Response:
        return reply(views.wrapped(self.house.table, data))


def _end(said: list[Message], before: str | None) -> int:
    """Where the messages before a cursor end."""
    if not before:
        return len(said)
    for place, message in enumerate(said):
        if message.id == before:
            return place
    raise Invalid(f"before_cursor: there is no message '{before}' in this conversation", param="before_cursor")
