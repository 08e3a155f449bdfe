"""A revoked key is out: what it has open ends in every dialect and on every server, and so do the keys it made."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import socketio

from gateway.http.security.auth import REVOCATION_GRACE_SECONDS
from gateway.http.websocket import REVOKED_CLOSE_SECONDS
from gateway.resources.key_service import POLL_SECONDS
from gateway.resources.keys import hash_token
from tests.support import fork_server
from tests.support.cluster.fleet_in_loop import fleet_in_loop
from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.gateway_server import Served, serving, until
from tests.support.key_stores import key_store
from tests.support.server_process import PROGRAM

CAS, AAP, ZENFLUX = "/api/v1/cloud", "/aap", "/api/v1"


class Holder:
    """Somebody with a key, and what they have opened with it."""

    def __init__(self, address: str, http: aiohttp.ClientSession, key: str) -> None:
        self.address, self.http, self.key = address, http, key
        self.headers = {"Authorization": f"Bearer {key}"}
        self.open: dict[str, asyncio.Task[Any]] = {}

    async def open_everything(self, stack: AsyncExitStack) -> None:
        """A stream of a turn, a stream of a session, a request that waits for a turn, both kinds of sockets."""
        agent = (await self.call("GET", f"{AAP}/meta"))["agents"][0]["name"]
        session = (await self.call("POST", f"{AAP}/sessions", {"agent": {"name": agent}}))["sessionId"]
        turn = {"messages": [{"role": "user", "content": "/slow 100000"}], "stream": "delta"}
        await self.stream("stream of a turn", "POST", f"{AAP}/sessions/{session}/turns", turn)
        waits = (await self.call("POST", f"{AAP}/sessions", {"agent": {"name": agent}}))["sessionId"]
        await self.stream("request that waits", "POST", f"{AAP}/sessions/{waits}/turns", {**turn, "stream": "none"})
        await self.stream("stream of a session", "GET", f"{CAS}/sessions/{session}/events/stream")
        ws = await self.http.ws_connect(f"{self.address}{ZENFLUX}/ws/chat", headers=self.headers)
        stack.push_async_callback(ws.close)
        self.open["websocket"] = asyncio.create_task(self.heard(ws))
        for transport in ("websocket", "polling"):
            sio, gone = socketio.AsyncClient(reconnection=False), asyncio.Event()
            sio.on("disconnect", lambda reason, gone=gone: gone.set())
            await sio.connect(self.address, auth={"token": self.key}, transports=[transport], wait_timeout=60)
            stack.push_async_callback(sio.shutdown)
            self.open[f"socket.io {transport}"] = asyncio.create_task(gone.wait())
        await asyncio.sleep(1)
        assert [name for name, task in self.open.items() if task.done()] == []

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        async with self.http.request(method, f"{self.address}{path}", json=body, headers=self.headers) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json()

    async def stream(self, name: str, method: str, path: str, body: Any = None) -> None:
        async def read() -> bytes:
            async with self.http.request(method, f"{self.address}{path}", json=body, headers=self.headers) as answer:
                assert answer.status == 200, await answer.text()
                return await answer.read()

        self.open[name] = asyncio.create_task(read())

    async def heard(self, ws: aiohttp.ClientWebSocketResponse) -> int | None:
        async for _ in ws:
            pass
        return ws.close_code

    async def all_ended(self) -> None:
        async with asyncio.timeout(60):
            await asyncio.wait(self.open.values())
        assert self.open["websocket"].result() == aiohttp.WSCloseCode.POLICY_VIOLATION
        for name in ("stream of a turn", "request that waits", "stream of a session"):
            assert isinstance(self.open[name].exception(), aiohttp.ClientError), name
        async with self.http.get(f"{self.address}{AAP}/sessions", headers=self.headers) as answer:
            assert answer.status == 401

    @property
    def still_open(self) -> set[str]:
        return {name for name, task in self.open.items() if not task.done()}


@asynccontextmanager
async def holding(served: Served, *keys: str) -> AsyncIterator[list[Holder]]:
    async with AsyncExitStack() as stack:
        holders = [Holder(served.address, served.http, key) for key in keys]
        for holder in holders:
            await holder.open_everything(stack)
        yield holders
        for holder in holders:
            for task in holder.open.values():
                task.cancel()
            await asyncio.gather(*holder.open.values(), return_exceptions=True)


@pytest.mark.parametrize("log", ["sqlite", "memory"])
async def test_all_that_a_removed_key_has_open_ends_and_nothing_else(tmp_path: Path, log: str) -> None:
    """`dragoman keys remove` runs in another process."""
    keys = key_store(tmp_path / "data")
    hers, his = keys.add("ann"), keys.add("ben")
    async with serving(tmp_path, auth="keys", dialects=ALL_DIALECTS, log=log) as served:
        async with holding(served, hers, his) as (ann, ben):
            if log == "sqlite":
                words = ("keys", "remove", "ann", "--data", str(tmp_path / "data"))
                done = await asyncio.to_thread(fork_server.run, [*PROGRAM, *words])
                assert (done.returncode, done.stderr) == (0, "Key 'ann' is removed.\n")
            else:
                keys.remove("ann")
            await ann.all_ended()
            assert ben.still_open == set(ben.open)
            assert await ben.call("GET", f"{AAP}/sessions")
        await until(lambda: len(served.gateway.authenticator.open_requests) == 0)


def test_together_the_waits_are_less_than_a_second() -> None:
    assert POLL_SECONDS + REVOCATION_GRACE_SECONDS + REVOKED_CLOSE_SECONDS < 1


async def test_every_server_hears_of_it(tmp_path: Path) -> None:
    async with fleet_in_loop(tmp_path, 2, settings={"auth": "keys"}) as fleet:
        one, two = (server.served for server in fleet.servers)
        key = await one.gateway.keys.add("ann")
        async with holding(two, key) as (ann,):
            await one.gateway.keys.remove("ann")
            await ann.all_ended()


async def test_keys_that_a_key_made_end_with_it(tmp_path: Path) -> None:
    keys = key_store(tmp_path / "data")
    stolen = keys.add("ann")
    async with serving(tmp_path, auth="keys", dialects=ALL_DIALECTS, log="memory") as served:
        thief = Holder(served.address, served.http, stolen)
        made = await thief.call("POST", "/api/user/api-keys", {"name": "spare"})
        spare = Holder(served.address, served.http, made["plaintext"])
        second = (await spare.call("POST", "/api/user/api-keys", {"name": "spare of the spare"}))["plaintext"]
        async with holding(served, second) as (hidden,):
            listed = {key.label or key.name: key for key in keys.list()}
            assert listed["spare"].parent == listed["ann"].hash
            keys.remove("ann")
            await hidden.all_ended()
        assert keys.list() == ()


async def test_a_client_that_revokes_its_own_key_is_answered(tmp_path: Path) -> None:
    keys = key_store(tmp_path / "data")
    async with serving(tmp_path, auth="keys", dialects=ALL_DIALECTS, log="memory") as served:
        ann = Holder(served.address, served.http, keys.add("ann"))
        [mine] = await ann.call("GET", "/api/user/api-keys")
        path = f"{served.address}/api/user/api-keys/{mine['id']}"
        async with served.http.delete(path, headers=ann.headers) as answer:
            assert answer.status == 204
        async with served.http.get(path, headers=ann.headers) as answer:
            assert answer.status == 401


async def test_keys_made_while_nobody_was_asked_open_nothing_later(tmp_path: Path) -> None:
    async with serving(tmp_path, log="sqlite", dialects=ALL_DIALECTS) as served:
        async with served.http.post(served.url("/api/user/api-keys"), json={"name": "mine"}) as answer:
            planted = (await answer.json())["plaintext"]
        async with served.http.post(served.url(f"{AAP}/sessions"), json={"agent": {"name": "demo"}}) as answer:
            assert answer.status < 300
    async with serving(tmp_path, log="sqlite", auth="keys", dialects=ALL_DIALECTS) as served:
        for path in (f"{AAP}/sessions", f"{CAS}/sessions", f"{ZENFLUX}/conversations", "/api/sessions"):
            async with served.http.get(served.url(path), headers={"Authorization": f"Bearer {planted}"}) as answer:
                assert answer.status == 401
        sio = socketio.AsyncClient(reconnection=False)
        with pytest.raises(socketio.exceptions.ConnectionError):
            await sio.connect(served.address, auth={"token": planted}, wait_timeout=60)
        await sio.shutdown()


async def test_who_did_what_from_where_with_which_key_is_written_down(tmp_path: Path) -> None:
    """The audit log, over all dialects; neither keys nor what was said are in it."""
    keys = key_store(tmp_path / "data")
    token = keys.add("laptop", "ann")
    async with serving(tmp_path, auth="keys", dialects=ALL_DIALECTS, log="memory") as served:
        ann = Holder(served.address, served.http, token)
        session = (await ann.call("POST", f"{AAP}/sessions", {"agent": {"name": "demo"}}))["sessionId"]
        agent = (await ann.call("POST", f"{CAS}/agents", {"name": "mine", "model": "demo"}))["id"]
        await ann.call("POST", "/api/memories", {"content": "a secret thought"})
        made = await ann.call("POST", "/api/user/api-keys", {"name": "spare"})
        for path in (f"/api/user/api-keys/{made['id']}", f"{AAP}/sessions/{session}"):
            async with served.http.delete(served.url(path), headers=ann.headers) as answer:
                assert answer.status < 300
    text = (tmp_path / "data" / "audit.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [(line["event"], line["target"]) for line in lines if line["event"] != "note.created"] == [
        ("session.created", session), ("agent.created", agent), ("key.created", made["id"]),
        ("key.revoked", made["id"]), ("session.deleted", session),
    ]
    assert {(line["actor"], line["key"], line["address"]) for line in lines} == {("ann", "laptop", "127.0.0.1")}
    for secret in (token, made["plaintext"], "thought"):
        assert secret not in text


async def test_keys_of_an_earlier_version_open_as_before(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    old = {"name": "ann", "user": "ann", "hash": hash_token("dgm_old"), "created": "2026-01-01T00:00:00Z"}
    (folder / "keys.json").write_text(json.dumps({"version": 1, "keys": [old]}))
    for _ in range(2):
        async with serving(tmp_path, log="sqlite", auth="keys") as served:
            assert await Holder(served.address, served.http, "dgm_old").call("GET", f"{AAP}/sessions")
    assert not (folder / "keys.json").exists()


async def test_a_download_ends_with_its_key(tmp_path: Path) -> None:
    async with serving(tmp_path, auth="keys", log="memory", dialects=ALL_DIALECTS) as served:
        ann = Holder(served.address, served.http, await served.gateway.keys.add("ann"))
        form = aiohttp.FormData({"file": io.BytesIO(bytes(20_000_000))})
        async with served.http.post(served.url(f"{ZENFLUX}/files/upload"), data=form, headers=ann.headers) as answer:
            url = (await answer.json())["data"]["file_url"]
        async with served.http.get(url, headers=ann.headers) as answer:
            assert answer.status == 200
            await served.gateway.keys.remove("ann")
            await asyncio.sleep(1)
            with pytest.raises(aiohttp.ClientError):
                await answer.read()


async def test_figures_of_all_users_are_for_admins(tmp_path: Path) -> None:
    keys = key_store(tmp_path / "data")
    ann, root = keys.add("ann"), keys.add("root")
    async with serving(tmp_path, auth="keys", admins=["root"], log="memory") as served:
        for key, status in ((ann, 403), (root, 200)):
            async with served.http.get(served.url("/metrics"), headers={"Authorization": f"Bearer {key}"}) as answer:
                assert answer.status == status
