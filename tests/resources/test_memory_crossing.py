"""A session that uses memories is given those that fit, and all dialects see the same memories."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adapters import known_dialects
from tests.support.gateway_server import Served, serving

ZENFLUX, CAS, BLADE = "/api/v1", "/api/v1/cloud", "/api"


@dataclass(frozen=True)
class Caller:
    """Calls of all dialects on one gateway."""

    served: Served

    async def call(self, method: str, path: str, body: Any = None, *, status: int = 200) -> Any:
        async with self.served.http.request(method, self.served.url(path), json=body) as answer:
            said = await answer.json()
            assert answer.status == status, said
            return said

    async def remember(self, content: str, **fields: Any) -> int:
        made = await self.call("POST", f"{BLADE}/memories", {"content": content, **fields}, status=201)
        return int(made["id"])

    async def blade_session(self, **fields: Any) -> str:
        made = await self.call("POST", f"{BLADE}/sessions", {"intent": "x", **fields})
        return str(made["session_id"])

    async def refs(self, session_id: str, message: str = "Which tea, please?") -> Any:
        """The references of the answer to a message."""
        await self.call("POST", f"{BLADE}/sessions/{session_id}/chat", {"session_id": session_id, "message": message})
        return (await self.call("GET", f"{BLADE}/sessions/{session_id}/messages"))[-1]["memory_refs"]

    async def hits(self, number: int) -> int:
        return int((await self.call("GET", f"{BLADE}/memories/{number}"))["hit_count"])


@asynccontextmanager
async def calling(folder: Path, **settings: Any) -> AsyncIterator[Caller]:
    dialects = {name: {} for name in known_dialects()}
    async with serving(folder, **{"log": "memory", "dialects": dialects, **settings}) as served:
        yield Caller(served)


@pytest.mark.parametrize("log", ["memory", "sqlite"])
async def test_a_blade_session_is_given_what_fits_and_it_is_counted(tmp_path: Path, log: str) -> None:
    async with calling(tmp_path, log=log) as caller:
        tea = await caller.remember("Likes green tea. " + "x" * 200, skill_name="kitchen")
        off, old = await caller.remember("Hates tea."), await caller.remember("Likes tea", superseded_by=tea)
        await caller.call("PATCH", f"{BLADE}/memories/{off}", {"disabled": True})
        await caller.remember("Has a dog.")
        session_id = await caller.blade_session()
        [ref] = await caller.refs(session_id)
        assert ref == {"id": tea, "content_preview": "Likes green tea. " + "x" * 83 + "…", "skill_name": "kitchen"}
        shown = await caller.call("GET", f"{BLADE}/memories/{tea}")
        assert (shown["hit_count"], shown["updated_at"]) == (1, None)
        assert shown["last_hit_at"] is not None
        assert (await caller.hits(off), await caller.hits(old)) == (0, 0)
        assert await caller.refs(session_id, "/annotate something else") is None
        assert await caller.refs(session_id, "绿茶") is None


async def test_two_han_characters_anywhere_are_found(tmp_path: Path) -> None:
    async with calling(tmp_path) as caller:
        number = await caller.remember("用户每天早上喝绿茶，不加糖")
        session_id = await caller.blade_session()
        assert [ref["id"] for ref in await caller.refs(session_id, "今天喝绿茶还是咖啡？")] == [number]
        found = await caller.call("GET", f"{BLADE}/memories?keyword=绿茶")
        assert [one["id"] for one in found["items"]] == [number]


async def test_off_means_off(tmp_path: Path) -> None:
    async with calling(tmp_path) as caller:
        tea = await caller.remember("Likes green tea.")
        session_id = await caller.blade_session(memory_enabled=False)
        shown = await caller.call("GET", f"{BLADE}/sessions/{session_id}")
        assert shown["memory_enabled"] is False
        assert await caller.refs(session_id) is None
        assert await caller.hits(tea) == 0
        await caller.call("PATCH", f"{BLADE}/sessions/{session_id}/memory", {"memory_enabled": True})
        assert [ref["id"] for ref in await caller.refs(session_id)] == [tea]
        await caller.call("PATCH", f"{BLADE}/sessions/{session_id}/memory", {"memory_enabled": False})
        assert await caller.refs(session_id) is None
        assert await caller.hits(tea) == 1
        talk = await caller.call("POST", f"{ZENFLUX}/conversations")
        shown = await caller.call("GET", f"{BLADE}/sessions/{talk['data']['id']}")
        assert shown["memory_enabled"] is False


async def test_a_zenflux_agent_with_mem0_uses_the_memories_of_its_user(tmp_path: Path) -> None:
    async with calling(tmp_path) as caller:
        await caller.call("POST", f"{ZENFLUX}/agents", {
            "agent_id": "tutor", "name": "Tutor", "prompt": "You teach.", "memory": {"mem0_enabled": True}})
        said = [{"role": "user", "content": "Likes green tea."}]
        mine = await caller.call("POST", f"{ZENFLUX}/mem0/add", {"user_id": "alice", "messages": said})
        other = await caller.call("POST", f"{ZENFLUX}/mem0/add", {"user_id": "bob", "messages": said})
        message = {"message": "Which tea?", "user_id": "alice", "agent_id": "tutor", "stream": False}
        await caller.call("POST", f"{ZENFLUX}/chat", message)
        assert await caller.hits(int(mine["results"][0]["id"])) == 1
        assert await caller.hits(int(other["results"][0]["id"])) == 0
        await caller.call("POST", f"{ZENFLUX}/chat", {"message": "Which tea?", "user_id": "alice", "stream": False})
        assert await caller.hits(int(mine["results"][0]["id"])) == 1


async def test_cas_sees_the_memories_as_a_store_and_gives_them_to_sessions(tmp_path: Path) -> None:
    async with calling(tmp_path) as caller:
        tea, off = await caller.remember("Likes green tea."), await caller.remember("Hates tea.")
        await caller.call("PATCH", f"{BLADE}/memories/{off}", {"disabled": True})
        own = await caller.call("POST", f"{CAS}/memory_stores", {"name": "Mine"}, status=201)
        stores = (await caller.call("GET", f"{CAS}/memory_stores"))["data"]
        assert [store["id"] for store in stores] == [own["id"], "memstore_notes"]
        assert (await caller.call("GET", f"{CAS}/memory_stores/memstore_notes"))["entry_count"] == 1
        [listed] = (await caller.call("GET", f"{CAS}/memory_stores/memstore_notes/memories"))["data"]
        shown = await caller.call("GET", f"{CAS}/memory_stores/memstore_notes/memories/{listed['id']}")
        assert (shown["path"], shown["content"]) == (f"notes/{tea}.md", "Likes green tea.")
        for method, path in (
            ("DELETE", ""), ("POST", ""), ("POST", "/archive"), ("DELETE", f"/memories/{listed['id']}"),
            ("POST", "/memories"),
        ):
            await caller.call(method, f"{CAS}/memory_stores/memstore_notes{path}", {}, status=403)
        for known in ("mem_note99", "mem_notex", "mem_1"):
            await caller.call("GET", f"{CAS}/memory_stores/memstore_notes/memories/{known}", status=404)
        environment = await caller.call("POST", f"{CAS}/environments", {"name": "e"}, status=201)
        agents = (await caller.call("GET", f"{CAS}/agents"))["data"]
        asked = {"agent": agents[0]["id"], "environment_id": environment["id"]}
        session = await caller.call(
            "POST", f"{CAS}/sessions", {**asked, "memory_store_ids": [own["id"], "memstore_notes"]}, status=201)
        assert session["memory_store_ids"] == [own["id"], "memstore_notes"]
        assert [ref["id"] for ref in await caller.refs(session["id"])] == [tea]
        plain = await caller.call("POST", f"{CAS}/sessions", asked, status=201)
        assert plain["memory_store_ids"] == []
        assert await caller.refs(plain["id"]) is None


async def test_mem0_and_blade_count_the_same_uses(tmp_path: Path) -> None:
    async with calling(tmp_path) as caller:
        tea = await caller.remember("Likes green tea.")
        [found] = (await caller.call("POST", f"{ZENFLUX}/mem0/search", {"user_id": "local", "query": "tea"}))["data"]
        assert found["id"] == str(tea)
        await caller.refs(await caller.blade_session())
        assert await caller.hits(tea) == 2
        await caller.call("DELETE", f"{ZENFLUX}/mem0/memory/{tea}")
        await caller.call("GET", f"{CAS}/memory_stores/memstore_notes/memories/mem_note{tea}", status=404)
        assert await caller.refs(await caller.blade_session()) is None
