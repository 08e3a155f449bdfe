"""ZenFlux's settings over HTTP: one's own choices, which new sessions of every dialect get."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.dialects.zenflux.client import Client, keyed, talking

OPTIONS = [
    {"name": "tone", "type": "select", "options": ["plain", "formal"], "default": "plain", "title": "Tone"},
    {"name": "token", "type": "secret"},
]
AGENTS = {
    "demo": {"backend": "demo", "options": OPTIONS},
    "other": {"backend": "demo", "model": "other-1", "options": []},
}


async def put(client: Client, **groups: Any) -> Any:
    return await client.call("PUT", "/settings", json=groups)


async def test_settings_are_shown_changed_and_described(tmp_path: Path) -> None:
    async with talking(tmp_path, agents=AGENTS) as client:
        shown = await client.call("GET", "/settings")
        assert shown == {"llm": {"COT_AGENT_MODEL": "demo-1"}, "demo": {"tone": "plain", "token": ""}}
        now = await put(client, demo={"tone": "formal", "token": "top-secret"}, api_keys={"X": "y"})
        assert now["demo"] == {"tone": "formal", "token": "***"}
        assert "top-secret" not in repr(await client.call("GET", "/settings"))
        schema = await client.call("GET", "/settings/schema")
        assert {group: set(keys) for group, keys in schema.items()} == {group: set(keys) for group, keys in now.items()}
        assert schema["demo"]["token"].items() >= {"secret": True, "default": "", "type": "text"}.items()
        assert [one["value"] for one in schema["demo"]["tone"]["options"]] == ["plain", "formal"]
        assert [one["value"] for one in schema["llm"]["COT_AGENT_MODEL"]["options"]] == ["demo-1", "other-1"]


async def test_what_is_missing_is_said(tmp_path: Path) -> None:
    async with talking(tmp_path, agents=AGENTS) as client:
        status = await client.call("GET", "/settings/status")
        assert (status["configured"], status["missing"]) == (False, ["demo.token"])
        assert status["summary"]["demo"] == {"configured": 1, "total": 2}
        await put(client, demo={"token": "t"})
        assert (await client.call("GET", "/settings/status"))["configured"] is True


@pytest.mark.parametrize("mask", ["***", "******", "abc...wxyz"])
async def test_a_mask_changes_nothing(tmp_path: Path, mask: str) -> None:
    async with talking(tmp_path, agents=AGENTS) as client:
        await put(client, demo={"token": "top-secret"})
        await put(client, demo={"token": mask})
        created = await client.call("POST", "/conversations")
        view = client.served.gateway.table.get(created["id"]).view
        assert view.settings.secrets == {"token": "top-secret"}


async def test_new_sessions_of_every_dialect_get_them(tmp_path: Path) -> None:
    async with talking(tmp_path, agents=AGENTS) as client:
        await put(client, demo={"tone": "formal"})
        created = await client.call("POST", "/conversations")
        assert client.served.gateway.table.get(created["id"]).view.settings.options == {"tone": "formal"}
        url = client.served.url("/aap/sessions")
        for agent, tone in (({"name": "demo"}, "formal"), ({"name": "demo", "options": {"tone": "plain"}}, "plain")):
            async with client.served.http.post(url, json={"agent": agent}) as answer:
                session = (await answer.json())["sessionId"]
            assert client.served.gateway.table.get(session).view.settings.options["tone"] == tone


async def test_the_model_chooses_the_agent_of_new_conversations(tmp_path: Path) -> None:
    async with talking(tmp_path, agents=AGENTS) as client, client.chat() as chat:
        await put(client, llm={"COT_AGENT_MODEL": "other-1"})
        assert (await client.call("POST", "/conversations"))["agent_id"] == "other"
        run = await chat.run("hello")
        assert (await client.call("GET", f"/conversations/{run.conversation_id}"))["agent_id"] == "other"
        await put(client, llm={"COT_AGENT_MODEL": ""})
        assert (await client.call("POST", "/conversations"))["agent_id"] == "demo"


@pytest.mark.parametrize("body", [
    [], {"demo": "x"}, {"demo": {"tone": 5}}, {"demo": {"tone": "loud"}}, {"llm": {"COT_AGENT_MODEL": "x"}},
    {"demo": {"token": "t"}, "llm": {"COT_AGENT_MODEL": "x"}},
])
async def test_what_is_refused_changes_nothing(tmp_path: Path, body: Any) -> None:
    async with talking(tmp_path, agents=AGENTS) as client:
        before = await client.call("GET", "/settings")
        assert await client.call("PUT", "/settings", json=body, status=400)
        assert await client.call("GET", "/settings") == before


async def test_they_are_ones_own_and_survive_a_restart(tmp_path: Path) -> None:
    async with talking(tmp_path, agents=AGENTS, auth="keys", log="sqlite") as client:
        ann, bob = await keyed(client, "ann"), await keyed(client, "bob")
        await put(ann, demo={"tone": "formal"})
        assert (await bob.call("GET", "/settings"))["demo"]["tone"] == "plain"
        headers = ann.headers
    async with talking(tmp_path, agents=AGENTS, auth="keys", log="sqlite") as client:
        again = Client(client.served, headers["Authorization"].removeprefix("Bearer "))
        assert (await again.call("GET", "/settings"))["demo"]["tone"] == "formal"
