"""The routes of CAS's catalog: all of them under both mounts, and each change safe to repeat."""

from pathlib import Path

import pytest

from adapters.cas.server.routes import routes as routes_of
from gateway.http.security import policy_of
from tests.support.dialects.cas.catalog_server import AT, Catalog, catalog

NOUNS = ("agents", "environments", "files", "vaults", "memory_stores", "models")


async def test_both_mounts_have_the_same_routes(tmp_path: Path) -> None:
    async with catalog(tmp_path) as cas:
        routes = list(routes_of(cas.context))
        plain = {(route.method, route.path.removeprefix(AT)) for route in routes if f"{AT}/v1" not in route.path}
        again = {(route.method, route.path.removeprefix(f"{AT}/v1")) for route in routes if f"{AT}/v1" in route.path}
        assert plain == again
        assert all(policy_of(route.handler).is_idempotent for route in routes if route.method in ("POST", "DELETE"))
        for noun in NOUNS:
            assert (await cas.get(f"/{noun}")).body == (await cas.get(f"/v1/{noun}")).body


@pytest.mark.parametrize(("method", "path"), [("DELETE", "/agents"), ("POST", "/models"), ("PUT", "/files")])
async def test_what_cannot_be_done_is_said_in_the_dialects_shape(tmp_path: Path, method: str, path: str) -> None:
    async with catalog(tmp_path) as cas:
        refused = await Catalog(cas.served).call(method, path)
        assert (refused.status, refused.body["type"]) == (405, "error")


@pytest.mark.parametrize("path", ["/agents", "/v1/agents", "/sessions", "/v1/sessions"])
async def test_a_body_has_the_limit_of_the_dialect_under_both_mounts(tmp_path: Path, path: str) -> None:
    async with catalog(tmp_path, dialects={"cas": {"body_bytes": 1024}}) as cas:
        refused = await cas.post(path, {"name": "x" * 1024})
        assert (refused.status, refused.body["error"]["message"]) == (400, "the body is larger than 1024 bytes")
