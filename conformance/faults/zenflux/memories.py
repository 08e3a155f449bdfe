"""Memories of the ZenFlux reference server: what users said, word for word."""

from itertools import count
from typing import Any

from aiohttp import web

from conformance.faults.zenflux.front import Front
from conformance.faults.zenflux.state import Body, Memory, Refusal, State

HOURS = (1, 168)
AT_ONCE = (1, 20)
FOUND = (1, 50)
LISTED = (1, 200)


class Memories:
    """Answers requests below /mem0."""

    def __init__(self, state: State, front: Front) -> None:
        self.state = state
        self.front = front
        self._numbers = count(1)

    def bounded(self, name: str, given: Any, usual: int, bounds: tuple[int, int]) -> int:
        number = int(given) if isinstance(given, str) and given.isdigit() else given
        number = usual if number is None else number
        if isinstance(number, bool) or not isinstance(number, int) or not bounds[0] <= number <= bounds[1]:
            raise Refusal(400, "VALIDATION_ERROR", f"{name} must be from {bounds[0]} to {bounds[1]}.")
        return number

    def needed_text(self, body: Body, name: str) -> str:
        if not isinstance(body.get(name), str) or not body[name].strip():
            raise Refusal(400, "VALIDATION_ERROR", f"{name} must be a text that is not empty.")
        return str(body[name])

    def memories_of(self, user: str) -> list[Memory]:
        """A user's memories, the newest first."""
        return [memory for memory in reversed(self.state.memories.values()) if memory.user_id == user]

    def memory_item(self, memory: Memory, score: float | None) -> Body:
        about: Body = {"id": memory.id, "memory": memory.text, "score": score, "user_id": memory.user_id}
        return about | {"created_at": memory.created_at, "metadata": memory.metadata}

    async def search_memories(self, request: web.Request) -> web.StreamResponse:
        body = await self.front.read(request)
        user, query = self.needed_text(body, "user_id"), self.needed_text(body, "query")
        limit = self.bounded("limit", body.get("limit"), 10, FOUND)
        return self.front.reply(self.found_memories(user, query)[:limit])

    def found_memories(self, user: str, query: str) -> list[Body]:
        """The memories that have a word of the query, the best first."""
        scored = [(self.score(memory, query), memory) for memory in self.memories_of(user)]
        best = sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])
        return [self.memory_item(memory, score) for score, memory in best]

    def score(self, memory: Memory, query: str) -> float:
        """The share of the words of the query that a memory has."""
        words = set(query.lower().split())
        return len(words & set(memory.text.lower().split())) / len(words)

    async def get_memories(self, request: web.Request) -> web.StreamResponse:
        limit = self.bounded("limit", request.query.get("limit"), 50, LISTED)
        found = self.memories_of(request.match_info["user_id"])[:limit]
        return self.front.reply([self.memory_item(memory, None) for memory in found])

    async def add_memories(self, request: web.Request) -> web.StreamResponse:
        body = await self.front.read(request)
        user, texts = self.needed_text(body, "user_id"), self.said(body.get("messages"))
        given = self.given_with(body)
        added = [self.keep_memory(Memory(str(next(self._numbers)), user, text, given)) for text in texts]
        results = [{"id": memory.id, "memory": memory.text, "event": "ADD"} for memory in added]
        return self.front.reply(self.added(results))

    def given_with(self, body: Body) -> Body:
        """What a client says about a memory."""
        return dict(body.get("metadata") or {})

    def added(self, results: list[Body]) -> Body:
        return {"memories_added": len(results), "results": results}

    def said(self, messages: Any) -> list[str]:
        """What the user said in these messages."""
        if not isinstance(messages, list) or not messages or not all(map(self.is_message, messages)):
            raise Refusal(400, "VALIDATION_ERROR", "messages must be messages, one at least.")
        return [item["content"] for item in messages if item["role"] == "user"]

    def is_message(self, item: Any) -> bool:
        return isinstance(item, dict) and all(isinstance(item.get(name), str) for name in ("role", "content"))

    def keep_memory(self, memory: Memory) -> Memory:
        self.state.memories[memory.id] = memory
        return memory

    async def update_memories(self, request: web.Request) -> web.StreamResponse:
        body = await self.front.read(request)
        self.check_batch(body)
        return self.front.reply(self.memory_batch())

    def check_batch(self, body: Body) -> None:
        self.bounded("since_hours", body.get("since_hours"), 24, HOURS)
        self.bounded("max_concurrent", body.get("max_concurrent"), 5, AT_ONCE)

    def memory_batch(self) -> Body:
        """Nothing is extracted from conversations: one result for each user, with nothing added."""
        users = sorted({memory.user_id for memory in self.state.memories.values()})
        about = {"success": True, "memories_added": 0, "error": None, "duration_ms": 0}
        results = [{"user_id": user, **about} for user in users]
        return {"total_users": len(users), "successful": len(users), "failed": 0, "duration_seconds": 0.0,
                "results": results}  # fmt: skip

    async def delete_memory(self, request: web.Request) -> web.StreamResponse:
        self.forget_memory(request.match_info["id"])
        return self.front.reply({"deleted": True})

    def forget_memory(self, name: str) -> None:
        if name not in self.state.memories:
            raise Refusal(404, "MEMORY_NOT_FOUND", "There is no such memory.")
        self.drop_memory(name)

    def drop_memory(self, name: str) -> None:
        del self.state.memories[name]

    async def reset_memories(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply({"reset": True, "deleted": self.forget_user(request.match_info["user_id"])})

    def forget_user(self, user: str) -> int:
        gone = [memory.id for memory in self.memories_of(user)]
        for name in gone:
            self.forget_memory(name)
        return len(gone)

    def memory_routes(self) -> list[web.RouteDef]:
        return [
            web.post("/mem0/search", self.search_memories),
            web.get("/mem0/user/{user_id}", self.get_memories),
            web.post("/mem0/add", self.add_memories),
            web.post("/mem0/batch-update", self.update_memories),
            web.delete("/mem0/memory/{id}", self.delete_memory),
            web.delete("/mem0/user/{user_id}", self.reset_memories),
        ]
