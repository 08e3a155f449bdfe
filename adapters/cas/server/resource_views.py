"""The bodies of CAS's agents, environments, files, vaults and memories, as the table spells them."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import gateway.model as m
from adapters.cas.bodies import (
    AgentBody,
    CredentialBody,
    CredentialValidationBody,
    DeletedBody,
    EnvironmentBody,
    FileBody,
    MemoryBody,
    MemoryStoreBody,
    MemoryVersionBody,
    ModelBody,
    VaultBody,
)
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import DialectTable, Resource

from .inbound import toolset_of_card


class CommonFields(TypedDict):
    """The fields of every resource that can be archived."""

    id: str
    metadata: Mapping[str, JsonValue]
    created_at: float
    updated_at: float
    archived_at: float | None


def common_fields(resource: Resource) -> CommonFields:
    return {
        "id": resource.resource_id, "metadata": resource.body.get("metadata", {}), "created_at": resource.created_at,
        "updated_at": resource.updated_at, "archived_at": resource.archived_at,
    }


def agent_body(
    table: DialectTable, found: Resource, body: Mapping[str, Any], card: m.AgentCard | None,
    skills: Sequence[JsonValue] = (),
) -> JsonObject:
    """An agent with this body and these skills; a configured one shows the tools of its card."""
    own = body[table.dialect]
    tools = toolset_of_card(card) if card and "agent" in body and "tools" not in own else own.get("tools")
    return table.object(AgentBody.row, AgentBody(
        **common_fields(found),
        version=found.version,
        name=body["name"],
        description=body["description"] or "",
        system=body["system"] or "",
        model=own.get("model", body["model"]),
        tools=tools or [],
        mcp_servers=own.get("mcp_servers") or [],
        skills=list(skills),
    ))


def model_body(table: DialectTable, model_id: str, card: m.AgentCard) -> JsonObject:
    return table.object(ModelBody.row, ModelBody(
        id=model_id, name=card.title or card.name,
    ))


def deleted_body(table: DialectTable, kind: str, resource_id: str) -> JsonObject:
    return table.object(f"deleted.{kind}", DeletedBody(id=resource_id))


def environment_body(table: DialectTable, found: Resource) -> JsonObject:
    body = found.body
    return table.object(EnvironmentBody.row, EnvironmentBody(
        **common_fields(found),
        name=body["name"],
        description=body["description"] or "",
        config=body["config"],
    ))


def file_body(table: DialectTable, found: Resource) -> JsonObject:
    body = found.body
    return table.object(FileBody.row, FileBody(
        id=found.resource_id, metadata=body.get("metadata", {}), created_at=found.created_at,
        name=body["name"], media_type=body["media_type"], size=body["size"],
        sha256=body["sha256"],
    ))


def vault_body(table: DialectTable, found: Resource) -> JsonObject:
    return table.object(VaultBody.row, VaultBody(
        **common_fields(found), name=found.body["name"],
    ))


def credential_body(table: DialectTable, found: Resource) -> JsonObject:
    body = found.body
    return table.object(CredentialBody.row, CredentialBody(
        **common_fields(found), vault_id=found.parent, name=body["name"], auth=body["auth"],
    ))


def memory_store_body(table: DialectTable, found: Resource, entries: int, size: int) -> JsonObject:
    body = found.body
    return table.object(MemoryStoreBody.row, MemoryStoreBody(
        **common_fields(found), name=body["name"], description=body["description"] or "",
        status="active" if found.archived_at is None else "archived", entries=entries, bytes=size,
    ))


def memory_body(table: DialectTable, found: Resource, *, whole: bool) -> JsonObject:
    """`whole` shows the text of the memory as well as its path."""
    body = found.body
    return table.object(MemoryBody.row, MemoryBody(
        id=found.resource_id, metadata=body.get("metadata", {}), created_at=found.created_at,
        updated_at=found.updated_at,
        store_id=found.parent, version_id=version_id(found),
        path=body["path"], content=body["content"] if whole else None, sha256=body["sha256"], size=body["size"],
    ))


def version_id(found: Resource) -> str:
    """The id of one version of a memory."""
    return f"memver_{found.resource_id[4:]}_{found.version}"


def operation(found: Resource) -> str:
    """The operation that made this version of a memory."""
    return "created" if found.version == 1 else "modified"


def memory_version_body(table: DialectTable, found: Resource, *, whole: bool) -> JsonObject:
    body = found.body
    return table.object(MemoryVersionBody.row, MemoryVersionBody(
        id=version_id(found), memory_id=found.resource_id, store_id=found.parent,
        operation=operation(found), path=body["path"], content=body["content"] if whole else None,
        sha256=body["sha256"], size=body["size"], created_at=found.updated_at,
    ))


def validation_body(table: DialectTable, found: Resource, at: float) -> JsonObject:
    """The state of a credential without a request: no address that a client names is fetched here."""
    renews = any(place.endswith("refresh_token") for place in found.secrets)
    return table.object(CredentialValidationBody.row, CredentialValidationBody(
        id=found.resource_id, vault_id=found.parent, has_refresh_token=renews, at=at,
    ))
