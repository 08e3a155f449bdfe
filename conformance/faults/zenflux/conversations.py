"""Conversations of the ZenFlux reference server."""

from aiohttp import web

from conformance.faults.zenflux.chats import Chats
from conformance.faults.zenflux.front import Front
from conformance.faults.zenflux.state import Body, Conversation, Refusal, State

LARGEST = {"messages": 200, "conversations": 100, "search": 50}
USUAL = {"messages": 50, "conversations": 20, "search": 20}


class Conversations:
    """Answers requests below /conversations."""

    def __init__(self, state: State, front: Front, chats: Chats) -> None:
        self.state = state
        self.front = front
        self.chats = chats

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
        found = [talk for talk in self.state.conversations.values() if talk.user_id == user]
        return sorted(found, key=lambda talk: -talk.changed)

    def named(self, request: web.Request) -> Conversation:
        return self.chats.conversation(request.match_info["id"])

    async def post_conversation(self, request: web.Request) -> web.StreamResponse:
        talk = Conversation(self.needed(request, "user_id"), request.query.get("title", "New conversation"))
        return self.front.reply(self.shown(self.chats.add_conversation(talk)))

    async def get_conversations(self, request: web.Request) -> web.StreamResponse:
        limit, offset = self.limit(request, "conversations"), self.offset(request)
        owned = self.owned(self.needed(request, "user_id"))
        here = [self.shown(talk) for talk in owned[offset : offset + limit]]
        return self.front.reply({"conversations": here, "total": len(owned), "limit": limit, "offset": offset})

    async def search(self, request: web.Request) -> web.StreamResponse:
        limit, word = self.limit(request, "search"), self.needed(request, "q").lower()
        hits = [self.hit(talk) for talk in self.owned(self.needed(request, "user_id")) if word in talk.title.lower()]
        return self.front.reply({"conversations": hits[:limit], "total": len(hits)})

    def hit(self, talk: Conversation) -> Body:
        return {"conversation": self.shown(talk), "match_type": "title", "snippet": talk.title}

    async def get_conversation(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply(self.shown(self.named(request)))

    async def put_conversation(self, request: web.Request) -> web.StreamResponse:
        talk = self.named(request)
        talk.title = self.needed(request, "title")
        talk.touch()
        return self.front.reply(self.shown(talk))

    async def delete_conversation(self, request: web.Request) -> web.StreamResponse:
        del self.state.conversations[self.named(request).id]
        return self.front.reply({"deleted": True})

    async def get_messages(self, request: web.Request) -> web.StreamResponse:
        talk, limit = self.named(request), self.limit(request, "messages")
        return self.front.reply(self.page(talk, limit, request))

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
        return self.front.reply({"conversation_id": talk.id, "cache_hit": False, "message_count": len(talk.messages)})

    async def summary(self, request: web.Request) -> web.StreamResponse:
        talk = self.named(request)
        return self.front.reply({"conversation_id": talk.id, "title": talk.title, "message_count": len(talk.messages)})
