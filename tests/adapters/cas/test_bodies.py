"""The rows of CAS's bodies: each has a struct, whose fields it writes and reads."""

import pytest
import yaml

from adapters.cas.bodies import (
    OBJECTS,
    AgentSettingsBody,
    Base64SourceBody,
    Body,
    DeletedBody,
    ModelBody,
    NewAgentBody,
    NewSessionBody,
    PageBody,
    ToolConfigBody,
    ToolsetBody,
    UsedAgentBody,
)
from mappings.language import builtin_path
from tests.support.dialect_tables import table


def test_every_row_has_a_struct() -> None:
    rows = yaml.safe_load(builtin_path("cas").read_text("utf-8"))["objects"]
    assert OBJECTS.keys() == rows.keys()
    assert all(getattr(kind, "row", name) == name for name, kind in OBJECTS.items())


@pytest.mark.parametrize(("row", "body", "told"), [
    ("page", PageBody(items=[1], first_id=None, last_id=None, has_more=False, next_page=None),
     {"data": [1], "first_id": None, "last_id": None, "has_more": False, "next_page": None}),
    ("model", ModelBody(id="m", name="M"), {"id": "m", "type": "model", "display_name": "M", "is_enabled": True}),
    ("deleted.vault", DeletedBody(id="v"), {"id": "v", "type": "vault_deleted"}),
    ("session.new", NewSessionBody(agent="a", environment_id="e", title=None), {"agent": "a", "environment_id": "e"}),
    ("agent.settings", AgentSettingsBody(system="x"), {"system": "x"}),
    ("agent.used", UsedAgentBody(id="a", settings={"system": "x"}), {"id": "a", "type": "agent", "system": "x"}),
    ("agent.new", NewAgentBody(name="a", settings={"system": "x"}, model="m", metadata={}),
     {"name": "a", "system": "x", "model": "m", "metadata": {}}),
    ("tool.config", ToolConfigBody(name="t", enabled=True, policy="always_ask"),
     {"name": "t", "enabled": True, "permission_policy": {"type": "always_ask"}}),
    ("toolset", ToolsetBody(), {"type": "agent_toolset_20260401"}),
    ("source.base64", Base64SourceBody(media_type="image/png", data="AA=="),
     {"type": "base64", "media_type": "image/png", "data": "AA=="}),
])
def test_a_body_is_written_in_the_order_of_its_row(row: str, body: Body, told: dict[str, object]) -> None:
    assert [*table("cas").object(row, body).items()] == [*told.items()]


def test_bodies_of_others_are_read_by_the_same_rows() -> None:
    agent = table("cas").read_object("agent", {
        "id": "a", "type": "assistant", "model": {"id": "m", "speed": "fast"}, "archived_at": "long ago", "tools": 5})
    assert (agent["id"], agent["model"], agent["archived"], agent["tools"]) == ("a", "m", "long ago", None)
    config = table("cas").read_object("tool.config", {"type": "Bash", "permission_policy": "always_ask"})
    assert config == {"name": "Bash", "enabled": None, "policy": "always_ask"}
