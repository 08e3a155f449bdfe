"""The published front end, unmodified: what its pages send, and where they read, against our server.

The reader is written from the list of its calls alone. It knows nothing of the wrapper where the pages do not, and it
sends what a browser with axios sends.
"""

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.dialects.zenflux.client import API, talking
from tests.support.gateway_server import Served
from tests.support.skill_zips import zipped

AXIOS = {"Accept": "application/json, text/plain, */*", "Origin": "http://localhost:5174"}
NEW_AGENT = {"name": "Tutor", "description": "Teaches.", "prompt": "You teach with patience."}


class Refused(Exception):
    """A call that failed, with the text that the page shows."""

    def __init__(self, status: int, body: Any, *, on_skills_page: bool = False) -> None:
        detail = body.get("detail")
        text = detail.get("message") if isinstance(detail, dict) else detail
        self.status = status
        super().__init__(text or (body.get("message") if on_skills_page else None))


class FrontEnd:
    """The calls of the pages; an answer is the body as it came."""

    def __init__(self, served: Served) -> None:
        self.served = served

    async def call(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        if body is not None:
            options["json"] = body
        url = self.served.url(f"{API}{path}")
        async with self.served.http.request(method, url, headers=AXIOS, **options) as answer:
            read = await answer.json()
            if answer.status >= 400:
                raise Refused(answer.status, read, on_skills_page=path.startswith("/skills"))
            return read

    async def list_or_nothing(self, path: str) -> list[Any]:
        """A failure is an empty list."""
        try:
            found: list[Any] = (await self.call("GET", path))["skills"]
        except Refused:
            return []
        return found

    async def progress(self, agent_id: str) -> list[dict[str, Any]]:
        """The frames of the socket that tells how far a new agent is, until it is closed."""
        url = self.served.url(f"{API}/agents/ws/create/{agent_id}")
        async with self.served.http.ws_connect(url, headers={"Origin": AXIOS["Origin"]}) as socket:
            return [message.json() async for message in socket]

    async def upload(self, name: str, content: bytes) -> Any:
        form = aiohttp.FormData()
        form.add_field("file", BytesIO(content), filename="skill.zip", content_type="application/zip")
        return await self.call("POST", f"/skills/upload?skill_name={name}", data=form)


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[FrontEnd]:
    agents = {"demo": {"backend": "demo", "options": [{"type": "secret", "name": "token"}]}}
    async with talking(tmp_path, agents=agents) as client:
        yield FrontEnd(client.served)


# -- the chat page ----------------------------------------------------------------------------------------------------

async def test_the_chat_page_starts(page: FrontEnd) -> None:
    """The earlier front end asks for agents and conversations together, the later one for one after the other."""
    listed, talks = await asyncio.gather(
        page.call("GET", "/agents"), page.call("GET", "/conversations?user_id=local&limit=20"))
    for agent in listed["agents"]:
        assert (agent["name"] + agent["description"]).lower()
    assert talks["data"]["conversations"] == []
    selected = listed["agents"][0]["agent_id"]
    detail = await page.call("GET", f"/agents/{selected}")
    assert detail["name"] and detail["model"], "without a model the page goes on a detour"
    assert (detail["description"].lower(), detail["data_dir"], detail.get("cloud")) == (
        detail["description"].lower(), None, None)


async def test_a_model_is_chosen_before_an_agent_is_made(page: FrontEnd) -> None:
    models = await page.call("GET", "/models")
    assert len(models) > 0
    chosen = models[0]["model_name"]
    assert next(one for one in models if one["model_name"] == chosen)
    made = await page.call("POST", "/agents", {**NEW_AGENT, "model": chosen})
    assert (await page.call("GET", f"/agents/{made['agent_id']}"))["model"] == chosen


async def test_an_agent_is_made_edited_and_deleted(page: FrontEnd) -> None:
    made = await page.call("POST", "/agents", NEW_AGENT)
    assert (bool(made["agent_id"]), made["name"]) == (True, "Tutor")
    frames = await page.progress(made["agent_id"])
    assert [one["type"] for one in frames if one["type"] != "progress"] == ["complete"]
    at = f"/agents/{made['agent_id']}"
    assert made["agent_id"] in [one["agent_id"] for one in (await page.call("GET", "/agents"))["agents"]]
    assert (await page.call("GET", f"{at}/prompt"))["prompt"] == NEW_AGENT["prompt"]
    changed = await page.call("PUT", at, {"name": "Coach", "description": "Trains."})
    assert (changed["agent_id"], changed["name"]) == (made["agent_id"], "Coach")
    assert (changed["description"], bool(changed["model"]), changed["data_dir"]) == ("Trains.", True, None)
    assert (await page.progress(made["agent_id"]))[-1]["type"] == "complete"
    assert (await page.call("GET", f"{at}/prompt"))["prompt"] == NEW_AGENT["prompt"], "the prompt was left out"
    await page.call("DELETE", at)
    assert made["agent_id"] not in [one["agent_id"] for one in (await page.call("GET", "/agents"))["agents"]]
    [error] = await page.progress(made["agent_id"])
    assert (error["type"], bool(error["message"])) == ("error", True)


async def test_a_new_agent_talks(page: FrontEnd) -> None:
    made = await page.call("POST", "/agents", NEW_AGENT)
    talk = await page.call("POST", f"/conversations?user_id=local&agent_id={made['agent_id']}")
    said = await page.call("POST", "/chat", {
        "message": "hello", "userId": "local", "conversationId": talk["data"]["id"], "agentId": made["agent_id"],
        "stream": False})
    assert said["code"] == 200


# -- the skills page --------------------------------------------------------------------------------------------------

async def test_the_skills_page(page: FrontEnd) -> None:
    assert await page.list_or_nothing("/skills/global") == []
    done = await page.upload("tidy", zipped())
    assert (done["success"], bool(done["message"])) == (True, True)
    [shown] = await page.list_or_nothing("/skills/global")
    assert (shown["name"] + shown["description"]).lower()
    assert (shown["is_enabled"], shown["status"]) == (True, "ready")
    chosen = {"skill_name": "tidy", "agent_id": "demo"}
    for path, further in (("install", {}), ("toggle", {"enabled": False}), ("toggle", {"enabled": True})):
        done = await page.call("POST", f"/skills/{path}", {**chosen, **further})
        assert (done["success"], bool(done["message"])) == (True, True)
    [installed] = await page.list_or_nothing("/skills/instance/demo")
    assert (installed["name"], installed["is_enabled"]) == ("tidy", True)
    for query in ("", "?agent_id=demo"):
        detail = await page.call("GET", f"/skills/detail/tidy{query}")
        assert (detail["name"], detail["description"], detail["preferred_for"], detail["required_env"]) == (
            "tidy", "Cleans tables.", ["tables"], [])
        assert detail["content"].startswith("---")
        assert detail["agent_id"] == ("demo" if query else "global")
        [script] = detail["scripts"]
        file = await page.call("GET", f"/skills/file/tidy/scripts/{script}{query}")
        assert (file["content"], file["is_binary"], file["size"], file["language"]) == (
            "print('tidy')\n", False, 14, "python")
        for name in detail["resources"]:
            await page.call("GET", f"/skills/file/tidy/resources/{name}{query}")
    done = await page.call("POST", "/skills/uninstall", chosen)
    assert done["success"]
    assert await page.list_or_nothing("/skills/instance/demo") == []
    assert await page.list_or_nothing("/skills/instance/nobody") == []


# -- the settings page ------------------------------------------------------------------------------------------------

async def test_the_settings_page(page: FrontEnd) -> None:
    """Three calls are awaited together: if one fails, the page stays empty."""
    settings, status, providers = await asyncio.gather(*(
        page.call("GET", path) for path in ("/settings", "/settings/status", "/models/providers/supported")))
    assert isinstance(providers, list)
    for provider in providers:
        settings["data"]["api_keys"][provider["api_key_env"]]
    assert (status["data"]["configured"], status["data"]["missing"]) == (False, ["demo.token"])
    assert (status["data"]["configured_providers"], set(status["data"]["summary"])) == ([], {"llm", "demo"})
    model = (await page.call("GET", "/models"))[0]["model_name"]
    keys = {"OPENAI_API_KEY": "sk-x", "OPENAI_BASE_URL": ""}
    saved = await page.call("PUT", "/settings", {"api_keys": keys, "llm": {"COT_AGENT_MODEL": model}})
    assert saved["data"]["llm"]["COT_AGENT_MODEL"] == model
    assert "sk-x" not in repr(saved)


# -- refusals ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("method", "path", "body", "status"), [
    ("POST", "/agents", {**NEW_AGENT, "name": ""}, 400), ("POST", "/agents", {**NEW_AGENT, "model": "gone"}, 400),
    ("PUT", "/agents/demo", NEW_AGENT, 403), ("DELETE", "/agents/demo", None, 403), ("GET", "/agents/gone", None, 404),
    ("GET", "/agents/default-data-path", None, 404),
    ("POST", "/skills/install", {"skill_name": "gone", "agent_id": "demo"}, 404), ("PUT", "/settings", {"llm": 5}, 400),
    ("GET", "/skills/detail/gone", None, 404),
])
async def test_refusals_are_told_in_words(page: FrontEnd, method: str, path: str, body: Any, status: int) -> None:
    with pytest.raises(Refused) as refused:
        await page.call(method, path, body)
    assert refused.value.status == status
    assert len(str(refused.value)) > 10


async def test_a_broken_upload_is_refused_in_words(page: FrontEnd) -> None:
    with pytest.raises(Refused, match="ZIP"):
        await page.upload("tidy", b"no zip")
