"""CAS's vaults over real HTTP: what is secret goes in and never comes out."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.dialects.cas.catalog_server import Catalog, catalog

BEARER = {"type": "static_bearer", "mcp_server_url": "https://mcp.example", "token": "s3cret-token"}
VARIABLE = {"type": "environment_variable", "secret_name": "KEY", "secret_value": "s3cret-value",
            "networking": {"type": "unrestricted"}}
OAUTH = {
    "type": "mcp_oauth", "mcp_server_url": "https://mcp.example", "access_token": "s3cret-access",
    "expires_at": "2027-01-01T00:00:00Z",
    "refresh": {"client_id": "c", "refresh_token": "s3cret-refresh", "token_endpoint": "https://auth.example",
                "token_endpoint_auth": {"type": "client_secret_post", "client_secret": "s3cret-client"}},
}


@pytest.fixture
async def cas(tmp_path: Path) -> AsyncIterator[Catalog]:
    async with catalog(tmp_path) as served:
        yield served


@pytest.mark.parametrize("auth", [BEARER, VARIABLE, OAUTH])
async def test_a_secret_goes_in_and_never_comes_out(cas: Catalog, auth: dict[str, Any]) -> None:
    vault = await cas.made("/vaults", {"display_name": "v"})
    at = f"/vaults/{vault['id']}/credentials"
    made = await cas.made(at, {"auth": auth, "display_name": "c"})
    answers = [made, (await cas.get(at)).body, (await cas.get(f"{at}/{made['id']}")).body,
               (await cas.post(f"{at}/{made['id']}", {"metadata": {"a": "b"}})).body,
               (await cas.post(f"{at}/{made['id']}/archive")).body]
    assert "s3cret" not in repr(answers)
    assert made["auth"]["type"] == auth["type"]
    assert made["vault_id"] == vault["id"]
    kept = await cas.gateway.resources.get("credential", "", made["id"])
    assert "s3cret" not in repr(kept)
    assert "s3cret" in repr(kept.secrets)


async def test_a_secret_is_set_anew_and_the_others_stay(cas: Catalog) -> None:
    vault = await cas.made("/vaults", {"display_name": "v"})
    at = f"/vaults/{vault['id']}/credentials"
    made = await cas.made(at, {"auth": OAUTH})
    change = {"auth": {"type": "mcp_oauth", "refresh": {"refresh_token": "new", "scope": "all"}}}
    changed = await cas.post(f"{at}/{made['id']}", change)
    assert changed.body["auth"]["refresh"]["scope"] == "all"
    assert changed.body["auth"]["expires_at"] == OAUTH["expires_at"]
    assert (await cas.gateway.resources.get("credential", "", made["id"])).secrets == {
        "access_token": "s3cret-access", "refresh.refresh_token": "new",
        "refresh.token_endpoint_auth.client_secret": "s3cret-client",
    }
    for word, value in (("type", "static_bearer"), ("mcp_server_url", "https://elsewhere.example")):
        refused = await cas.post(f"{at}/{made['id']}", {"auth": {word: value}})
        assert (refused.status, refused.body["error"]["param"]) == (400, f"auth.{word}")


@pytest.mark.parametrize("auth", [
    None, "x", {}, {"type": "other"}, {**BEARER, "token": ""}, {**BEARER, "token": 5}, {**BEARER, "token": ["s3cret"]},
    {**BEARER, "mcp_server_url": "ftp://x"}, {**VARIABLE, "secret_name": "a-b"}, {**VARIABLE, "secret_value": None},
    {**OAUTH, "expires_at": "soon"}, {**OAUTH, "refresh": {"refresh_token": "s3cret"}}, {**OAUTH, "refresh": "s3cret"},
])
async def test_a_credential_of_the_wrong_shape_is_refused_without_repeating_it(cas: Catalog, auth: Any) -> None:
    vault = await cas.made("/vaults", {"display_name": "v"})
    refused = await cas.post(f"/vaults/{vault['id']}/credentials", {"auth": auth})
    assert refused.status == 400
    assert "s3cret" not in repr(refused.body)


async def test_a_vault_takes_its_credentials_along(cas: Catalog) -> None:
    vault, other = [await cas.made("/vaults", {"display_name": "v"}) for _ in range(2)]
    made = await cas.made(f"/vaults/{vault['id']}/credentials", {"auth": BEARER})
    assert (await cas.get(f"/vaults/{other['id']}/credentials/{made['id']}")).status == 404
    assert (await cas.get(f"/vaults/{other['id']}/credentials")).body["data"] == []
    assert (await cas.get("/vaults/vault_none/credentials")).status == 404
    await cas.post(f"/vaults/{vault['id']}/archive")
    assert (await cas.post(f"/vaults/{vault['id']}/credentials", {"auth": BEARER})).status == 409
    assert (await cas.post(f"/vaults/{vault['id']}/credentials/{made['id']}", {"display_name": "x"})).status == 409
    assert (await cas.delete(f"/vaults/{vault['id']}")).body["type"] == "vault_deleted"
    assert (await cas.get(f"/vaults/{vault['id']}/credentials/{made['id']}")).status == 404
