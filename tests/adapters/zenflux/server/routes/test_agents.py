"""ZenFlux's agents over HTTP: made, listed, used, changed and deleted; those of the settings stay as they are."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.dialects.zenflux.client import API, Client, keyed, talking, talking_reloadable

TUTOR = {"name": "Tutor", "description": "Teaches.", "prompt": "You teach with patience, and you always ask back."}


async def made(client: Client, **fields: Any) -> Any:
    return await client.call("POST", "/agents", json={**TUTOR, **fields})


async def test_the_configured_agent_is_the_first(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        await made(client, agent_id="a0")
        body = await client.call("GET", "/agents")
        assert [one["agent_id"] for one in body["agents"]] == ["demo", "a0"]
        assert body["total"] == 2
        assert body["agents"][0].items() >= {
            "name": "Demo agent", "is_active": True, "total_calls": 0, "last_used_at": None}.items()


async def test_the_front_end_reads_beside_the_wrapper(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.served.http.get(client.served.url(f"{API}/agents")) as answer:
        body = await answer.json()
        assert body["agents"] == body["data"]["agents"]
        assert (body["success"], body["message"]) == (True, "success")


async def test_an_agent_is_made_shown_changed_and_deleted(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        new = await made(client, enabled_capabilities={"clock": False, "rocket": True}, llm={"temperature": 0.5})
        agent_id = new["agent_id"]
        assert new["status"] == "creating"
        shown = await client.call("GET", f"/agents/{agent_id}")
        assert shown.items() >= {
            "name": "Tutor", "description": "Teaches.", "model": "demo-1", "version": "1.0.0", "data_dir": None,
            "llm": {"temperature": 0.5}, "mcp_tools": [], "skills": [], "apis": []}.items()
        assert shown["enabled_capabilities"].items() >= {"clock": False, "calc": True, "rocket": True}.items()
        assert (await client.call("GET", f"/agents/{agent_id}/prompt"))["prompt"] == TUTOR["prompt"]
        changed = await client.call("PUT", f"/agents/{agent_id}", json={"name": "Coach", "prompt": None})
        assert (changed["name"], changed["version"], changed["status"]) == ("Coach", "2.0.0", "reloading")
        assert (await client.call("GET", f"/agents/{agent_id}/prompt"))["prompt"] == TUTOR["prompt"]
        assert await client.call("DELETE", f"/agents/{agent_id}?force=true") == {"agent_id": agent_id}
        assert "there is no agent" in await client.call("GET", f"/agents/{agent_id}", status=404)


async def test_it_survives_a_restart(tmp_path: Path) -> None:
    async with talking(tmp_path, log="sqlite") as client:
        await made(client, agent_id="tutor")
    async with talking(tmp_path, log="sqlite") as client:
        assert (await client.call("GET", "/agents/tutor"))["name"] == "Tutor"


async def test_a_conversation_uses_it(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        await made(client, agent_id="tutor", enabled_capabilities={"clock": False})
        run = await chat.run("hello", agent_id="tutor")
        shown = await client.call("GET", f"/conversations/{run.conversation_id}")
        assert shown["agent_id"] == "tutor"
        view = client.served.gateway.table.get(run.conversation_id).view
        assert view.settings.system == TUTOR["prompt"]
        assert "clock" not in (view.settings.tools or {})
        assert (await client.call("GET", "/agents/tutor")).items() >= {
            "total_calls": 1, "success_calls": 1, "failed_calls": 0}.items()
        again = await chat.run("once more", conversation_id=run.conversation_id)
        assert again.conversation_id == run.conversation_id
        other = await chat.run("and now", conversation_id=run.conversation_id, agent_id="demo")
        assert other.conversation_id == run.conversation_id
        assert (await client.call("GET", f"/conversations/{run.conversation_id}"))["agent_id"] == "demo"


async def test_a_new_conversation_may_name_it(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        await made(client, agent_id="tutor")
        shown = await client.call("POST", "/conversations?user_id=local&agent_id=tutor")
        assert shown["agent_id"] == "tutor"
        assert "there is no agent" in await client.call("POST", "/conversations?agent_id=nobody", status=404)


async def test_an_inactive_agent_is_hidden_and_not_used(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        await made(client, agent_id="tutor")
        await client.call("PUT", "/agents/tutor", json={"is_active": False})
        assert [one["agent_id"] for one in (await client.call("GET", "/agents"))["agents"]] == ["demo"]
        everyone = await client.call("GET", "/agents?include_inactive=true")
        assert [one["agent_id"] for one in everyone["agents"]] == ["demo", "tutor"]
        assert "not active" in await client.call("POST", "/conversations?agent_id=tutor", status=409)
        assert await client.call("GET", "/agents?include_inactive=perhaps", status=400)


@pytest.mark.parametrize("body", [
    {}, {"name": "x"}, {"prompt": "x"}, {**TUTOR, "name": ""}, {**TUTOR, "prompt": ""}, {**TUTOR, "name": 5},
    {**TUTOR, "model": "gpt-x"}, {**TUTOR, "agent_id": "../../etc"}, {**TUTOR, "agent_id": "templates"},
    {**TUTOR, "data_dir": "/etc"}, {**TUTOR, "prompt": "x" * 100_001}, {**TUTOR, "apis": [{"name": "x"}]}, [],
])
async def test_what_is_refused_makes_nothing(tmp_path: Path, body: Any) -> None:
    async with talking(tmp_path) as client:
        assert await client.call("POST", "/agents", json=body, status=400)
        assert (await client.call("GET", "/agents"))["total"] == 1


async def test_words_for_programs(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        await made(client, agent_id="tutor")
        for method, path, body, status, word in (
            ("POST", "/agents", {**TUTOR, "agent_id": "tutor"}, 409, "ALREADY_EXISTS"),
            ("POST", "/agents", {**TUTOR, "agent_id": "demo"}, 409, "ALREADY_EXISTS"),
            ("POST", "/agents", {**TUTOR, "model": "x"}, 400, "UNKNOWN_MODEL"),
            ("POST", "/agents", {}, 400, "VALIDATION_ERROR"),
            ("PUT", "/agents/demo", {"name": "x"}, 403, "FORBIDDEN"),
            ("DELETE", "/agents/demo", None, 403, "FORBIDDEN"),
            ("GET", "/agents/nobody", None, 404, "AGENT_NOT_FOUND"),
            ("DELETE", "/agents/%2e%2e", None, 404, None),
            ("GET", "/agents/default-data-path", None, 404, "AGENT_NOT_FOUND"),
        ):
            url = client.served.url(f"{API}{path}")
            async with client.served.http.request(method, url, json=body) as answer:
                said = await answer.json()
                assert answer.status == status, (path, said)
                assert word is None or said["detail"]["code"] == word


async def test_templates_can_be_made_into_agents(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        [template] = (await client.call("GET", "/agents/templates"))["templates"]
        assert template["id"] == "demo"
        assert await made(client, **template["config"])


async def test_a_configuration_is_checked_without_making_anything(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        async def problems(body: Any) -> set[tuple[str, str]]:
            said = await client.call("POST", "/agents/validate", json=body)
            assert said["valid"] is not bool(said["errors"])
            return {(one["field"], one["code"]) for one in said["errors"]}

        assert await problems(TUTOR) == set()
        assert await problems({}) == {("name", "REQUIRED_FIELD"), ("prompt", "REQUIRED_FIELD")}
        assert await problems({**TUTOR, "name": "x" * 101}) == {("name", "MAX_LENGTH_EXCEEDED")}
        assert await problems({**TUTOR, "name": 5}) == {("name", "INVALID_FORMAT")}
        assert await problems({**TUTOR, "model": "x"}) == {("model", "UNKNOWN_MODEL")}
        assert await problems({**TUTOR, "agent_id": "demo"}) == {("agent_id", "ALREADY_EXISTS")}
        assert await problems({**TUTOR, "agent_id": "a/b"}) == {("agent_id", "INVALID_FORMAT")}
        said = await client.call("POST", "/agents/validate", json={**TUTOR, "prompt": "short"})
        assert [one["field"] for one in said["warnings"]] == ["prompt"]
        assert await client.call("POST", "/agents/validate", json=[], status=400)
        assert (await client.call("GET", "/agents"))["total"] == 1


async def test_a_socket_says_that_an_agent_is_ready(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        await made(client, agent_id="tutor")

        async def told(agent_id: str) -> Any:
            url = client.served.url(f"{API}/agents/ws/create/{agent_id}")
            async with client.served.http.ws_connect(url) as socket:
                first = await socket.receive_json()
                assert (await socket.receive()).type.name in ("CLOSE", "CLOSED", "CLOSING")
                return first

        ready = await told("tutor")
        assert (ready["type"], ready["agent_id"], ready["name"], ready["success"]) == (
            "complete", "tutor", "Tutor", True)
        assert (await told("nobody"))["code"] == "NO_TASK"


async def test_users_have_their_own(tmp_path: Path) -> None:
    async with talking(tmp_path, auth="keys") as client:
        ann, bob = await keyed(client, "ann"), await keyed(client, "bob")
        await ann.call("POST", "/agents", json={**TUTOR, "agent_id": "tutor"})
        assert await bob.call("GET", "/agents/tutor", status=404)
        assert await bob.call("PUT", "/agents/tutor", json={"name": "x"}, status=404)
        assert await bob.call("DELETE", "/agents/tutor", status=404)
        assert (await bob.call("GET", "/agents"))["total"] == 1
        assert (await bob.call("POST", "/agents", json={**TUTOR, "agent_id": "tutor"}))["agent_id"] == "tutor"


async def test_reading_the_settings_again_is_for_admins(tmp_path: Path) -> None:
    async with talking(tmp_path, auth="keys") as client:
        ann = await keyed(client, "ann")
        assert await ann.call("POST", "/agents/reload", status=403)
        assert "only admins" in await ann.call("POST", "/agents/demo/reload", status=403)
        await ann.call("POST", "/agents", json={**TUTOR, "agent_id": "tutor"})
        assert await ann.call("POST", "/agents/tutor/reload") == {"reloaded": ["tutor"], "failed": []}
        assert await ann.call("POST", "/agents/nobody/reload", status=404)


async def test_an_admin_reads_the_settings_again(tmp_path: Path) -> None:
    async with talking_reloadable(tmp_path) as client:
        client.write_settings(agents={"demo": {"backend": "demo", "title": "Anew"}, "two": {"backend": "demo"}})
        assert await client.call("POST", "/agents/reload") == {"reloaded": ["demo", "two"], "failed": []}
        assert [one["name"] for one in (await client.call("GET", "/agents"))["agents"]] == ["Anew", "Demo agent"]
        assert "a second" in await client.call("POST", "/agents/two/reload", status=429)
        await asyncio.sleep(1)
        client.write_settings(agents={"demo": {"backend": "demmo"}})
        said = await client.call("POST", "/agents/reload")
        assert (said["reloaded"], [one["agent_id"] for one in said["failed"]]) == ([], ["demo", "two"])
        assert "demmo" in said["failed"][0]["error"]
        assert (await client.call("GET", "/agents"))["total"] == 2


async def test_new_addresses_hold_after_a_reload(tmp_path: Path) -> None:
    server = {"server_name": "near", "server_url": "http://127.0.0.1:1/mcp"}
    async with talking_reloadable(tmp_path) as client:
        await client.call("POST", "/tools/mcp/register", json=server, status=403)
        client.write_settings(outbound={"allow": ["127.0.0.1"]})
        await client.call("POST", "/agents/reload")
        await client.call("POST", "/tools/mcp/register", json=server)


async def test_changes_can_be_switched_off(tmp_path: Path) -> None:
    async with talking(tmp_path, management={"changes": "off"}) as client:
        assert "management.changes" in await client.call("POST", "/agents", json=TUTOR, status=403)
        assert await client.call("POST", "/agents", json={}, status=400)
        assert (await client.call("GET", "/agents"))["total"] == 1
