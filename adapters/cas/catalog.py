"""What a session needs of the catalog: its agent as it is now, its environment, its files, vaults and memories."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from gateway.errors import Conflict, Invalid
from gateway.model import Settings
from gateway.web import Context, checked

from . import catalog_views as views
from .catalog_agents import Agents
from .catalog_environments import found_environment, made_environment
from .catalog_routes import catalog_routes
from .catalog_shelf import finding
from .catalog_views import OBJECTS as CATALOG_OBJECTS
from .catalog_wire import AgentRef, InlineEnvironment

__all__ = [
    "CATALOG_OBJECTS",
    "AgentChoice",
    "EnvironmentChoice",
    "agent_snapshot",
    "catalog_routes",
    "check_file",
    "check_memory_store",
    "check_vault",
    "environment_id",
    "environment_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentChoice:
    """The agent of a new session: who answers, how, and what clients are shown of it from now on."""

    agent: str
    snapshot: dict[str, Any]
    agent_id: str
    version: int
    settings: Settings


class EnvironmentChoice(NamedTuple):
    """The environment of a new session."""

    environment_id: str
    self_hosted: bool


async def agent_snapshot(context: Context, owner: str, ref: str | dict[str, Any]) -> AgentChoice:
    """The agent that a new session names: by its id, or as an object with a version and changes for this session."""
    said = checked(AgentRef, {"id": ref} if isinstance(ref, str) else ref, "agent")
    agents = Agents(context, owner)
    with finding("Agent", said.id if not said.version else f"{said.id}, version {said.version}"):
        found = await agents.find(said.id, said.version or None)
    newest = found if not said.version else await agents.find(said.id)
    if newest.archived_at is not None:
        raise Conflict(f"Agent '{said.id}' is archived.", param="agent")
    body = agents.changed(found.body, said)
    card = agents.card_of(body)
    return AgentChoice(
        agent=card.name, snapshot=views.agent(context.table, found, body, card), agent_id=found.resource_id,
        version=found.version, settings=agents.settings_of(body),
    )


async def environment_of(context: Context, owner: str, body: dict[str, Any]) -> EnvironmentChoice:
    """The environment that the body of a new session names or describes.

    One that is described is made here: call this when nothing else can be refused any more.
    """
    named, given = body.get("environment_id"), body.get("environment")
    if named is not None and given is not None and named != given:
        raise Invalid("environment_id and environment exclude each other: send one of them", param="environment")
    said, param = (given, "environment") if named is None else (named, "environment_id")
    if isinstance(said, dict):
        made = await made_environment(context, owner, checked(InlineEnvironment, said, param))
        return EnvironmentChoice(made.resource_id, made.body["config"]["type"] == "self_hosted")
    if not isinstance(said, str) or not said:
        raise Invalid(f"{param}: the id of an environment is required, or 'environment' with a config", param=param)
    with finding("Environment", said):
        found = await found_environment(context, owner, said)
    if found.archived_at is not None:
        raise Conflict(f"Environment '{said}' is archived.", param=param)
    return EnvironmentChoice(found.resource_id, found.body["config"]["type"] == "self_hosted")


environment_id = environment_of


async def check_file(context: Context, owner: str, file_id: str) -> None:
    """A file that a session mounts is there and ready."""
    await _must_exist(context, owner, "file", "File", file_id)


async def check_vault(context: Context, owner: str, vault_id: str) -> None:
    await _must_exist(context, owner, "vault", "Vault", vault_id)


async def check_memory_store(context: Context, owner: str, store_id: str) -> None:
    await _must_exist(context, owner, "memory_store", "Memory store", store_id)


async def _must_exist(context: Context, owner: str, kind: str, noun: str, resource_id: str) -> None:
    """What a request names beside what it is about is its own mistake: refused as invalid, not as not found."""
    with finding(noun, resource_id, refusal=Invalid):
        found = await context.resources.get(kind, owner, resource_id)
    if found.archived_at is not None:
        raise Invalid(f"{noun} '{resource_id}' is archived.")
