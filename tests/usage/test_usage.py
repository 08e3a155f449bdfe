"""What clients use is counted by dialect, key, program, endpoint and feature; the counts outlive the server."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.errors import Invalid, Overloaded
from gateway.ports import Resource
from gateway.quotas import SYSTEM_OWNER
from gateway.storage.resources import MemoryResources
from gateway.usage import (
    ENDPOINT,
    FEATURE,
    KIND,
    OTHERS,
    ClientUsage,
    UsageCounts,
    UsageMetrics,
    UsageStore,
    Use,
    client_usage,
    parse_age,
    rows_of,
)
from gateway.usage.usage_counts import MAX_CLIENTS, MAX_NAMES
from gateway.usage.usage_store import KEPT_DAYS
from tests.support.gateway_server import Served, serving

DAY = 86_400.0
NOON = 20_000 * DAY + DAY / 2


def counts(resources: Any = None, now: float = NOON) -> UsageCounts:
    return UsageCounts(UsageStore(resources or MemoryResources(lambda: now)), lambda: now)


async def used(served: Served, since: float = 0.0) -> dict[tuple[str, str], ClientUsage]:
    rows = await served.gateway.usage_counts.rows(since)
    return {(one.dialect, one.client): one for one in client_usage(rows)}


async def talk(served: Served, text: str, agent: str = "desk/2.1 (linux)") -> None:
    headers = {"User-Agent": agent}
    async with served.http.post(
        served.url("/aap/sessions"), json={"agent": {"name": "demo"}}, headers=headers) as made:
        session = (await made.json())["sessionId"]
    body = {"stream": "delta", "messages": [{"role": "user", "content": text}]}
    async with served.http.post(served.url(f"/aap/sessions/{session}/turns"), json=body, headers=headers) as turn:
        await turn.read()


async def test_requests_are_counted_by_dialect_client_and_route(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await talk(served, "hello")
        await talk(served, "hello", "Mozilla/5.0 (X11) AppleWebKit/537.36 Chrome/126.0 Safari/537.36")
        async with served.http.get(served.url("/aap/sessions/sess_1/secret"), headers={"User-Agent": "desk/2.1"}):
            pass
        async with served.http.get(served.url("/api/v1/cloud/agents")):
            pass
        found = await used(served)
    assert found["aap", "desk/2.1"].endpoints == {
        "POST /aap/sessions": 1, "POST /aap/sessions/{id}/turns": 1, "(no such route)": 1}
    assert found["aap", "Chrome/126"].requests == 2
    assert next(client for dialect, client in found if dialect == "cas").startswith("Python")


async def test_features_are_counted_for_the_client_that_gets_them(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await talk(served, "/think hello")
        await talk(served, "only words", "other/1")
        found = await used(served)
    assert {"thinking", "text", "stop_reasons"} <= found["aap", "desk/2.1"].features.keys()
    assert "thinking" not in found["aap", "other/1"].features
    assert found["aap", "other/1"].features["text"] == 1, "a block counts once, however many deltas it has"


async def test_a_key_is_counted_by_its_name(tmp_path: Path) -> None:
    async with serving(tmp_path, auth="keys") as served:
        token = await served.gateway.keys.add("laptop", "ada", None)
        headers = {"Authorization": f"Bearer {token}", "User-Agent": "desk/2.1"}
        async with served.http.get(served.url("/api/v1/cloud/agents"), headers=headers) as answer:
            assert answer.status == 200
        wrong = {"Authorization": "Bearer no"}
        async with served.http.get(served.url("/api/v1/cloud/agents"), headers=wrong) as answer:
            assert answer.status == 401
        rows = await served.gateway.usage_counts.rows(0.0)
        stored = msgspec.json.encode(await served.gateway.resources.list(KIND, SYSTEM_OWNER)).decode()
    assert [(row.key, row.count) for row in rows] == [("laptop", 1)]
    assert token not in stored


async def test_counts_outlive_the_server(tmp_path: Path) -> None:
    for _ in range(2):
        async with serving(tmp_path, log="sqlite") as served:
            await talk(served, "hello")
    async with serving(tmp_path, log="sqlite") as served:
        found = await used(served)
    assert found["aap", "desk/2.1"].endpoints["POST /aap/sessions"] == 2


async def test_counts_are_stored_after_a_while_without_a_request_that_waits() -> None:
    resources = MemoryResources(lambda: NOON)
    counted = counts(resources)
    counted.count("d", "k", "c", ENDPOINT, "GET /x")
    assert await resources.list(KIND, SYSTEM_OWNER) == []
    await asyncio.sleep(6)
    [day] = await resources.list(KIND, SYSTEM_OWNER)
    assert [row.count for row in rows_of(day.body)] == [1]


async def test_servers_of_one_log_are_summed() -> None:
    resources = MemoryResources(lambda: NOON)
    first, second = counts(resources), counts(resources)
    for counted in (first, second, second):
        counted.count("d", "k", "c", ENDPOINT, "GET /x")
    await first.close()
    await second.close()
    assert [row.count for row in await first.rows(0.0)] == [3]


async def test_a_store_that_fails_loses_no_count() -> None:
    class FailingResources(MemoryResources):
        fails = True

        async def amend(self, *given: Any) -> Resource:
            if self.fails:
                raise Overloaded("no room")
            return await super().amend(*given)

    resources = FailingResources(lambda: NOON)
    counted = counts(resources)
    counted.count("d", "k", "c", ENDPOINT, "GET /x")
    await asyncio.sleep(6)
    resources.fails = False
    counted.count("d", "k", "c", ENDPOINT, "GET /x")
    assert [row.count for row in await counted.rows(0.0)] == [2]


async def test_clients_and_names_are_bounded() -> None:
    counted = counts()
    for number in range(MAX_CLIENTS + 50):
        counted.count("d", "k", f"client/{number}", ENDPOINT, "GET /x")
    for number in range(MAX_NAMES + 50):
        counted.count("d", "k", "client/0", FEATURE, f"feature {number}")
    found = {(one.key, one.client): one for one in client_usage(await counted.rows(0.0))}
    assert len(found) == MAX_CLIENTS + 1
    assert found[OTHERS, OTHERS].requests == 50
    assert found["k", "client/0"].features[OTHERS] == 51, "one endpoint is one of the names"


async def test_old_days_are_deleted() -> None:
    now = NOON
    store = UsageStore(MemoryResources(lambda: now))
    for day in (0, 1, KEPT_DAYS + 1):
        await store.add({Use("d", "k", "c", ENDPOINT, f"day {day}"): 1}, NOON + day * DAY)
    assert {row.name for row in await store.since(0.0)} == {"day 1", f"day {KEPT_DAYS + 1}"}
    assert [row.name for row in await store.since(NOON + KEPT_DAYS * DAY)] == [f"day {KEPT_DAYS + 1}"]


async def test_prometheus_gets_the_counts() -> None:
    counted = counts()
    for _ in range(2):
        counted.count("d", "k", "c/1", ENDPOINT, "GET /x")
    counted.count("d", "k", "c/1", FEATURE, "text")
    samples = {(sample.name, tuple(sample.labels.values())): sample.value
               for family in UsageMetrics(counted).collect() for sample in family.samples}
    assert samples == {
        ("dragoman_client_requests_total", ("d", "k", "c/1")): 2,
        ("dragoman_client_features_total", ("d", "k", "c/1", "text")): 1,
        ("dragoman_endpoint_requests_total", ("d", "GET /x")): 2,
    }


@pytest.mark.parametrize(("age", "seconds"), [("7d", 7 * DAY), ("12h", DAY / 2), ("30m", 1800.0)])
def test_ages(age: str, seconds: float) -> None:
    assert parse_age(age) == seconds


def test_an_age_is_a_number_with_a_unit() -> None:
    with pytest.raises(Invalid, match="such as 7d"):
        parse_age("a week")


async def test_the_console_says_what_a_move_costs(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await talk(served, "/think hello")
        for query, status, words in (
            ("to=cas", 200, '"losses":[]'), ("to=nova", 404, "'nova' is not served; there are: aap, cas"),
            ("since=soon", 400, "since: must be a number of days"), ("from=aap", 400, "from"),
        ):
            async with served.http.get(served.url(f"/console/api/usage?{query}")) as answer:
                assert (answer.status, words in await answer.text()) == (status, True), await answer.text()


async def test_only_admins_may_see_who_speaks_what(tmp_path: Path) -> None:
    async with serving(tmp_path, auth="keys", admins=["ada"]) as served:
        for user, status in (("ada", 200), ("ben", 403)):
            token = await served.gateway.keys.add(user, user, None)
            headers = {"Authorization": f"Bearer {token}"}
            async with served.http.get(served.url("/console/api/usage"), headers=headers) as answer:
                assert answer.status == status
