"""What a new session needs: its agent, environment, files, vaults, memory stores and environment variables."""

import re
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

import gateway.model as m
from adapters.cas.wire import NOTES_STORE, AgentRef, CasSettings, InlineEnvironment
from gateway.errors import Conflict, Invalid
from gateway.http import Context, validate
from gateway.json_values import JsonObject

from . import resource_views as views
from .agents import UserAgents
from .environments import create_environment, find_environment
from .resource_routes import not_found_as


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentChoice:
    """The agent of a new session: its name, its settings, and the snapshot that clients see from now on."""

    agent: str
    snapshot: JsonObject
    agent_id: str
    version: int
    settings: m.Settings


class EnvironmentChoice(NamedTuple):
    """The environment of a new session."""

    environment_id: str
    self_hosted: bool


async def choose_agent(context: Context[CasSettings], owner: str, ref: str | JsonObject) -> AgentChoice:
    """The agent that a new session names: by its id, or as an object with a version and changes for this session."""
    fields = validate(AgentRef, {"id": ref} if isinstance(ref, str) else ref, "agent")
    agents = UserAgents(context, owner)
    with not_found_as("Agent", fields.id if not fields.version else f"{fields.id}, version {fields.version}"):
        found = await agents.find(fields.id, fields.version or None)
    newest = found if not fields.version else await agents.find(fields.id)
    if newest.archived_at is not None:
        raise Conflict(f"Agent '{fields.id}' is archived.", param="agent")
    body = agents.changed(found.body, fields)
    card = agents.card_of(body)
    shown, skills = await agents.session_skills(found, fields)
    snapshot = views.agent_body(context.table, found, body, card, shown)
    return AgentChoice(
        agent=card.name, snapshot=snapshot, agent_id=found.resource_id,
        version=found.version, settings=replace(agents.settings_of(found, body), skills=skills),
    )


async def choose_environment(context: Context[CasSettings], owner: str, body: JsonObject) -> EnvironmentChoice:
    """The environment that the body of a new session names or describes.

    A described environment is made here: call this when nothing else can be refused any more.
    """
    named, given = body.get("environment_id"), body.get("environment")
    if named is not None and given is not None and named != given:
        raise Invalid("environment_id and environment exclude each other: send one of them", param="environment")
    ref, param = (given, "environment") if named is None else (named, "environment_id")
    if isinstance(ref, dict):
        made = await create_environment(context, owner, validate(InlineEnvironment, ref, param))
        return EnvironmentChoice(made.resource_id, made.body["config"]["type"] == "self_hosted")
    if not isinstance(ref, str) or not ref:
        raise Invalid(f"{param}: the id of an environment is required, or 'environment' with a config", param=param)
    with not_found_as("Environment", ref):
        found = await find_environment(context, owner, ref)
    if found.archived_at is not None:
        raise Conflict(f"Environment '{ref}' is archived.", param=param)
    return EnvironmentChoice(found.resource_id, found.body["config"]["type"] == "self_hosted")




async def check_file(context: Context[CasSettings], owner: str, file_id: str) -> None:
    """Refuse a file that cannot be mounted, because it is unknown or not ready."""
    await _check_exists(context, owner, "file", "File", file_id)


async def check_vault(context: Context[CasSettings], owner: str, vault_id: str) -> None:
    await _check_exists(context, owner, "vault", "Vault", vault_id)


async def check_memory_store(context: Context[CasSettings], owner: str, store_id: str) -> None:
    if store_id != NOTES_STORE:
        await _check_exists(context, owner, "memory_store", "Memory store", store_id)


async def _check_exists(context: Context[CasSettings], owner: str, kind: str, noun: str, resource_id: str) -> None:
    """Refuse an unknown resource that a body names as invalid; only one that the path names is not found."""
    with not_found_as(noun, resource_id, refusal=Invalid):
        found = await context.resources.get(kind, owner, resource_id)
    if found.archived_at is not None:
        raise Invalid(f"{noun} '{resource_id}' is archived.")


VARIABLES_FIELD = "environment_variables"
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MAX_VARIABLES, MAX_VALUE_BYTES, MAX_TOTAL_BYTES = 64, 8 * 1024, 64 * 1024
RESERVED = ("SERVER_ENDPOINT", "USER_ID", "WORK_DIR")
RESERVED_PREFIXES = ("CAW_", "QODER_")


def read_variables(given: str | dict[str, str] | None) -> dict[str, str]:
    """`KEY=VALUE` parted by `;` or newline, or an object, as names and values; a name given twice keeps its last."""
    if isinstance(given, str) and len(given) > 2 * MAX_TOTAL_BYTES:
        raise _refusal(
            f"names and values together may have {MAX_TOTAL_BYTES} bytes, and these are {len(given)} characters"
        )
    variables = (
        dict(_read_entry(entry) for entry in _split_entries(given)) if isinstance(given, str) else dict(given or {})
    )
    for name, value in variables.items():
        _check(name, value)
    if len(variables) > MAX_VARIABLES:
        past = [*variables][MAX_VARIABLES]
        raise _refusal(f"{len(variables)} variables, of which {MAX_VARIABLES} are allowed; '{past}' is one too many")
    total = 0
    for name, value in variables.items():
        total += _size(name) + _size(value)
        if total > MAX_TOTAL_BYTES:
            raise _refusal(f"names and values together may have {MAX_TOTAL_BYTES} bytes; '{name}' goes beyond that")
    return variables


def refuse_variables(variables: dict[str, str]) -> None:
    """Refuse environment variables for a self-hosted environment, which sets its own."""
    if variables:
        raise _refusal(f"a self-hosted environment does not support variables, such as '{next(iter(variables))}'")


def _split_entries(given: str) -> list[str]:
    return [entry for entry in re.split(r"[;\n]", given) if entry.strip()]


def _read_entry(entry: str) -> tuple[str, str]:
    name, equals, value = entry.removesuffix("\r").lstrip().partition("=")
    if not equals:
        raise _refusal(f"'{_short(name.strip())}' has no value; write KEY=VALUE")
    return name, value


def _check(name: str, value: str) -> None:
    if not VARIABLE_NAME.fullmatch(name):
        raise _refusal(f"'{_short(name)}' is not a name: letters, digits and '_', not beginning with a digit")
    if name in RESERVED:
        raise _refusal(f"'{name}' is reserved")
    if name.startswith(RESERVED_PREFIXES):
        raise _refusal(f"'{_short(name)}' begins with a reserved prefix: {', '.join(RESERVED_PREFIXES)}")
    if "\0" in value:
        raise _refusal(f"the value of '{_short(name)}' has a character that no variable can have")
    if _size(value) > MAX_VALUE_BYTES:
        raise _refusal(
            f"the value of '{_short(name)}' has {_size(value)} bytes, of which {MAX_VALUE_BYTES} are allowed"
        )


def _size(text: str) -> int:
    return len(text.encode())


def _short(name: str) -> str:
    return name if len(name) <= 64 else f"{name[:64]}…"


def _refusal(why: str) -> Invalid:
    return Invalid(f"{VARIABLES_FIELD}: {why}", param=VARIABLES_FIELD)
