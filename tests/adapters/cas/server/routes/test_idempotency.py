"""Requests to CAS's catalog that come twice with the same key."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.dialects.cas.catalog_server import Catalog, catalog, form
from tests.support.key_stores import key_store

NEW = {"name": "a", "model": "demo"}


@pytest.fixture
async def cas(tmp_path: Path) -> AsyncIterator[Catalog]:
    async with catalog(tmp_path) as served:
        yield served


async def test_an_agent_is_made_once(cas: Catalog) -> None:
    first, *others = await asyncio.gather(*(cas.post("/agents", NEW, Idempotency_Key="k") for _ in range(5)))
    assert {answer.status for answer in others} == {201}
    assert all(answer.body == first.body for answer in others)
    assert len((await cas.get("/agents")).body["data"]) == 2
    conflict = await cas.post("/agents", {**NEW, "name": "b"}, X_Idempotency_Key="k")
    assert (conflict.status, conflict.body["error"]["type"]) == (409, "conflict_error")
    again = await cas.post("/agents", NEW, Idempotency_Key="k")
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.headers["x-request-id"] != first.headers["x-request-id"]


async def test_a_deletion_is_answered_again(cas: Catalog) -> None:
    made = await cas.made("/agents", NEW)
    first, second = [await cas.delete(f"/agents/{made['id']}", Idempotency_Key="k") for _ in range(2)]
    assert (first.status, second.status, second.body) == (200, 200, first.body)
    assert (await cas.delete(f"/agents/{made['id']}", Idempotency_Key="other")).status == 404


async def test_a_file_is_kept_once(cas: Catalog, tmp_path: Path) -> None:
    answers = [await cas.post("/files", form(b"abc"), Idempotency_Key="k") for _ in range(2)]
    assert answers[0].body == answers[1].body
    assert (await cas.post("/files", form(b"abd"), Idempotency_Key="k")).status == 409
    assert (await cas.post("/files", form(b"abc", "other.txt"), Idempotency_Key="k")).status == 409
    assert len((await cas.get("/files")).body["data"]) == 1
    assert len([path for path in (tmp_path / "data" / "files").iterdir() if path.name != ".secret"]) == 1


async def test_a_refusal_may_be_mended_under_the_same_key(cas: Catalog) -> None:
    assert (await cas.post("/agents", {"name": "a"}, Idempotency_Key="k")).status == 400
    assert (await cas.post("/agents", NEW, Idempotency_Key="k")).status == 201


async def test_two_people_may_use_the_same_key(tmp_path: Path) -> None:
    keys = key_store(tmp_path / "data")
    ada, bob = keys.add("ada"), keys.add("bob")
    async with catalog(tmp_path, auth="keys") as cas:
        made = [await cas.known_as(token).post("/agents", NEW, Idempotency_Key="k") for token in (ada, bob)]
        assert made[0].body["id"] != made[1].body["id"]
