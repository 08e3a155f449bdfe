"""A command that settings name is looked for before it is needed, and told at its line where it is not there."""

from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from gateway.backends.setting_types import Executable, SecretSetting, executable_problem, settings_context
from gateway.composition import load_components
from gateway.config import load_config
from gateway.yaml_positions import Problems


class Settings(BaseModel):
    env: dict[str, SecretSetting] = {}
    command: Executable


def program(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


def test_a_bare_name_is_looked_for_on_the_path(tmp_path: Path) -> None:
    program(tmp_path / "bin/clerk")
    assert executable_problem("sh", tmp_path) == ""
    assert executable_problem("clerk", tmp_path, f"/nowhere:{tmp_path}/bin") == ""
    assert executable_problem("clerk", tmp_path) == (
        "there is no program 'clerk' on the PATH; install it, or write its path")


def test_a_path_is_seen_from_the_folder_of_the_settings(tmp_path: Path) -> None:
    assert executable_problem("./bin/clerk", tmp_path) == (
        f"there is no program '{tmp_path}/bin/clerk'; a path is seen from the folder of the settings")
    file = program(tmp_path / "bin/clerk")
    assert executable_problem("./bin/clerk", tmp_path) == executable_problem(str(file), Path("/nowhere")) == ""
    file.chmod(0o644)
    assert executable_problem("bin/clerk", tmp_path) == f"'{file}' is not a program; make it one with: chmod +x"
    assert "there is no program" in executable_problem("./bin", tmp_path), "a folder is none"


def test_the_path_may_be_one_that_the_settings_give(tmp_path: Path) -> None:
    program(tmp_path / "bin/clerk")
    given = {"command": "clerk", "env": {"PATH": f"{tmp_path}/bin"}}
    assert Settings.model_validate(given, context=settings_context(tmp_path)).command == "clerk"
    with pytest.raises(ValidationError, match="no program 'sh' on the PATH"):
        Settings.model_validate(given | {"command": "sh"}, context=settings_context(tmp_path))


def test_settings_without_a_folder_are_not_looked_at() -> None:
    assert Settings.model_validate({"command": "nobody has this"}).command == "nobody has this"
    with pytest.raises(ValidationError, match="at least 1 character"):
        Settings.model_validate({"command": ""})


def test_every_command_that_is_not_there_is_told_at_its_line(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("""\
dialects: {aap: }
agents:
  one:
    backend: acp
    settings:
      args: [agent.py]
      command: no-such-clerk
  two:
    backend: openai
    settings:
      mcp:
        files: {command: sh}
        notes: {command: ./no-such-server}
        pages: {url: "http://127.0.0.1:1"}
  three:
    backend: anthropic
    settings: {mcp: {files: {command: no-such-files}}}
""")
    with pytest.raises(Problems) as caught:
        load_components(load_config(file))
    bare = "on the PATH; install it, or write its path"
    assert [str(problem).removeprefix(f"{tmp_path}/") for problem in caught.value.problems] == [
        f"config.yaml:7:16: command: there is no program 'no-such-clerk' {bare}",
        f"config.yaml:13:26: mcp.notes.command: there is no program '{tmp_path}/no-such-server'; "
        "a path is seen from the folder of the settings",
        f"config.yaml:17:39: mcp.files.command: there is no program 'no-such-files' {bare}",
    ]
