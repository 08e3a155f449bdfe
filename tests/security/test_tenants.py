"""One tenant does not take what is the others': each key has limits, which hold however many come at once."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import socketio

import gateway.model as m
from gateway.config import Config
from gateway.errors import Conflict, GatewayError, RateLimited
from gateway.http import WrongKeyLimiter
from gateway.http.security.rate_limits import RateLimiter
from gateway.quotas import NoLimits, Quotas
from gateway.resources import ScheduledTask, Schedules
from gateway.resources.schedules import MAX_TASKS
from tests.support.dialect_parts import dialects_with, each, part
from tests.support.dialect_tables import DIALECTS
from tests.support.dialects.blade.client import connect
from tests.support.dialects.zenflux.client import Client
from tests.support.gateway_server import Served, serving, until
from tests.support.redis_server import redis_of_this_run
from tests.support.storage.resource_stores import STORES

LOGS = ("memory", "sqlite", "redis")
CREATES = {name: part(name, "rest_requests").CREATE for name in dialects_with("rest_requests")}


class Tenant:
    """Somebody with a key."""

    def __init__(self, served: Served, name: str, key: str) -> None:
        self.served, self.name, self.key = served, name, key

    @asynccontextmanager
    async def asks(self, method: str, path: str, body: Any = None) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {"Authorization": f"Bearer {self.key}"}
        async with self.served.http.request(method, self.served.url(path), json=body, headers=headers) as answer:
            yield answer

    async def status(self, method: str, path: str, body: Any = None) -> int:
        async with self.asks(method, path, body) as answer:
            await answer.read()
            return answer.status

    async def session(self) -> str:
        async with self.asks("POST", *CREATES["aap"]) as answer:
            assert answer.status == 201, await answer.text()
            return str((await answer.json())["sessionId"])


@asynccontextmanager
async def tenants(
    folder: Path, log: str = "memory", wrong_keys: int = 20, **per_key: Any,
) -> AsyncIterator[tuple[Served, Tenant, Tenant]]:
    """A server of all dialects with these limits, and two who have keys; bob is an admin."""
    log = f"{redis_of_this_run().url}?prefix={folder.name}" if log == "redis" else log
    async with serving(
        folder, dialects={name: {} for name in DIALECTS}, auth="keys", log=log, admins=["bob"],
        limits={"per_key": per_key, "wrong_keys_per_minute": wrong_keys},
        agents={"demo": {"backend": "demo"}, "other": {"backend": "demo"}},
    ) as served:
        ann, bob = [Tenant(served, name, await served.gateway.keys.add(name)) for name in ("ann", "bob")]
        yield served, ann, bob


# -- requests ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dialect", each("rest_requests"))
async def test_who_asks_too_fast_is_told_when_to_come_again(tmp_path: Path, dialect: str) -> None:
    async with tenants(tmp_path, requests_per_second=0.1, request_burst=2) as (served, ann, bob):
        path, body = CREATES[dialect]
        assert {await ann.status("POST", path, body) for _ in range(2)} <= {200, 201}
        before = served.gateway.runtime.log.session_count
        async with ann.asks("POST", path, body) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (429, "10")
            said = part(dialect, "rest_requests").error_text(await answer.json())
            assert "you may send 0.1 requests a second" in said
        assert served.gateway.runtime.log.session_count == before
        assert await bob.status("POST", path, body) in (200, 201)
        await asyncio.sleep(10)
        assert await ann.status("POST", path, body) in (200, 201)


async def test_what_is_said_over_sockets_counts_too(tmp_path: Path) -> None:
    async with tenants(tmp_path, requests_per_second=0.1, request_burst=4) as (served, ann, _):
        session = await ann.session()
        async with connect(served, ann.key) as talker, Client(served, ann.key).chat() as chat:
            assert (await talker.subscribe(session))["status"] == "ok"
            assert (await chat.ask("chat.abort", session_id="none"))["error"]["code"] == "SESSION_NOT_FOUND"
            assert (await chat.ask("chat.abort", session_id="none"))["error"]["code"] == "RATE_LIMITED"
            refused = await talker.subscribe(session)
            assert (refused["code"], refused["detail"]) == ("rate_limited", {"retry_after": 10})


async def test_servers_share_the_buckets_of_their_redis(tmp_path: Path) -> None:
    """Tokens come slowly, so that none comes while this runs; without Redis a server counts by itself."""
    from gateway.storage.redis import RedisAddress, RedisClient, RedisTokenBuckets

    pace = Config(auth="keys", limits={"per_key": {"requests_per_second": 0.001, "request_burst": 5}}).quota
    address = RedisAddress.read(f"{redis_of_this_run().url}?prefix={tmp_path.name}")
    redis = [RedisClient(address) for _ in range(2)]
    for one in redis:
        await one.open()
    servers = [RateLimiter(lambda: pace, WrongKeyLimiter(lambda: 20), RedisTokenBuckets(one)) for one in redis]
    asked = await asyncio.gather(
        *(server.count_request("ann") for server in servers for _ in range(5)), return_exceptions=True)
    assert Counter(type(one) for one in asked) == {type(None): 5, RateLimited: 5}
    await servers[0].count_request("bob")
    for one in redis:
        await one.close()
        one.epoch = "another"  # what was said under it is void, as after a loss of all data
    assert await asyncio.gather(*(servers[0].count_request("ann") for _ in range(2))) == [None, None]
    for one in redis:
        await one.close()


# -- turns and streams ------------------------------------------------------------------------------------------------

def turn(session: str, words: str, stream: str = "delta") -> tuple[str, str, Any]:
    body = {"stream": stream, "messages": [{"role": "user", "content": words}]}
    return "POST", f"/aap/sessions/{session}/turns", body


async def test_a_key_runs_so_many_turns_at_once_and_the_next_is_not_taken(tmp_path: Path) -> None:
    async with tenants(tmp_path, turns=1) as (served, ann, bob):
        first, second = await ann.session(), await ann.session()
        before = served.gateway.runtime.log.session_count
        async with ann.asks(*turn(first, "/slow 1000")) as stream:
            await stream.content.readuntil(b"text_delta")
            assert await ann.status(*turn(second, "hello")) == 429
            events = f"/api/v1/cloud/sessions/{second}/events"
            assert await ann.status("POST", events, {"events": [{"type": "user.message", "content": "x"}]}) == 429
            assert await ann.status("POST", f"/api/sessions/{second}/chat", {"message": "hello"}) == 429
            chat = {"message": "x", "userId": "local", "stream": False}
            assert await ann.status("POST", "/api/v1/chat", chat) == 429
            path, body = CREATES["cas"]
            begun = {**body, "initial_events": [{"type": "user.message", "content": "x"}]}  # type: ignore[dict-item]
            assert await ann.status("POST", path, begun) == 429
            had = served.gateway.runtime.log.session_count
            assert had == before, "no session was made for a message that is refused"
            assert await served.gateway.resources.list("environment", "ann") == [], "nor an environment"
            other = {"message": "x", "userId": "local", "stream": False, "conversationId": second, "agentId": "other"}
            assert await ann.status("POST", "/api/v1/chat", other) == 429
            assert (await served.gateway.sessions.get("ann", second)).agent == "demo"
            said = await served.gateway.sessions.records("ann", second)
            assert not any(isinstance(record.event, m.InputAccepted) for record in said)
            assert await bob.status(*turn(await bob.session(), "hello")) == 200
            assert await ann.status("DELETE", f"/aap/sessions/{first}/turns/current") == 204
        await until(lambda: not served.gateway.quotas.usage_of("ann").turns)
        assert await ann.status(*turn(second, "hello")) == 200


async def test_a_turn_that_waits_for_people_does_not_count_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    async with tenants(tmp_path, turns=1) as (served, ann, _):
        waiting, other = await ann.session(), await ann.session()
        assert await ann.status(*turn(waiting, "/permit", "none")) == 200
        [ask] = (await served.gateway.sessions.get("ann", waiting)).asks.values()
        granted = {"role": "tool_permission", "toolCallId": ask.call_id, "granted": True}
        answer = ("POST", f"/aap/sessions/{waiting}/turns", {"stream": "none", "messages": [granted]})
        async with ann.asks(*turn(other, "/slow 1000")) as stream:
            await stream.content.readuntil(b"text_delta")
            assert await ann.status(*answer) == 429
            assert [*(await served.gateway.sessions.get("ann", waiting)).asks] == [ask.request_id]
            assert await ann.status("DELETE", f"/aap/sessions/{other}/turns/current") == 204
        assert await ann.status(*answer) == 200
        assert served.gateway.quotas.usage_of("ann").turns == 0


async def test_a_key_has_so_many_streams_at_once(tmp_path: Path) -> None:
    async with tenants(tmp_path, streams=1) as (served, ann, bob):
        session, other = await ann.session(), await bob.session()
        async with ann.asks("GET", f"/api/v1/cloud/sessions/{session}/events/stream") as stream:
            await stream.content.readuntil(b"\n\n")
            assert await ann.status(*turn(session, "hello")) == 429
            assert len(await served.gateway.sessions.records("ann", session)) == 1
            assert await bob.status(*turn(other, "hello")) == 200
        await until(lambda: not served.gateway.quotas.usage_of("ann").streams)
        assert await ann.status(*turn(session, "hello")) == 200


async def test_a_socket_is_a_stream_too(tmp_path: Path) -> None:
    async with tenants(tmp_path, streams=1) as (served, ann, bob):
        session = await ann.session()
        async with connect(served, ann.key):
            assert await ann.status(*turn(session, "hello")) == 429
            with pytest.raises(aiohttp.WSServerHandshakeError, match="429"):
                await Client(served, ann.key).chat().__aenter__()
            async with Client(served, bob.key).chat():
                with pytest.raises(socketio.exceptions.ConnectionError):
                    await connect(served, bob.key).__aenter__()
        await until(
            lambda: (
                not served.gateway.quotas.usage_of("ann").streams and not served.gateway.quotas.usage_of("bob").streams
            )
        )
        assert await ann.status(*turn(session, "hello")) == 200


# -- what is kept -----------------------------------------------------------------------------------------------------

async def outcomes(*asked: Awaitable[Any]) -> Counter[str]:
    return Counter(
        type(one).__name__ if isinstance(one, GatewayError) else "done"
        for one in await asyncio.gather(*asked, return_exceptions=True))


@pytest.mark.parametrize("log", LOGS)
async def test_the_last_session_is_made_once_however_many_come_for_it(tmp_path: Path, log: str) -> None:
    async with tenants(tmp_path, log, sessions=3) as (served, _, bob):
        sessions = served.gateway.sessions
        made = await outcomes(*(sessions.create("ann", "demo") for _ in range(10)))
        assert made == {"done": 3, "RateLimited": 7}
        listed, _ = await sessions.list("ann")
        assert len(listed) == 3
        await bob.session()
        await sessions.delete("ann", listed[0].session_id)
        assert await outcomes(*(sessions.create("ann", "demo") for _ in range(2))) == {"done": 1, "RateLimited": 1}


@pytest.mark.parametrize("log", LOGS)
async def test_the_last_session_of_all_is_made_once_too(tmp_path: Path, log: str) -> None:
    place = f"{redis_of_this_run().url}?prefix={tmp_path.name}" if log == "redis" else log
    async with serving(tmp_path, log=place, limits={"max_sessions": 3}) as served:
        made = await outcomes(*(served.gateway.sessions.create("", "demo") for _ in range(10)))
        assert made["done"] == 3, made
        assert len((await served.gateway.sessions.list(""))[0]) == 3
        async with served.http.post(served.url("/aap/sessions"), json=CREATES["aap"][1]) as answer:
            assert answer.status == 503


@pytest.mark.parametrize("log", LOGS)
async def test_the_last_resource_is_kept_once_however_many_come_for_it(tmp_path: Path, log: str) -> None:
    async with tenants(tmp_path, log, resources=3) as (served, _, _):
        kept, names = served.gateway.resources, iter(range(100))
        made = await outcomes(*(kept.create("thing", "ann", {"n": next(names)}) for _ in range(10)))
        assert made == {"done": 3, "RateLimited": 7}
        [one, *_] = await kept.list("thing", "ann")
        with pytest.raises(RateLimited, match="you keep 3 resources and versions of them, and may keep 3"):
            await kept.update("thing", "ann", one.resource_id, {})
        await kept.create("thing", "bob", {})
        await kept.delete("thing", "ann", one.resource_id)
        await kept.create("thing", "ann", {})


@pytest.mark.parametrize("log", LOGS)
async def test_bytes_are_counted_and_what_goes_beyond_them_is_not_kept(tmp_path: Path, log: str) -> None:
    async with tenants(tmp_path, log, stored_bytes=20_000) as (served, ann, bob):
        session, path = await ann.session(), "/api/v1/files/upload"

        def form(size: int) -> dict[str, Any]:
            data = aiohttp.FormData()
            data.add_field("file", b"x" * size, filename="a.txt", content_type="text/plain")
            return {"data": data}

        async def upload(who: Tenant, size: int) -> int:
            headers = {"Authorization": f"Bearer {who.key}"}
            async with who.served.http.post(who.served.url(path), headers=headers, **form(size)) as answer:
                return answer.status

        assert await upload(ann, 30_000) == 429
        assert await upload(ann, 10_000) == 200
        assert await upload(ann, 10_000) == 429
        assert len(list((tmp_path / "data" / "files").glob("file_*"))) == 1, "what was refused left nothing behind"
        assert await upload(bob, 10_000) == 200
        [file] = await served.gateway.resources.list("file", "ann")
        await served.gateway.resources.delete("file", "ann", file.resource_id)
        if log == "redis":
            await served.gateway.runtime.log.recount()  # type: ignore[attr-defined]
        if log == "memory":
            return
        said = "x" * 9000
        statuses = [await ann.status(*turn(session, said, "none")) for _ in range(3)]
        assert statuses == [200, 200, 429] or statuses == [200, 429, 429], "what is said is stored, and counts"
        with pytest.raises(RateLimited, match="delete sessions, files or other resources"):
            await served.gateway.sessions.submit("ann", session, [m.SendMessage(content="x")])
        await served.gateway.sessions.delete("ann", session)
        assert await ann.status(*turn(await ann.session(), "hello", "none")) == 200


async def test_what_a_file_has_counts_after_a_restart(tmp_path: Path) -> None:
    async with tenants(tmp_path, "sqlite") as (served, ann, _):
        session = await ann.session()
        await served.gateway.resources.create("thing", "ann", {"words": "x" * 1000})
        assert await ann.status(*turn(session, "hello", "none")) == 200
        before = served.gateway.quotas.usage_of("ann")
    async with serving(tmp_path, log="sqlite", dialects={"aap": {}}, auth="keys") as served:
        assert served.gateway.quotas.usage_of("ann") == before
        assert (before.sessions, before.resources) == (1, 1)
        assert before.stored_bytes > 1000


@pytest.mark.parametrize("store", STORES)
async def test_of_many_who_make_the_last_task_one_does(tmp_path: Path, store: str) -> None:
    task = ScheduledTask(title="t", prompt="p", cron="0 0 * * *", agent="demo")
    async with STORES[store](tmp_path, lambda: 1.0, lambda: 1000) as resources:
        schedules = Schedules(resources, lambda: 1.0)
        for _ in range(MAX_TASKS - 1):
            await schedules.add("ann", task)
        assert await outcomes(*(schedules.add("ann", task) for _ in range(5))) == {"done": 1, "Conflict": 4}
        assert len(await schedules.of("ann")) == MAX_TASKS
        assert len([one async for one in schedules.everybodys()]) == MAX_TASKS
        with pytest.raises(Conflict, match=f"you have {MAX_TASKS} tasks already"):
            await schedules.add("ann", task)


# -- wrong keys, and what is told of all this -------------------------------------------------------------------------

async def test_an_address_that_guesses_keys_is_not_heard_for_a_while(tmp_path: Path) -> None:
    async with tenants(tmp_path, wrong_keys=2) as (served, ann, bob):
        await ann.session()
        right = bob.key
        bob.key = "old"
        told = {await bob.status("GET", "/aap/sessions") for _ in range(40)}
        assert told == {401}, "who has an old key does not guess"
        bob.key = "wrong"
        assert await bob.status("GET", "/aap/sessions") == 401
        bob.key = "another"
        async with bob.asks("GET", "/aap/sessions") as answer:
            assert answer.status == 429
            wait = int(answer.headers["Retry-After"])
        assert 20 < wait <= 30, "two a minute, and a look for an unknown key takes a moment"
        assert await bob.status("POST", *CREATES["cas"]) == 429
        sio = socketio.AsyncClient(reconnection=False)
        with pytest.raises(socketio.exceptions.ConnectionError):
            await sio.connect(served.address, auth={"token": "wrong"}, wait_timeout=60)
        await sio.shutdown()
        assert await ann.status("GET", "/aap/sessions") == 200, "a key that was right before is heard"
        bob.key = right
        assert await bob.status("GET", "/aap/sessions") == 429, "one that was never seen is not even looked at"
        await asyncio.sleep(wait)
        assert await bob.status("GET", "/aap/sessions") == 200


async def test_the_metrics_tell_of_each_key(tmp_path: Path) -> None:
    async with tenants(tmp_path, turns=1) as (_, ann, bob):
        first, second = await ann.session(), await ann.session()
        async with ann.asks(*turn(first, "/slow 1000")) as stream:
            await stream.content.readuntil(b"text_delta")
            assert await ann.status(*turn(second, "hello")) == 429
            async with bob.asks("GET", "/metrics") as answer:
                told = (await answer.text()).splitlines()
        assert {
            'dragoman_key_requests_total{key="ann"} 4.0', 'dragoman_key_requests_total{key="bob"} 1.0',
            'dragoman_key_refusals_total{key="ann",limit="turns"} 1.0', 'dragoman_key_turns{key="ann"} 1.0',
            'dragoman_key_streams{key="ann"} 1.0', 'dragoman_key_sessions{key="ann"} 2.0',
        } <= set(told)


def test_where_there_are_no_keys_only_what_is_written_holds() -> None:
    assert {name: getattr(Config().quota, name) for name in vars(NoLimits())} == vars(NoLimits())
    assert Config().quota.requests_per_second is None
    written = Config(limits={"per_key": {"turns": 3}}).quota
    assert (written.turns, written.streams, written.requests_per_second) == (3, None, None)
    assert Config(auth="keys").quota.turns is not None
    Quotas(lambda: Config().quota).check("", "turns", 10**9)
