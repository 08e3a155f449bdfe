"""A session has the skills of its agent: models are told of them, and read them with a tool; scripts are never run."""

from pathlib import Path
from typing import Any

import orjson
import pytest

import gateway.model as m
from gateway.backends import system_text
from gateway.backends.system_text import READ_SKILL, skill_tools, with_skills
from tests.support.backends.function_backends import function_backend
from tests.support.backends.messages_api import message, text
from tests.support.backends.model_services import KEY, calls, says, talked, turn_of
from tests.support.backends.turn_driver import play, tell
from tests.support.client.byte_server import Server, serving
from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.gateway_server import Served
from tests.support.gateway_server import serving as gateway
from tests.support.skill_zips import FILES, SKILL

REF = m.SkillRef(name="tidy", description="Cleans\n tables.", skill_id="installed_skill_1")
WITH_SKILL = m.Settings(system="Be kind.", skills=(REF,))
AGENT = """
async def agent(turn, settings):
    read = await turn.read_skill("tidy")
    script = await turn.read_skill("tidy", "scripts/tidy.py")
    yield f"{settings.system}|{read.text}|{script.text}|{','.join(read.files)}"

def plain(turn, settings):
    yield turn.read_skill("tidy", "scripts/tidy.py").text
"""


def offer(folder: Path) -> None:
    for path, content in FILES.items():
        place = folder / "skills" / "tidy" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def agents(server: Server, **settings: Any) -> dict[str, Any]:
    return {"llm": {"backend": "openai", "settings": {
        "url": f"{server.url}/v1", "key": KEY, "model": "m", "attempts": 1, "system": "You are ours.", **settings}}}


async def post(served: Served, path: str, body: Any) -> Any:
    async with served.http.post(served.url(path), json=body) as answer:
        assert answer.status < 300, await answer.text()
        return await answer.json()


async def install(served: Served, agent_id: str) -> None:
    await post(served, "/api/v1/skills/install", {"skill_name": "tidy", "agent_id": agent_id})


async def say(served: Served, agent_id: str, message: str = "Clean this table.") -> Any:
    return await post(served, "/api/v1/chat", {
        "message": message, "userId": "ann", "agentId": agent_id, "stream": False})


def asked(server: Server, number: int) -> dict[str, Any]:
    """The body of a request to the model."""
    body: dict[str, Any] = orjson.loads(server.asked[number].body)
    return body


# -- texts and the tool -----------------------------------------------------------------------------------------------

def test_the_system_text_names_the_skills() -> None:
    assert with_skills("Be kind.", WITH_SKILL) == f"Be kind.\n\n{system_text.SKILLS_HEADING}\n- tidy: Cleans tables."
    assert with_skills(None, m.Settings()) is None
    assert with_skills("Be kind.", m.Settings()) == "Be kind."


async def run_tool(found: m.SkillFile, **input: Any) -> Any:
    turn = turn_of(settings=WITH_SKILL)

    async def read(name: str, path: str = m.SKILL_FILE) -> m.SkillFile:
        assert (name, path) == ("tidy", found.path)
        return found

    turn.read_skill = read  # type: ignore[method-assign]
    [tool] = skill_tools(turn)
    return await tool.run({"name": "tidy", **input}, lambda text: None)


async def test_the_tool_shows_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    assert skill_tools(turn_of()) == []
    shown = await run_tool(m.SkillFile(name="tidy", path="SKILL.md", size=4, text="text", files=("a", "b/c")))
    assert shown.content == "text\nOther files of this skill:\n- a\n- b/c"
    other = await run_tool(m.SkillFile(name="tidy", path="a", size=4, text="text", files=("a",)), path="a")
    assert other.content == "text"
    binary = await run_tool(m.SkillFile(name="tidy", path="a", size=7), path="a")
    assert binary.content == "a is not text; it has 7 bytes."
    monkeypatch.setattr(system_text, "MAX_CHARS", 2)
    cut = await run_tool(m.SkillFile(name="tidy", path="a", size=4, text="text"), path="a")
    assert cut.content == "te\n… (cut after 2 characters)"
    wrong = await run_tool(m.SkillFile(name="tidy", path="a", size=4, text="text"), path=7)
    assert wrong.is_error


