"""What a session has reaches an ACP agent: skills as files of its folder, choices as options of the agent's session."""

import json
from pathlib import Path
from typing import Any

from acp import schema

import gateway.model as m
from gateway.backends.system_text import FILES_HEADING
from tests.support.backends.acp_turns import Turn, backend, played
from tests.support.backends.official_models import validation_problems
from tests.support.backends.turn_driver import play

SKILL = m.SkillRef(name="tidy", description="Cleans\n tables.", skill_id="installed_skill_1")
FILES = {"SKILL.md": "Use the script.", "scripts/tidy.py": "print('tidy')", ".claude/settings.json": "{}", "logo": None}


class SkilledTurn(Turn):
    """A turn of a session with a skill."""

    async def read_skill(self, name: str, path: str = m.SKILL_FILE) -> m.SkillFile:
        others = tuple(path for path in FILES if path != m.SKILL_FILE)
        return m.SkillFile(name=name, path=path, size=4, text=FILES[path], files=others if path == m.SKILL_FILE else ())


def written(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


async def test_skills_are_files_that_the_first_prompt_names(tmp_path: Path) -> None:
    settings = m.Settings(system="Be kind.", skills=(SKILL,))
    metadata: dict[str, Any] = {}
    async with backend(tmp_path) as made:
        turn = SkilledTurn(m.SendMessage(content="hi"), settings=settings, metadata=metadata)
        await play(made, turn)
        folder = tmp_path / "work" / "sess_1"
        assert written(folder) == {
            "skills/tidy/SKILL.md": "Use the script.", "skills/tidy/scripts/tidy.py": "print('tidy')",
            "skills/tidy/uploaded-claude/settings.json": "{}"}, "no file of a skill configures the agent"
        assert not any(path.stat().st_mode & 0o111 for path in folder.rglob("*.py")), "scripts cannot be executed"
        system, said = json.loads(turn.text)
        line = f"- tidy: Cleans tables. File: {folder.resolve()}/skills/tidy/SKILL.md"
        assert system["text"] == f"Be kind.\n\n{FILES_HEADING}\n{line}"
        assert said["text"] == "hi"
        again = SkilledTurn(m.SendMessage(content="again"), settings=settings, metadata=metadata)
        assert json.loads((await play(made, again)).text) == [{"type": "text", "text": "again"}]


async def test_uploads_that_are_trusted_keep_their_names(tmp_path: Path) -> None:
    async with backend(tmp_path, trust_uploads=True) as made:
        await play(made, SkilledTurn(m.SendMessage(content="hi"), settings=m.Settings(skills=(SKILL,))))
    assert "skills/tidy/.claude/settings.json" in written(tmp_path / "work" / "sess_1")


async def test_choices_of_the_session_are_options_of_the_agent(tmp_path: Path) -> None:
    record, metadata = tmp_path / "heard", dict[str, Any]()
    async with backend(tmp_path, "--options", f"--record={record}") as made:
        first = await played(made, ["chosen"], metadata=metadata, settings=m.Settings(
            model="large", options={"tone": "warm", "fast": "yes", "unknown": "x"}))
        assert json.loads(first.text) == {"model": "large", "tone": "warm"}
        second = await played(made, ["chosen"], metadata=metadata, settings=m.Settings(
            model="huge", options={"tone": "plain"}))
        assert json.loads(second.text) == {"model": "large", "tone": "plain"}, "a model that is not offered is not set"
        await played(made, ["chosen"], metadata=metadata, settings=m.Settings(options={"tone": "plain"}))
    sent = [json.loads(line) for line in record.read_text().splitlines()]
    sent = [line["params"] for line in sent if line["method"] == "session/set_config_option"]
    assert [(one["configId"], one["value"]) for one in sent] == [
        ("model", "large"), ("tone", "warm"), ("tone", "plain")], "what is set already is not sent"
    for one in sent:
        assert validation_problems(schema.SetSessionConfigOptionSelectRequest, json.dumps(one), strict=False) == []


async def test_an_agent_that_offers_nothing_is_not_configured(tmp_path: Path) -> None:
    async with backend(tmp_path) as made:
        turn = await played(made, ["chosen"], settings=m.Settings(model="large", options={"tone": "warm"}))
    assert json.loads(turn.text) == {"model": "small", "tone": "plain"}


async def test_an_option_that_the_agent_refuses_ends_nothing(tmp_path: Path) -> None:
    async with backend(tmp_path, "--options", "--stubborn") as made:
        turn = await played(made, ["chosen"], settings=m.Settings(model="large"))
    assert json.loads(turn.text)["model"] == "small"
