"""Published clients use the catalog as it is; the strict one checks every answer against its own types."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import anthropic
import pytest
import qca

from tests.support.dialects.cas.catalog_server import Catalog, catalog

TOOLS = [
    {"type": "agent_toolset_20260401", "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}]},
    {"type": "custom", "name": "weather", "description": "d", "input_schema": {"type": "object", "properties": {}}},
]


@pytest.fixture
async def cas(tmp_path: Path) -> AsyncIterator[Catalog]:
    async with catalog(tmp_path) as served:
        yield served


@pytest.fixture
async def client(cas: Catalog) -> AsyncIterator[qca.AsyncManaged]:
    async with qca.AsyncManaged(pat="x", base_url=cas.base, _strict_response_validation=True) as made:
        yield made


async def test_agents_and_models(client: qca.AsyncManaged) -> None:
    models = await client.models.list()
    agent = await client.agents.create(name="a", model=models.data[0].id, tools=TOOLS, metadata={"a": "b"})
    assert (await client.agents.retrieve(agent.id)).to_dict() == agent.to_dict()
    changed = await client.agents.update(agent.id, version=agent.version, system="Be brief.")
    assert (changed.version, changed.system) == (2, "Be brief.")
    with pytest.raises(qca.ConflictError):
        await client.agents.update(agent.id, version=1, system="x")
    assert [one.version async for one in client.agents.versions.list(agent.id, limit=1)] == [2, 1]
    assert [one.id async for one in client.agents.list(limit=1)] == [agent.id, "agent_demo"]
    assert (await client.agents.archive(agent.id)).archived_at
    with pytest.raises(qca.NotFoundError):
        await client.agents.retrieve("agent_none")


async def test_environments(client: qca.AsyncManaged) -> None:
    made = await client.environments.create(name="e", config={"type": "cloud", "packages": {"pip": ["aiohttp"]}})
    assert made.config.packages.pip == ["aiohttp"]
    assert (await client.environments.update(made.id, description="d")).description == "d"
    assert [one.id async for one in client.environments.list()] == [made.id]
    assert (await client.environments.archive(made.id)).archived_at
    assert (await client.environments.delete(made.id)).type == "environment_deleted"


async def test_files(client: qca.AsyncManaged) -> None:
    made = await client.files.upload(file=("x.txt", b"hello"), metadata={"a": "b"}, name="y.txt")
    assert (made.filename, made.status, made.metadata) == ("y.txt", "ready", {"a": "b"})
    async with await client.files.download(made.id) as download:
        assert await download.read() == b"hello"
    assert [one.id async for one in client.files.list()] == [made.id]
    assert (await client.files.delete(made.id)).id == made.id


async def test_vaults(client: qca.AsyncManaged) -> None:
    vault = await client.vaults.create(display_name="v")
    auth = {"type": "static_bearer", "token": "s3cret", "mcp_server_url": "https://mcp.example"}
    made = await client.vaults.credentials.create(vault.id, auth=auth)
    renewed = {"type": "static_bearer", "token": "s3cret too"}
    changed = await client.vaults.credentials.update(made.id, vault_id=vault.id, auth=renewed)
    assert "s3cret" not in f"{made.to_json()}{changed.to_json()}"
    assert [one.id async for one in client.vaults.credentials.list(vault.id)] == [made.id]
    await client.vaults.credentials.archive(made.id, vault_id=vault.id)
    await client.vaults.credentials.delete(made.id, vault_id=vault.id)
    await client.vaults.archive(vault.id)
    assert (await client.vaults.delete(vault.id)).type == "vault_deleted"


async def test_memories(client: qca.AsyncManaged) -> None:
    store = await client.memory_stores.create(name="m")
    made = await client.memory_stores.memories.create(store.id, content="hi", path="/a.md")
    condition = {"type": "content_sha256", "content_sha256": made.content_sha256}
    changed = await client.memory_stores.memories.update(
        made.id, memory_store_id=store.id, content="ho", precondition=condition,
    )
    assert changed.content == "ho"
    with pytest.raises(qca.ConflictError):
        await client.memory_stores.memories.update(
            made.id, memory_store_id=store.id, content="hu", precondition=condition,
        )
    assert [one.path async for one in client.memory_stores.memories.list(store.id)] == ["/a.md"]
    assert (await client.memory_stores.retrieve(store.id)).entry_count == 1
    await client.memory_stores.memories.delete(made.id, memory_store_id=store.id)
    await client.memory_stores.delete(store.id)


async def test_versions_of_memories(client: qca.AsyncManaged) -> None:
    store = await client.memory_stores.create(name="m")
    made = await client.memory_stores.memories.create(store.id, content="hi", path="/a.md")
    other = await client.memory_stores.memories.create(store.id, content="x", path="/b.md")
    await asyncio.sleep(1)
    changed = await client.memory_stores.memories.update(made.id, memory_store_id=store.id, content="ho")
    versions = client.memory_stores.memory_versions
    told = [(one.memory_id, one.operation, one.path, one.content) async for one in versions.list(store.id, limit=1)]
    assert told == [
        (made.id, "modified", "/a.md", None), (other.id, "created", "/b.md", None), (made.id, "created", "/a.md", None)]
    own = [one async for one in versions.list(store.id, memory_id=made.id, operation="modified", view="full")]
    assert [(one.id, one.content, one.type) for one in own] == [
        (changed.memory_version_id, "ho", "memory_version")]
    first = await versions.retrieve(made.memory_version_id, memory_store_id=store.id)
    assert (first.content, first.content_sha256, first.content_size_bytes) == ("hi", made.content_sha256, 2)
    for unknown in ("memver_none_1", made.memory_version_id[:-1] + "9", "nonsense"):
        with pytest.raises(qca.NotFoundError):
            await versions.retrieve(unknown, memory_store_id=store.id)


async def test_credentials_are_not_tried_out(client: qca.AsyncManaged) -> None:
    vault = await client.vaults.create(display_name="v")
    auth = {"type": "mcp_oauth", "access_token": "s3cret", "mcp_server_url": "https://mcp.example"}
    made = await client.vaults.credentials.create(vault.id, auth=auth)
    told = await client.vaults.credentials.mcp_oauth_validate(made.id, vault_id=vault.id)
    assert (told.type, told.status, told.credential_id, told.vault_id, told.has_refresh_token) == (
        "vault_credential_validation", "unknown", made.id, vault.id, False)
    assert told.validated_at and told.mcp_probe is None and told.refresh is None
    bearer = {"type": "static_bearer", "token": "s3cret", "mcp_server_url": "https://other.example"}
    plain = await client.vaults.credentials.create(vault.id, auth=bearer)
    with pytest.raises(qca.BadRequestError):
        await client.vaults.credentials.mcp_oauth_validate(plain.id, vault_id=vault.id)


async def test_the_token_of_a_repository_can_be_renewed(client: qca.AsyncManaged, cas: Catalog) -> None:
    environment = await client.environments.create(name="e", config={"type": "cloud"})
    repository = {"type": "github_repository", "url": "https://host.test/a", "authorization_token": "old"}
    session = await client.sessions.create(
        agent="agent_demo", environment_id=environment.id, resources=[repository])
    [made] = session.resources
    told = await client.sessions.resources.update(made.id, session_id=session.id, authorization_token="new")
    assert (told.id, told.url) == (made.id, "https://host.test/a")
    kept = await cas.context.resources.get("session_resource", "", made.id)
    assert kept.secrets == {"authorization_token": "new"}
    with pytest.raises(qca.BadRequestError):
        await client.sessions.resources.update(made.id, session_id=session.id)
    with pytest.raises(qca.NotFoundError):
        await client.sessions.resources.update("sesr_none", session_id=session.id, authorization_token="new")


async def test_a_client_of_another_house(cas: Catalog) -> None:
    async with anthropic.AsyncAnthropic(auth_token="x", base_url=cas.base) as client:
        file = await client.beta.files.upload(file=("x.html", b"<p>"))
        assert await (await client.beta.files.download(file.id)).read() == b"<p>"
        agent = await client.beta.agents.create(name="a", model="demo-1")
        assert [one.id async for one in client.beta.agents.list(limit=1)] == [agent.id, "agent_demo"]
        assert (await client.beta.models.retrieve("demo-1")).id == "demo-1"
        with pytest.raises(anthropic.NotFoundError):
            await client.beta.models.retrieve("none")
        environment = await client.beta.environments.create(name="e")
        assert (await client.beta.environments.delete(environment.id)).id == environment.id
