"""What people say, and which servers their session has, as an ACP agent is told it."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import gateway.model as m
from gateway.backends.acp import KIND, AcpSettings
from gateway.backends.acp.mcp_relay import McpRelay, mcp_server_params
from gateway.backends.acp.prompt import PromptOptions, addresses_in, prompt_blocks
from gateway.backends.acp.session_folder import SessionFolder
from gateway.backends.acp.turn import preset_decision
from gateway.client import AddressPolicy
from gateway.errors import Forbidden, Invalid
from tests.support.backends.acp_turns import Turn


def told(folder: Path, *parts: Any, **more: Any) -> list[dict[str, Any]]:
    return prompt_blocks(m.SendMessage(content=parts, **more), SessionFolder(folder), PromptOptions(images=True))


def test_every_part_has_its_block(tmp_path: Path) -> None:
    assert told(tmp_path, m.TextPart(text="a"), m.DataPart(type="card", content={"x": 1})) == [
        {"type": "text", "text": "a"}, {"type": "text", "text": 'card: {"x":1}'}]
    assert told(tmp_path, m.ImagePart(url="https://x/y.png", media_type="image/png")) == [
        {"type": "resource_link", "name": "y.png", "uri": "https://x/y.png", "mimeType": "image/png"}]
    assert told(tmp_path, m.FilePart(name="a.pdf", url="https://x/a.pdf", size=7)) == [
        {"type": "resource_link", "name": "a.pdf", "uri": "https://x/a.pdf", "size": 7}]
    assert told(tmp_path, m.FilePart(name="b", file_id="file_1")) == [
        {"type": "resource_link", "name": "b", "uri": "file-id:file_1"}]
    assert told(tmp_path) == [{"type": "text", "text": ""}]


def test_a_schema_is_asked_for_in_words(tmp_path: Path) -> None:
    _, asked = told(tmp_path, m.TextPart(text="a"), output_schema={"type": "object"})
    assert '{"type":"object"}' in asked["text"]


@pytest.mark.parametrize("url", ["data:image/png;base64,???", "data:image/png"])
def test_broken_data_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(Invalid, match="data: address"):
        told(tmp_path, m.ImagePart(url=url))


@pytest.mark.parametrize("name", ["..", "/", "", "a/../..", "x\0y"])
def test_a_file_of_any_name_is_inside_or_refused(tmp_path: Path, name: str) -> None:
    inside = tmp_path / "inside"
    try:
        [link] = told(inside, m.FilePart(name=name, url="data:,x"))
        assert link["uri"].startswith(f"{inside.resolve().as_uri()}/")
    except Forbidden:
        assert name.endswith("..")
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]


async def test_servers_with_an_address_and_no_commands() -> None:
    given = [
        {"name": "a", "url": "https://a.corp", "headers": {"X": "1"}},
        {"name": "b", "type": "sse", "url": "https://b.corp"}, {"name": "c", "command": "rm"},
    ]
    listed, relay = AddressPolicy(["*.corp"]), McpRelay(AddressPolicy())
    assert await mcp_server_params(given, frozenset({"http"}), listed, relay) == [
        {"type": "http", "name": "a", "url": "https://a.corp", "headers": [{"name": "X", "value": "1"}]}]
    assert [one["name"] for one in await mcp_server_params(given, frozenset({"http", "sse"}), listed, relay)] == [
        "a",
        "b",
    ]
    assert await mcp_server_params(given, frozenset(), listed, relay) == []


def test_an_address_that_is_refused_is_not_told(tmp_path: Path) -> None:
    parts = m.ImagePart(url="http://10.0.0.1/x.png"), m.FilePart(name="a.pdf", url="file:///etc/passwd")
    command = m.SendMessage(content=(*parts, m.ImagePart(url="data:,x"), m.FilePart(name="b", file_id="file_1")))
    urls = addresses_in(command)
    assert urls == {"http://10.0.0.1/x.png", "file:///etc/passwd"}
    assert prompt_blocks(
        m.SendMessage(content=parts), SessionFolder(tmp_path), PromptOptions(images=True, refused=urls)
    ) == [
        {"type": "text", "text": "[a picture: its address is not passed on]"},
        {"type": "text", "text": "[a.pdf: its address is not passed on]"},
    ]


def test_who_plans_carries_nothing_out() -> None:
    call = m.ToolCall(call_id="c", name="execute")
    assert preset_decision(Turn(m.SendMessage(content="x", mode="planning")), call) is False
    assert preset_decision(Turn(m.SendMessage(content="x")), call) is None


def test_settings_are_held_to_their_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    assert KIND.settings is AcpSettings
    with pytest.raises(ValidationError, match="command"):
        AcpSettings.model_validate({})
    with pytest.raises(ValidationError, match="the environment has no variable"):
        AcpSettings.model_validate({"command": "x", "env": {"A": "$NOBODY_SET_THIS"}})
    monkeypatch.setenv("SOMEBODY_SET_THIS", "swordfish")
    made = AcpSettings.model_validate({"command": "x", "env": {"A": "$SOMEBODY_SET_THIS"}})
    assert made.secrets == ("swordfish",)
    assert "swordfish" not in repr(made)