@pytest.mark.parametrize("mode", [None, "planning"])
async def test_a_session_without_tools_reads_its_skills(mode: str | None) -> None:
    settings = m.Settings(skills=(REF,), tools={})
    _, server = await talked("openai", [says("ok")], turn_of(settings=settings, mode=mode))
    body = asked(server, 0)
    offered = [tool["function"]["name"] for tool in body.get("tools", [])]
    assert offered == ([] if mode else ["read_skill"])
    assert ("tidy: Cleans tables." in str(body["messages"])) is (mode is None), "what is named can be read"


async def test_a_client_tool_keeps_its_name() -> None:
    mine = m.ToolSpec(name=READ_SKILL.name, description="Mine.")
    _, server = await talked("openai", [says("ok")], turn_of(settings=m.Settings(skills=(REF,), client_tools=(mine,))))
    assert [tool["function"]["description"] for tool in asked(server, 0)["tools"]] == ["Mine."]


async def test_the_messages_service_gets_them_too() -> None:
    _, server = await talked("anthropic", [message(text(0, "ok"))], turn_of(settings=WITH_SKILL))
    body = asked(server, 0)
    assert "tidy: Cleans tables." in str(body["system"])
    assert [tool["name"] for tool in body["tools"]] == ["read_skill"]


async def test_a_function_reads_a_skill() -> None:
    async def agent(turn: Any, settings: Any) -> str:
        return f"{settings.system}|{(await turn.read_skill('tidy', 'a')).path}"

    def plain(turn: Any) -> str:
        return str(turn.read_skill("tidy").path)

    turn = await play(function_backend(agent), turn_of(settings=WITH_SKILL))
    assert turn.text == f"{with_skills('Be kind.', WITH_SKILL)}|a"
    assert (await play(function_backend(plain), turn_of(settings=WITH_SKILL))).text == "SKILL.md"
    unchanged = await tell("go", backend=function_backend(lambda settings: str(settings.system)))
    assert unchanged.text == "None"


# -- over real HTTP ---------------------------------------------------------------------------------------------------

async def test_a_model_is_told_of_a_skill_and_reads_it(tmp_path: Path) -> None:
    offer(tmp_path)
    answers = (
        calls("read_skill", '{"name": "tidy"}'), calls("read_skill", '{"name": "tidy", "path": "scripts/tidy.py"}'),
        calls("read_skill", '{"name": "tidy", "path": "../../../etc/passwd"}'),
        calls("read_skill", '{"name": "other"}'), says("Done."),
    )
    async with serving(*answers) as server, gateway(
        tmp_path, agents=agents(server), dialects=ALL_DIALECTS, management={"skills": "skills"}, log="memory",
    ) as served:
        await post(served, "/api/v1/agents", {"agent_id": "tutor", "name": "Tutor", "prompt": "You teach."})
        await install(served, "tutor")
        assert "Done." in str(await say(served, "tutor"))
        first = asked(server, 0)
        assert first["messages"][0]["content"] == (
            f"You are ours.\n\nYou teach.\n\n{system_text.SKILLS_HEADING}\n- tidy: Cleans tables.")
        assert [tool["function"]["name"] for tool in first["tools"]] == ["read_skill"]
        results = [one["content"] for one in asked(server, 4)["messages"] if one["role"] == "tool"]
        assert results[0].startswith(SKILL)
        assert "- scripts/tidy.py" in results[0]
        assert results[1] == "print('tidy')\n"
        assert "not a path inside the skill" in results[2]
        assert "this session has no skill 'other'" in results[3]


