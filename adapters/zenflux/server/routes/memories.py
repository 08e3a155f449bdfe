"""Memories over HTTP, in the words of mem0; they are the memories that every dialect has."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from adapters.zenflux.bodies import MemoryBody, spell
from adapters.zenflux.server import views
from adapters.zenflux.wire import (
    LOCAL_USER,
    MemoryBatch,
    MemorySearch,
    MemoryUpdate,
    NewMemories,
    ZenfluxSettings,
    whole_number_param,
)
from gateway.errors import Conflict, Invalid, NotFound
from gateway.http import OWNER, Answers, Context, parse_whole_number, read_json
from gateway.json_values import JsonObject, JsonValue
from gateway.resources import MAX_MEMORIES, Memories, Memory, MemoryFilter, StoredMemory

PIECE_LENGTH = 500
"""The longest memory, in characters."""
NO_EXTRACTOR = "conversations are not searched for memories: no extractor is configured"


class MemoryRoutes:
    """The routes of memories, one method each. `user_id` selects among the memories that the caller owns."""

    def __init__(self, context: Context[ZenfluxSettings]) -> None:
        self.context = context
        self.memories = Memories(context.resources, context.clock)

    @Answers(views.wrapped(["memory"]), reads=MemorySearch)
    async def search(self, request: web.Request) -> web.Response:
        body, owner = await read_json(request, MemorySearch), request[OWNER]
        found = await self.memories.recall(
            owner, body.query, fits=lambda memory: is_of(memory, body.user_id, owner), limit=body.limit)
        shown = [self._shown(one.stored, owner, round(one.score, 4)) for one in found]
        return views.reply(self.context, shown)

    @Answers(views.wrapped(["memory"]), query={"limit": int})
    async def listed(self, request: web.Request) -> web.Response:
        limit, owner = whole_number_param(request, "limit", 50, 1, 200), request[OWNER]
        found = await self._of(owner, request.match_info["user_id"])
        return views.reply(self.context, [self._shown(kept, owner) for kept in found[:limit]])

    @Answers(
        views.wrapped({"memories_added": int, "results": [{"id": str, "memory": str, "event": str}]}),
        reads=NewMemories,
    )
    async def add(self, request: web.Request) -> web.Response:
        body, owner = await read_json(request, NewMemories), request[OWNER]
        pieces = [piece for message in body.messages if message.role == "user" for piece in pieces_of(message.content)]
        if not pieces:
            raise Invalid("messages: no user message has any text", param="messages")
        metadata = body.metadata or {}
        kind: Any = "experience" if metadata.get("type") == "experience" else "feedback"
        user_id = None if body.user_id == LOCAL_USER else body.user_id
        added = []
        for piece in pieces:
            kept = await self.memories.add(
                owner, Memory(content=piece, type=kind, owner=user_id, metadata=metadata))
            added.append({"id": str(kept.number), "memory": piece, "event": "ADD"})
        return views.reply(self.context, {"memories_added": len(added), "results": added})

    @Answers(
        views.wrapped({
            "total_users": int, "successful": int, "failed": int, "duration_seconds": float, "message": str,
            "results": [{
                "user_id": str, "success": bool, "memories_added": int, "error": str | None, "duration_ms": int,
            }],
        }), reads=MemoryBatch,
    )
    async def batch(self, request: web.Request) -> web.Response:
        """Change the memories that are named; conversations have no extractor here."""
        body, owner = await read_json(request, MemoryBatch), request[OWNER]
        begun = self.context.clock()
        problems = [problem for update in body.updates or () if (problem := await self._updated(owner, update))]
        seconds = self.context.clock() - begun
        result = {
            "user_id": owner or LOCAL_USER, "success": not problems, "memories_added": 0,
            "error": "; ".join(problems) or None, "duration_ms": round(seconds * 1000),
        }
        return views.reply(self.context, {
            "total_users": 1, "successful": int(not problems), "failed": int(bool(problems)),
            "duration_seconds": round(seconds, 3), "results": [result], "message": NO_EXTRACTOR,
        })

    @Answers(views.wrapped({"deleted": bool}))
    async def delete(self, request: web.Request) -> web.Response:
        with memory_errors(request.match_info["id"]):
            await self.memories.remove(request[OWNER], memory_number(request.match_info["id"]))
        return views.reply(self.context, {"deleted": True})

    @Answers(views.wrapped({"reset": bool, "deleted": int}))
    async def reset(self, request: web.Request) -> web.Response:
        found = await self._of(request[OWNER], request.match_info["user_id"])
        count = await self.memories.remove_all(request[OWNER], [kept.number for kept in found])
        return views.reply(self.context, {"reset": True, "deleted": count})

    async def _of(self, owner: str, user_id: str) -> list[StoredMemory]:
        """The memories of a user, newest first."""
        found, _ = await self.memories.search(owner, MemoryFilter(), limit=MAX_MEMORIES)
        return [kept for kept in found if is_of(kept.memory, user_id, owner)]

    async def _updated(self, owner: str, update: MemoryUpdate) -> str | None:
        """Change one memory; return what is wrong."""
        changes: JsonObject = {} if update.memory is None else {"content": update.memory}
        if update.metadata is not None:
            changes["metadata"] = update.metadata
        try:
            with memory_errors(update.id):
                await self.memories.change(owner, memory_number(update.id), **changes)
        except (NotFound, Conflict) as error:
            return error.message
        return None

    def _shown(self, kept: StoredMemory, owner: str, score: float | None = None) -> JsonValue:
        memory = kept.memory
        metadata = {**memory.metadata, "type": memory.type, "source_session": memory.session_id}
        return spell(self.context.table, MemoryBody(
            id=str(kept.number), content=memory.content, score=score,
            user_id=memory.owner or owner or LOCAL_USER, created_at=kept.created_at, metadata=metadata))


def is_of(memory: Memory, user_id: str, owner: str) -> bool:
    """Whether a memory is this user's; one that names no user is the local user's, and the caller's own."""
    return user_id == memory.owner if memory.owner else user_id in (LOCAL_USER, owner)


def pieces_of(text: str) -> Iterator[str]:
    """A text in pieces of the longest length, without spaces around them."""
    stripped = text.strip()
    for at in range(0, len(stripped), PIECE_LENGTH):
        yield stripped[at:at + PIECE_LENGTH]


def memory_number(word: str) -> int:
    number = parse_whole_number(word, 15)
    if number is None:
        raise NotFound(word)
    return number


@contextmanager
def memory_errors(word: str) -> Iterator[None]:
    try:
        yield
    except NotFound:
        raise NotFound(f"there is no memory '{word[:64]}'") from None


def routes_of_memories(context: Context[ZenfluxSettings]) -> list[web.RouteDef]:
    routes, at = MemoryRoutes(context), f"{context.mount}/mem0"
    return [
        web.post(f"{at}/search", routes.search),
        web.get(f"{at}/user/{{user_id}}", routes.listed),
        web.post(f"{at}/add", routes.add),
        web.post(f"{at}/batch-update", routes.batch),
        web.delete(f"{at}/memory/{{id}}", routes.delete),
        web.delete(f"{at}/user/{{user_id}}", routes.reset),
    ]
