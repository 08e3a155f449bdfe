"""CAS's environments over real HTTP: kept, changed, archived, deleted."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.dialects.cas.catalog_server import Catalog, catalog


@pytest.fixture
async def cas(tmp_path: Path) -> AsyncIterator[Catalog]:
    async with catalog(tmp_path) as served:
        yield served


async def test_an_environment_has_a_life(cas: Catalog) -> None:
    config = {"type": "cloud", "networking": {"type": "limited", "allowed_hosts": ["a"]}, "setup_script": "true"}
    made = await cas.made("/environments", {"name": "e", "config": config, "metadata": {"a": "b"}})
    assert made["id"].startswith("env_")
    assert made["config"]["networking"] == {"type": "limited", "allowed_hosts": ["a"]}
    change = {"description": "d", "config": {"type": "self_hosted"}}
    changed = (await cas.post(f"/environments/{made['id']}", change)).body
    assert (changed["description"], changed["config"], changed["name"]) == ("d", {"type": "self_hosted"}, "e")
    assert changed["metadata"] == {"a": "b"}
    archived = (await cas.post(f"/environments/{made['id']}/archive")).body
    assert archived["archived_at"]
    assert (await cas.post(f"/environments/{made['id']}", {"name": "x"})).status == 409
    assert (await cas.delete(f"/environments/{made['id']}")).body == {"id": made["id"], "type": "environment_deleted"}
    assert (await cas.get(f"/environments/{made['id']}")).status == 404


@pytest.mark.parametrize("body", [
    {}, {"name": ""}, {"name": 5}, {"name": "e", "config": "cloud"}, {"name": "e", "config": {"type": "mars"}},
    {"name": "e", "config": {"packages": {"pip": "x"}}}, {"name": "e", "config": {"networking": 1}},
    {"name": "e", "metadata": {"a": None}}, {"name": "e", "description": []}, {"name": "e", "config": None},
])
async def test_an_environment_of_the_wrong_shape_is_refused(cas: Catalog, body: dict[str, Any]) -> None:
    assert (await cas.post("/environments", body)).status == 400


async def test_the_default_environment_is_always_there_and_nobody_s_to_change(cas: Catalog) -> None:
    """It is no part of a list: those are of what clients made."""
    shown = (await cas.get("/environments/env_default")).body
    assert (shown["id"], shown["type"], shown["config"]["type"]) == ("env_default", "environment", "cloud")
    assert (await cas.get("/environments")).body["data"] == []
    for method, path in (("POST", ""), ("PUT", ""), ("POST", "/archive"), ("DELETE", "")):
        refused = await cas.call(method, f"/environments/env_default{path}", {"name": "mine"})
        assert (refused.status, refused.body["error"]["type"]) == (403, "permission_error")
    assert (await cas.get("/environments/env_default")).body == shown