async def test_sessions_of_every_dialect_have_the_skills_of_their_agent(tmp_path: Path) -> None:
    offer(tmp_path)
    async with serving(says("ok")) as server, gateway(
        tmp_path, agents=agents(server), dialects=ALL_DIALECTS, management={"skills": "skills"}, log="memory",
    ) as served:
        await install(served, "llm")
        await post(served, "/aap/sessions", {"agent": {"name": "llm"}})
        await post(served, "/api/sessions", {"title": "x"})
        await post(served, "/api/v1/cloud/sessions", {
            "agent": "agent_llm", "environment": {"config": {"type": "cloud"}}})
        await post(served, "/api/v1/conversations?user_id=ann", {})
        found, _ = await served.gateway.sessions.list("")
        assert len(found) == 4
        for view in found:
            [ref] = view.settings.skills
            assert (ref.name, ref.version) == ("tidy", 1)


async def test_a_session_keeps_the_skill_that_it_began_with(tmp_path: Path) -> None:
    offer(tmp_path)
    answers = (says("ok"), calls("read_skill", '{"name": "tidy"}'), says("ok"), says("ok"), says("ok"))
    async with serving(*answers) as server, gateway(
        tmp_path, agents=agents(server), dialects=ALL_DIALECTS, management={"skills": "skills"}, log="memory",
    ) as served:
        await install(served, "llm")
        talk = (await say(served, "llm"))["data"]["conversation_id"]
        named = {"skill_name": "tidy", "agent_id": "llm"}
        changed = SKILL.replace("Use the script.", "New words.")
        await post(served, "/api/v1/skills/update_content", {**named, "content": changed})
        await post(served, "/api/v1/skills/toggle", {**named, "enabled": False})
        again = {"message": "more", "userId": "ann", "conversationId": talk, "stream": False}
        await post(served, "/api/v1/chat", again)
        [result] = [one["content"] for one in asked(server, 2)["messages"] if one["role"] == "tool"]
        assert result.startswith(SKILL)
        await say(served, "llm")
        assert "tools" not in asked(server, 3), "a skill that is switched off is not in new sessions"


async def test_a_conversation_that_changes_its_agent_has_that_agents_skills(tmp_path: Path) -> None:
    offer(tmp_path)
    async with serving(says("ok")) as server, gateway(
        tmp_path, agents=agents(server), dialects=ALL_DIALECTS, management={"skills": "skills"}, log="memory",
    ) as served:
        await post(served, "/api/v1/agents", {"agent_id": "tutor", "name": "Tutor", "prompt": "You teach."})
        await install(served, "tutor")
        talk = (await say(served, "llm"))["data"]["conversation_id"]
        assert "tools" not in asked(server, 0)
        await post(served, "/api/v1/chat", {
            "message": "more", "userId": "ann", "conversationId": talk, "agentId": "tutor", "stream": False})
        assert [tool["function"]["name"] for tool in asked(server, 1)["tools"]] == ["read_skill"]


@pytest.mark.parametrize("log", ["memory", "sqlite"])
async def test_a_python_function_reads_the_skill_of_its_agent(tmp_path: Path, log: str) -> None:
    offer(tmp_path)
    (tmp_path / "agent_of_skills.py").write_text(AGENT)
    made = {name: {"backend": "python", "settings": {"agent": f"agent_of_skills:{name}"}}
            for name in ("agent", "plain")}
    async with gateway(
        tmp_path, agents=made, dialects=ALL_DIALECTS, management={"skills": "skills"}, log=log,
    ) as served:
        for agent_id in made:
            await install(served, agent_id)
        said = (await say(served, "agent"))["data"]["content"]
        system, words, script, files = said.split("|")
        assert system == f"{system_text.SKILLS_HEADING}\n- tidy: Cleans tables."
        assert (words, script) == (SKILL, "print('tidy')\n")
        assert files == "resources/deep/logo.bin,resources/template.csv,scripts/tidy.py"
        assert (await say(served, "plain"))["data"]["content"] == "print('tidy')\n"
