"""ZenFlux over HTTP: files, models, health, keys, pages of other sites, and what is not there."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from adapters.zenflux.server.routes import NOT_IMPLEMENTED_PATHS
from tests.support.dialects.zenflux.client import API, keyed, talking

# -- files ------------------------------------------------------------------------------------------------------------

def form(content: bytes = b"hello", name: str = "a.txt", kind: str | None = "text/plain", **fields: str) -> Any:
    made = aiohttp.FormData(quote_fields=False)
    made.add_field("file", content, filename=name, content_type=kind)
    for key, value in fields.items():
        made.add_field(key, value)
    return made


async def test_a_file_is_kept_sent_and_served(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        kept = await client.call("POST", "/files/upload", data=form(user_id="local"))
        assert kept.items() >= {"file_name": "a.txt", "file_size": 5, "file_type": "text/plain"}.items()
        assert set(kept) >= {"file_id", "file_url", "created_at"}
        async with client.served.http.get(kept["file_url"]) as answer:
            assert await answer.read() == b"hello"
            assert answer.headers["Content-Disposition"].startswith("attachment")
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
        run = await chat.run("", files=[{key: kept[key] for key in ("file_id", "file_url", "file_name")}])
        [said] = (await client.call("GET", f"/conversations/{run.conversation_id}/messages"))["messages"][:1]
        assert said["content"] == [{
            "type": "file", "file_id": kept["file_id"], "file_url": kept["file_url"], "file_name": "a.txt",
            "file_type": "text/plain", "file_size": 5}]


@pytest.mark.parametrize("name", ["../../etc/passwd", "..\\..\\boot.ini", "/abs/passwd", "a/../passwd"])
async def test_a_name_leads_nowhere(tmp_path: Path, name: str) -> None:
    async with talking(tmp_path) as client:
        kept = await client.call("POST", "/files/upload", data=form(name=name))
        assert "/" not in kept["file_name"]
        assert ".." not in kept["file_name"]
        files = [path.name for path in (tmp_path / "data" / "files").iterdir() if not path.name.startswith(".")]
        assert files == [kept["file_id"]]


async def test_a_page_is_served_as_bytes(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        kept = await client.call("POST", "/files/upload", data=form(b"<script>", "x.html", "text/html"))
        async with client.served.http.get(kept["file_url"]) as answer:
            assert answer.content_type == "application/octet-stream"


async def test_files_that_are_refused(tmp_path: Path) -> None:
    async with talking(tmp_path, uploads={"max_bytes": 10}) as client:
        assert await client.call("POST", "/files/upload", data=form(b""), status=400)
        assert await client.call("POST", "/files/upload", data=form(b"x" * 11), status=413)
        assert await client.call("POST", "/files/upload", data={"user_id": "x"}, status=400)
        assert await client.call("POST", "/files/upload", json={"file": "x"}, status=400)
        assert await client.call("GET", "/files/file_nope", status=404)
        assert await client.call("GET", "/files/..%2f..%2fetc%2fpasswd", status=404)


# -- models, health, and what is not there ----------------------------------------------------------------------------

@pytest.mark.parametrize(("form", "accept", "bare"), [
    ("auto", "application/json, text/plain, */*", True), ("auto", "*/*", False), ("auto", "application/json", False),
    ("bare", "*/*", True), ("wrapped", "application/json, text/plain, */*", False),
])
async def test_the_published_front_end_gets_models_without_the_wrapper(
    tmp_path: Path, form: str, accept: str, bare: bool,
) -> None:
    async with (
        talking(tmp_path, zenflux={"models": form}) as client,
        client.served.http.get(client.served.url(f"{API}/models"), headers={"Accept": accept}) as answer,
    ):
        body = await answer.json()
        [model] = body if bare else body["data"]
        assert model["model_name"] == "demo-1"


async def test_models_are_those_of_the_agents(tmp_path: Path) -> None:
    agents = {"one": {"backend": "demo", "model": "m-1"}, "two": {"backend": "demo", "model": "m-1"}}
    async with talking(tmp_path, agents=agents) as client:
        [model] = await client.call("GET", "/models")
        assert model.items() >= {"id": "m-1", "agents": ["one", "two"], "type": "llm"}.items()
        assert await client.call("GET", "/models?type=embedding") == []
        assert await client.call("GET", "/models?provider=dragoman") == [model]


async def test_health(tmp_path: Path) -> None:
    async with talking(tmp_path, auth="keys") as client:
        for path, status in (("/health", "ok"), ("/health/live", "alive")):
            async with client.served.http.get(client.served.url(path)) as answer:
                body = await answer.json()
                assert answer.status == body["code"] == 200
                assert body["status"] == body["data"]["status"] == status


async def test_metrics_are_those_of_the_house(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        await chat.run("hello")
        told = await client.call("GET", "/metrics", at="/health")
        assert told["metrics"]["dragoman_sessions"] == 1
        assert told["metrics"]["dragoman_turns_total{outcome=completed}"] == 1


def unbuilt() -> list[tuple[str, str]]:
    return [(method, path.replace("{path:.+}", "a/b").replace("{", "").replace("}", ""))
            for path, methods in NOT_IMPLEMENTED_PATHS.items() for method in methods.split()]


async def test_what_is_not_built_says_so(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        for method, path in unbuilt():
            assert await client.call(method, path, status=501)


# -- what the later front end reads -----------------------------------------------------------------------------------

async def test_reads_of_the_later_front_end(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        status = await client.call("GET", "/settings/embedding-status")
        assert status.items() >= {"semantic_enabled": False, "current_provider": None}.items()
        async with client.served.http.get(client.served.url(f"{API}/models/providers/supported")) as answer:
            assert (answer.status, await answer.json()) == (200, [])
        for path in ("/agents/default-data-path", "/background-tasks", "/playbook", "/gateway", "/agents/demo/cloud"):
            assert await client.call("GET", path, status=404)


async def test_answers_are_wrapped_and_flat(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        async with client.served.http.get(client.served.url(f"{API}/conversations")) as answer:
            body = await answer.json()
        assert body["code"] == 200
        assert body["message"] == "success"
        assert body["success"] is True
        assert body["total"] == body["data"]["total"] == 0


# -- keys -------------------------------------------------------------------------------------------------------------

async def test_what_is_one_users_is_not_anothers(tmp_path: Path) -> None:
    async with talking(tmp_path, auth="keys") as client:
        ann, bob = await keyed(client, "ann"), await keyed(client, "bob")
        async with ann.chat() as chat, bob.chat() as other:
            begun = await chat.send("/permit", user_id="somebody")
            asked = await chat.asked()
            talk, run, request = begun["conversation_id"], begun["session_id"], asked["request_id"]
            for method, path in (
                ("GET", f"/conversations/{talk}"), ("PUT", f"/conversations/{talk}?title=x"),
                ("DELETE", f"/conversations/{talk}"), ("GET", f"/conversations/{talk}/messages"),
                ("GET", f"/conversations/{talk}/summary"), ("POST", f"/conversations/{talk}/preload"),
                ("GET", f"/session/{run}"), ("POST", f"/session/{run}/stop"), ("DELETE", f"/session/{run}"),
                ("GET", f"/human-confirmation/{request}"), ("DELETE", f"/human-confirmation/{request}"),
            ):
                assert await bob.call(method, path, status=404)
            for word in (run, request):
                assert await bob.call("POST", f"/human-confirmation/{word}", json={"response": "approve"}, status=404)
            assert await bob.call("GET", "/human-confirmation/pending") == []
            assert (await bob.call("GET", "/conversations"))["total"] == 0
            assert (await other.ask("chat.abort", session_id=run))["error"]["code"] == "SESSION_NOT_FOUND"
            refused = await other.ask("chat.send", message="x", user_id="bob", conversation_id=talk)
            assert refused["error"]["code"] == "CONVERSATION_NOT_FOUND"
            listed = await ann.call("GET", "/conversations?user_id=somebody")
            assert [one["user_id"] for one in listed["conversations"]] == ["somebody"]
            assert (await ann.call("GET", "/conversations?user_id=anybody"))["total"] == 0
            assert (await bob.call("GET", "/conversations?user_id=somebody"))["total"] == 0
            assert (await chat.until("session_start"))["user_id"] == "somebody"


async def test_a_socket_may_bring_its_key_in_its_address(tmp_path: Path) -> None:
    async with talking(tmp_path, auth="keys") as client:
        ann = await keyed(client, "ann")
        token = ann.headers["Authorization"].removeprefix("Bearer ")
        url = client.served.url(f"{API}/ws/chat")
        async with client.served.http.ws_connect(f"{url}?token={token}"):
            pass
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await client.served.http.ws_connect(url)
        assert refused.value.status == 401
        assert await client.call("GET", f"/conversations?token={token}", status=401)


async def test_a_server_that_stops_says_goodbye(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        session = aiohttp.ClientSession()
        ws = await session.ws_connect(client.served.url(f"{API}/ws/chat"))
        heard = asyncio.create_task(ws.receive(timeout=60))
    assert (await heard).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)
    assert ws.close_code == aiohttp.WSCloseCode.GOING_AWAY
    await asyncio.wait_for(session.close(), 60)
