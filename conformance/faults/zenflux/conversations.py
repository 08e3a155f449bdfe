"""Conversations and confirmations of the ZenFlux reference server."""

from typing import Any

from aiohttp import web

from conformance.faults.zenflux.state import Body, Conversation, Refusal
from conformance.faults.zenflux.streams import Streams

LARGEST = {"messages": 200, "conversations": 100, "search": 50}
USUAL = {"messages": 50, "conversations": 20, "search": 20}


class Conversations(Streams):
    """Everything below /conversations and /human-confirmation."""

    def room_routes(self) -> list[web.RouteDef]:
        place = "/conversations"
        return [
            web.post(place, self.post_conversation),
            web.get(place, self.get_conversations),
            web.get(f"{place}/search", self.search),
            web.get(f"{place}/{{id}}", self.get_conversation),
            web.put(f"{place}/{{id}}", self.put_conversation),
            web.delete(f"{place}/{{id}}", self.delete_conversation),
            web.get(f"{place}/{{id}}/messages", self.get_messages),
            web.post(f"{place}/{{id}}/preload", self.preload),
            web.get(f"{place}/{{id}}/summary", self.summary),
            web.get("/human-confirmation/pending", self.get_pending),
            web.post("/human-confirmation/{id}", self.post_confirmation),
            web.get("/human-confirmation/{id}", self.get_confirmation),
            web.delete("/human-confirmation/{id}", self.delete_confirmation),
        ]

    def limit(self, request: web.Request, kind: str) -> int:
        given = request.query.get("limit", str(USUAL[kind]))
        if not given.isdigit() or not 1 <= int(given) <= LARGEST[kind]:
            raise Refusal(400, "VALIDATION_ERROR", f"limit must be from 1 to {LARGEST[kind]}.")
        return int(given)

    def offset(self, request: web.Request) -> int:
        given = request.query.get("offset", "0")
        if not given.isdigit():
            raise Refusal(400, "VALIDATION_ERROR", "offset must be a number.")
        return int(given)

    def needed(self, request: web.Request, name: str) -> str:
        if name not in request.query:
            raise Refusal(400, "VALIDATION_ERROR", f"{name} is required.")
        return request.query[name]

    def shown(self, talk: Conversation) -> Body:
        about = {"id": talk.id, "title": talk.title, "user_id": talk.user_id, "metadata": talk.metadata}
        return about | {"created_at": talk.created_at, "updated_at": talk.updated_at}

    def owned(self, user: str) -> list[Conversation]:
        """A user's conversations, the one changed last first."""
        found = [talk for talk in self.conversations.values() if talk.user_id == user]
        return sorted(found, key=lambda talk: -talk.changed)

    def named(self, request: web.Request) -> Conversation:
        return self.conversation(request.match_info["id"])

    async def post_conversation(self, request: web.Request) -> web.StreamResponse:
        talk = Conversation(self.needed(request, "user_id"), request.query.get("title", "New conversation"))
        return self.reply(self.shown(self.add_conversation(talk)))

    async def get_conversations(self, request: web.Request) -> web.StreamResponse:
        limit, offset = self.limit(request, "conversations"), self.offset(request)
        owned = self.owned(self.needed(request, "user_id"))
        here = [self.shown(talk) for talk in owned[offset : offset + limit]]
        return self.reply({"conversations": here, "total": len(owned), "limit": limit, "offset": offset})

    async def search(self, request: web.Request) -> web.StreamResponse:
        limit, word = self.limit(request, "search"), self.needed(request, "q").lower()
        hits = [self.hit(talk) for talk in self.owned(self.needed(request, "user_id")) if word in talk.title.lower()]
        return self.reply({"conversations": hits[:limit], "total": len(hits)})

    def hit(self, talk: Conversation) -> Body:
        return {"conversation": self.shown(talk), "match_type": "title", "snippet": talk.title}

    async def get_conversation(self, request: web.Request) -> web.StreamResponse:
        return self.reply(self.shown(self.named(request)))

    async def put_conversation(self, request: web.Request) -> web.StreamResponse:
        talk = self.named(request)
        talk.title = self.needed(request, "title")
        talk.touch()
        return self.reply(self.shown(talk))

    async def delete_conversation(self, request: web.Request) -> web.StreamResponse:
        del self.conversations[self.named(request).id]
        return self.reply({"deleted": True})

    async def get_messages(self, request: web.Request) -> web.StreamResponse:
        talk, limit = self.named(request), self.limit(request, "messages")
        return self.reply(self.page(talk, limit, request))

    def page(self, talk: Conversation, limit: int, request: web.Request) -> Body:
        """The messages just before the cursor, in order of time; without one those from an offset on, in any order."""
        ids = [message["id"] for message in talk.messages]
        cursor = request.query.get("before_cursor")
        leads_back = cursor in ids or request.query.get("order") == "desc"
        start = self.offset(request)
        if cursor in ids:
            end = ids.index(cursor)
            here = talk.messages[max(0, end - limit) : end]
            more = end > limit
        else:
            here = (talk.messages[::-1] if leads_back else talk.messages)[start : start + limit]
            more = start + limit < len(ids)
        about: Body = {"conversation_id": talk.id, "conversation_metadata": talk.metadata, "messages": here}
        about |= {"total": len(ids), "limit": limit, "offset": start, "has_more": more}
        oldest = min((message["id"] for message in here), key=ids.index, default=None)
        return about | {"next_cursor": oldest if leads_back and more else None}

    async def preload(self, request: web.Request) -> web.StreamResponse:
        talk = self.named(request)
        return self.reply({"conversation_id": talk.id, "cache_hit": False, "message_count": len(talk.messages)})

    async def summary(self, request: web.Request) -> web.StreamResponse:
        talk = self.named(request)
        return self.reply({"conversation_id": talk.id, "title": talk.title, "message_count": len(talk.messages)})

    # -- confirmations -------------------------------------------------------------------------------------------------

    def pending(self) -> list[Body]:
        requests = [session.request for session in self.sessions.values() if session.request]
        return [request.content for request in requests if not request.answer.done()]

    async def get_pending(self, request: web.Request) -> web.StreamResponse:
        return self.reply(self.pending())

    async def get_confirmation(self, request: web.Request) -> web.StreamResponse:
        return self.reply(self.request(request.match_info["id"]).content)

    async def post_confirmation(self, request: web.Request) -> web.StreamResponse:
        response = self.response(await self.read(request))
        asked = self.request(request.match_info["id"])
        asked.answer.set_result(response)
        return self.reply({"request_id": asked.id, "response": response})

    def response(self, body: Body) -> Any:
        if not isinstance(body.get("response"), str | list | dict):
            raise Refusal(400, "VALIDATION_ERROR", "response is required.")
        return body["response"]

    async def delete_confirmation(self, request: web.Request) -> web.StreamResponse:
        asked = self.request(request.match_info["id"])
        asked.answer.set_result("cancelled")
        return self.reply({"request_id": asked.id})
