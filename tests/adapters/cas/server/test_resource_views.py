"""CAS's bodies of the catalog: every field is there, and no secret is."""

from typing import Any

import pytest

import gateway.model as m
from adapters.cas.server import resource_views as views
from gateway.ports import Resource
from tests.support.dialect_tables import table


def kept(kind: str, body: dict[str, Any], **more: Any) -> Resource:
    return Resource(
        kind=kind, resource_id=f"{kind}_1", owner="", ordinal=1, version=2, created_at=0.0, updated_at=1.5,
        body={"metadata": {}, **body}, secrets={"token": "hush"}, **more,
    )


def test_an_agent_always_has_all_its_fields() -> None:
    body = {"name": "a", "description": None, "system": None, "model": "m", "cas": {}, "metadata": {}}
    shown = views.agent_body(table("cas"), kept("agent", body), body, None)
    assert shown == {
        "id": "agent_1", "type": "agent", "name": "a", "description": "", "model": "m", "system": "", "tools": [],
        "mcp_servers": [], "skills": [], "metadata": {}, "version": 2, "archived_at": None,
        "created_at": "1970-01-01T00:00:00.000Z", "updated_at": "1970-01-01T00:00:01.500Z",
    }


@pytest.mark.parametrize("kind", ["agent", "environment", "file", "vault", "credential", "memory_store", "memory"])
def test_what_was_deleted_is_named(kind: str) -> None:
    shown = views.deleted_body(table("cas"), kind, "x")
    assert shown["id"] == "x"
    assert shown["type"].endswith("_deleted")


def test_no_view_shows_a_secret() -> None:
    shown = views.credential_body(
        table("cas"), kept("credential", {"name": None, "auth": {"type": "t"}}, parent="vault_1")
    )
    assert (shown["vault_id"], shown["auth"]) == ("vault_1", {"type": "t"})
    assert "hush" not in repr(shown)


def test_a_memory_is_shown_with_or_without_its_words() -> None:
    memory = kept("memory", {"path": "/a", "content": "words", "sha256": "0", "size": 5}, parent="memstore_1")
    assert views.memory_body(table("cas"), memory, whole=True)["content"] == "words"
    assert "content" not in views.memory_body(table("cas"), memory, whole=False)


def test_a_model_is_called_by_the_title_of_its_agent() -> None:
    assert views.model_body(table("cas"), "m", m.AgentCard(name="a", title="T"))["display_name"] == "T"
    assert views.model_body(table("cas"), "m", m.AgentCard(name="a"))["display_name"] == "a"
