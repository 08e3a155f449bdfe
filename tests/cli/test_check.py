"""`dragoman check` lists every mistake, and what each pair of dialects loses."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from gateway import loss_matrix
from tests.support.dialect_tables import DIALECTS

Run = Callable[..., Result]
WRONG = "hots: x\nport: many\ndialects: {aap: {mount: /aap}}\nagents: {demo: {backend: demo}}\n"


def test_good_settings_are_exit_code_zero(dragoman: Run) -> None:
    result = dragoman("check")
    assert result.exit_code == 0
    assert "agent demo" in result.stdout


def test_all_mistakes_go_to_standard_error_without_a_traceback(
    home: Path, real: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    (home / "config.yaml").write_text(WRONG)
    result = real("check")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "config.yaml:1:1: there is no setting 'hots'; did you mean 'hosts'?",
        "config.yaml:2:7: port: must be a whole number, not 'many'",
    ]


def test_a_file_that_is_not_there_is_told(dragoman: Run) -> None:
    result = dragoman("check", "--config", "nowhere.yaml")
    assert result.exit_code == 2
    assert result.stderr == "nowhere.yaml:1:1: there is no such file; name another with --config\n"


def test_a_variable_may_name_the_file(dragoman: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_CONFIG", "nowhere.yaml")
    assert "nowhere.yaml" in dragoman("check").stderr


def test_the_pairs_are_a_table(dragoman: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    losses = [["from / to", "speech", "song"], ["speech", "nothing", "[thinking], usage, " + "very " * 40 + "long"]]
    monkeypatch.setattr(loss_matrix, "pair_losses", lambda config: losses)
    result = dragoman("check", "--pairs")
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["from", "/", "to", "speech", "song"] in lines
    assert ["speech", "nothing", "[thinking],", "usage,", *["very"] * 40, "long"] in lines
    assert result.stdout.endswith("\n\nusage: tokens spent\n"), "what the words in it mean, and no others"


def test_the_matrix_is_one_grid_of_eighty_columns(home: Path, dragoman: Run) -> None:
    (home / "config.yaml").write_text(
        f"dialects: {{{', '.join(f'{name}: ' for name in DIALECTS)}}}\nagents: {{demo: {{backend: demo}}}}\n")
    result = dragoman("check", "--matrix")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "".join(["feature", *DIALECTS]) in [line.replace(" ", "") for line in lines]
    assert "✓ full   ~ degraded, see the note   ✗ lost" in lines
    assert any(re.fullmatch(r"text +(✓ +)+✓", line) for line in lines)
    assert any(line.startswith("~1 ") for line in lines)
    assert "usage: tokens spent" in lines
    assert not any(line.startswith("agent    client") for line in lines), "the pairs are shown on request"


def test_mistakes_in_the_settings_hide_none_in_what_they_name(home: Path, dragoman: Run) -> None:
    (home / "config.yaml").write_text("""\
hots: 127.0.0.1
port: 99999
dialects:
  aap: {page_sise: 3}
  app: {}
agents:
  demo: {backend: demmo, version: one}
limits: {turn_seconds: soon}
""")
    told = dragoman("check").stderr.splitlines()
    assert [line.split(": ", 1)[0].rpartition("/")[2] for line in told] == [
        "config.yaml:1:1", "config.yaml:2:7", "config.yaml:4:9", "config.yaml:5:3", "config.yaml:7:19",
        "config.yaml:7:35", "config.yaml:8:24",
    ]


def test_a_mistake_of_shape_hides_none_beside_it(home: Path, dragoman: Run) -> None:
    """Neither in another dialect or agent, nor in the same one."""
    (home / "config.yaml").write_text("""\
port: many
dialects:
  aap: {page_sise: 3, mount: 5}
  cas: 7
  blade: {agent: nobody, nonsense: 1}
  zenflux: {ping_seconds: 0}
agents:
  demo: {backend: demo, settings: {x: 1}, tools: 5}
  third: 7
shadow: {backend: demmo, agents: [fourth]}
mappings: {aap: nowhere.yaml}
""")
    told = dragoman("check").stderr.splitlines()
    assert [line.partition(": ")[0] for line in told] == [f"config.yaml:{place}" for place in (
        "1:7", "3:9", "3:30", "4:8", "5:18", "5:26", "6:27", "8:36", "8:50", "9:10", "10:19", "10:35", "11:17",
    )]


def test_what_a_dialect_names_must_be_there(home: Path, dragoman: Run) -> None:
    (home / "config.yaml").write_text(
        "dialects: {aap: {mount: /api/v1/cloud}, cas: , blade: {agent: dmo}}\nagents: {demo: {backend: demo}}\n")
    assert dragoman("check").stderr.splitlines() == [
        "config.yaml:1:25: '/api/v1/cloud' is where 'cas' is mounted already",
        "config.yaml:1:63: there is no agent 'dmo'; did you mean 'demo'?",
    ]


@pytest.mark.parametrize("word", ["check", "serve"])
def test_an_agent_whose_command_is_not_there_is_told_before_anybody_asks_it(
    home: Path, dragoman: Run, word: str,
) -> None:
    (home / "config.yaml").write_text(
        "dialects: {aap: }\nagents:\n  clerk:\n    backend: acp\n    settings: {command: no-such-clerk}\n")
    result = dragoman(word)
    assert result.exit_code == 2
    assert result.stderr == ("config.yaml:5:25: command: there is no program 'no-such-clerk' on the PATH; "
                             "install it, or write its path\n")
