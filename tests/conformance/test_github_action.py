"""The GitHub Action: every input is used, the command line that it makes is accepted, and it fails when it should."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.faults.aap.server import AapServer

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = ACTION["runs"]["steps"]
INSTALLATION, EXAMINATION = STEPS[1], STEPS[2]
KEY = "the-key-of-the-examiners"
DEMANDED = {"dialect": "aap", "url": "http://127.0.0.1:1/aap"}


def written(value: Any) -> str:
    return yaml.safe_dump(value, allow_unicode=True)


def test_every_input_is_used_and_every_use_is_an_input() -> None:
    used = set(re.findall(r"\$\{\{ inputs\.([\w-]+) \}\}", written(STEPS)))
    assert used == set(ACTION["inputs"]) >= {"dialect", "url", "profile", "requirements", "fail-on"}
    assert {name for name, row in ACTION["inputs"].items() if row.get("required")} == set(DEMANDED)
    assert all(row["description"] for row in (*ACTION["inputs"].values(), *ACTION["outputs"].values()))


def test_what_a_workflow_gives_is_never_part_of_a_script() -> None:
    scripts = [step["run"] for step in STEPS if "run" in step]
    assert len(scripts) == 2
    assert [script for script in scripts if "${{" in script] == []
    assert all(step["shell"] == "bash" for step in STEPS if "run" in step)


def test_every_variable_of_a_step_is_used_in_it() -> None:
    for step in STEPS[1:]:
        unused = [name for name in step["env"] if f"${name}" not in step["run"] and name != "CONFORM_KEY"]
        assert unused == []


def test_outputs_and_steps_refer_to_each_other_rightly() -> None:
    known = {step["id"] for step in STEPS if "id" in step}
    assert set(re.findall(r"steps\.(\w+)\.", written(ACTION))) == known == {"python", "examine"}
    told = set(re.findall(r'echo "([\w-]+)=', EXAMINATION["run"]))
    assert {f"${{{{ steps.examine.outputs.{name} }}}}" for name in told} == {
        row["value"] for row in ACTION["outputs"].values()}


class Workflow:
    """The step that examines, run as a runner does: inputs in its environment, files for outputs and summary."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.summary, self.output = folder / "summary.md", folder / "output"
        self.program = folder / "dragoman" / "bin" / "dragoman"
        self.program.parent.mkdir(parents=True)

    def install(self, script: str) -> None:
        self.program.write_text(f"#!/usr/bin/env bash\n{script}\n")
        self.program.chmod(0o755)

    def run(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        given = {name: row.get("default", "") for name, row in ACTION["inputs"].items()} | DEMANDED
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        assert set(given) == set(ACTION["inputs"])
        env = {name: given[re.fullmatch(r"\$\{\{ inputs\.(.+) \}\}", value)[1]]  # type: ignore[index]
               for name, value in EXAMINATION["env"].items()}
        env |= {"PATH": os.environ["PATH"], "RUNNER_TEMP": str(self.folder),
                "GITHUB_STEP_SUMMARY": str(self.summary), "GITHUB_OUTPUT": str(self.output)}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", EXAMINATION["run"]]
        return subprocess.run(command, env=env, cwd=self.folder, capture_output=True, text=True, timeout=120)

    @property
    def outputs(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self.output.read_text().splitlines())  # type: ignore[misc]


@pytest.fixture
def workflow(tmp_path: Path) -> Workflow:
    return Workflow(tmp_path)


def test_the_command_line_is_accepted_and_the_report_is_in_the_summary(
    workflow: Workflow, in_background: Callable[[AapServer], str]
) -> None:
    """The program is ours; it is only told to ask one requirement, which is enough here."""
    workflow.install(f'cd "{ROOT}" && exec "{sys.executable}" -m gateway "$1" --only AAP-META-01 "${{@:2}}"')
    profile = workflow.folder / "my profile.yaml"
    profile.write_text("prompts: {text: Hello}\n")
    done = workflow.run(url=in_background(AapServer(key=KEY)), key=KEY, profile=str(profile), requirements="2026-11")
    assert done.returncode == 0, done.stdout + done.stderr
    assert workflow.outputs["exit-code"] == "0"
    names = ["report.html", "report.json", "report.md", "report.xml"]
    assert sorted(path.name for path in Path(workflow.outputs["reports"]).iterdir()) == names
    assert ": conforms\n" in workflow.summary.read_text() and "requirements 2026-11" in workflow.summary.read_text()
    assert KEY not in workflow.summary.read_text() + done.stdout + done.stderr


@pytest.mark.parametrize(
    ("fail_on", "codes"),
    [
        ("incomplete", {0: 0, 1: 1, 2: 2, 3: 3}),
        ("failed", {0: 0, 1: 1, 2: 2, 3: 0}),
        ("never", {0: 0, 1: 0, 2: 2, 3: 0}),
    ],
)
def test_the_job_fails_when_it_is_told_to(workflow: Workflow, fail_on: str, codes: dict[int, int]) -> None:
    for code, expected in codes.items():
        workflow.install(f"exit {code}")
        assert workflow.run(fail_on=fail_on).returncode == expected
        assert workflow.outputs["exit-code"] == str(code)


def test_what_is_not_given_is_no_option_and_nothing_is_read_as_a_command(workflow: Workflow) -> None:
    workflow.install('printf "%s\\n" "$@" > "$RUNNER_TEMP/words"')
    assert workflow.run(url="$(touch broken) --watch").returncode == 0
    words = (workflow.folder / "words").read_text().splitlines()
    assert [word for word in words if word.startswith("--")] == ["--report"] * 4 + ["--"]
    assert (words[0], words[-2:]) == ("conform", ["aap", "$(touch broken) --watch"])
    assert not (workflow.folder / "broken").exists()


def test_a_word_that_fail_on_does_not_know_is_an_error(workflow: Workflow) -> None:
    workflow.install("exit 0")
    done = workflow.run(fail_on="must")
    assert done.returncode == 2
    assert "::error::fail-on is 'must'; say incomplete, failed or never" in done.stdout


def test_the_action_is_installed_from_its_own_folder() -> None:
    assert '"$GITHUB_ACTION_PATH"' in INSTALLATION["run"]
    assert (ROOT / "pyproject.toml").is_file()


def test_the_examples_of_the_page_are_right() -> None:
    page = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    blocks = [yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)]
    steps = [step for block in blocks if "jobs" in block for step in block["jobs"]["aap"]["steps"]]
    (ours,) = [step for step in steps if "dragoman" in step.get("uses", "")]
    assert set(DEMANDED) < set(ours["with"]) <= set(ACTION["inputs"])
    (hook,) = [hook for block in blocks if "repos" in block for hook in block["repos"][0]["hooks"]]
    assert hook["entry"] == "dragoman conform aap http://127.0.0.1:8080/aap --level must"
