"""Licence, changelog, workflow, hooks and forms agree with each other and with pyproject.toml."""

import re
import shlex
import tomllib
from configparser import ConfigParser
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.interpreters import VERSIONS

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
APACHE_2 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
"""The SHA-256 of the text that the Apache Software Foundation publishes."""
CATEGORIES = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
FORMS = sorted(path for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")


def loaded(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def version_key(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


# -- licence and packages ---------------------------------------------------------------------------------------------

def test_the_licence_is_whole_and_named() -> None:
    assert sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE_2
    assert PROJECT["project"]["license"] == "Apache-2.0"
    assert PROJECT["project"]["license-files"] == ["LICENSE"]


def test_a_wheel_says_that_its_packages_are_typed() -> None:
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["*"]
    assert "py.typed" in patterns
    assert [name for name in PROJECT["tool"]["mypy"]["packages"] if not (ROOT / name / "py.typed").is_file()] == []


def test_a_wheel_contains_every_file_of_its_packages() -> None:
    data: dict[str, list[str]] = PROJECT["tool"]["setuptools"]["package-data"]
    patterns = ["*.py", *(pattern.rpartition("/")[2] for patterns in data.values() for pattern in patterns)]
    files = (path for name in PROJECT["tool"]["mypy"]["packages"] for path in (ROOT / name).rglob("*.*"))
    left_out = [str(path.relative_to(ROOT)) for path in files
                if path.is_file() and path.parent.name != "__pycache__"
                and not any(fnmatchcase(path.name, pattern) for pattern in patterns)]
    assert left_out == [], "add a pattern to package-data in pyproject.toml"


# -- changelog --------------------------------------------------------------------------------------------------------

def test_the_changelog_has_the_usual_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased, *released = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert unreleased == "Unreleased"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", heading) for heading in released)
    versions = [heading.split()[0] for heading in released]
    assert versions == sorted(versions, key=version_key, reverse=True), "the newest comes first"
    assert PROJECT["project"]["version"] in versions
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= set(CATEGORIES)


# -- workflow and hooks -----------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def workflow() -> dict[Any, Any]:
    found: dict[Any, Any] = loaded(".github/workflows/ci.yml")
    return found


def commands(workflow: dict[Any, Any]) -> list[str]:
    return [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]


def test_tests_run_with_every_version_that_is_supported(workflow: dict[Any, Any]) -> None:
    classified = [name.rpartition(" ")[2] for name in PROJECT["project"]["classifiers"] if "Python :: 3." in name]
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == classified == list(VERSIONS)
    assert PROJECT["project"]["requires-python"] == f">={VERSIONS[0]}"


def test_the_workflow_runs_what_must_be_green(workflow: dict[Any, Any]) -> None:
    required = [line for line in (ROOT / ".ci/run").read_text().splitlines() if line.startswith("make ")]
    assert required
    assert set(required) <= set(commands(workflow))


def test_the_workflow_only_calls_make(workflow: dict[Any, Any]) -> None:
    [phony] = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for command in commands(workflow):
        program, target, *_ = shlex.split(command)
        assert program == "make"
        assert target in phony.split()


def test_the_workflow_may_only_read_and_has_an_end(workflow: dict[Any, Any]) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["group"]
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 60
        assert "permissions" not in job


def test_hooks_run_the_tools_of_the_environment() -> None:
    [repository] = loaded(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local", "nothing is downloaded"
    tools = {shlex.split(hook["entry"])[0] for hook in repository["hooks"]}
    assert tools == {".venv/bin/ruff", ".venv/bin/mypy"}
    [mypy] = [hook for hook in repository["hooks"] if hook["id"] == "mypy"]
    assert all(re.search(mypy["files"], f"{name}/x.py") for name in PROJECT["tool"]["mypy"]["packages"])


def test_editors_and_the_linter_know_the_same_width() -> None:
    settings = ConfigParser()
    settings.read_string("[top]\n" + (ROOT / ".editorconfig").read_text(encoding="utf-8"))
    assert settings["top"]["root"] == "true"
    assert int(settings["*.py"]["max_line_length"]) == PROJECT["tool"]["ruff"]["line-length"]


# -- forms ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_can_be_filled_in(path: Path) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert form["name"]
    assert form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields) > 0
    for field in fields:
        assert field["type"] in ("input", "textarea", "dropdown", "checkboxes")
        assert field["attributes"]["label"]
        assert ("options" in field["attributes"]) is (field["type"] in ("dropdown", "checkboxes"))


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_sends_vulnerabilities_elsewhere(path: Path) -> None:
    first = yaml.safe_load(path.read_text(encoding="utf-8"))["body"][0]
    assert first["type"] == "markdown"
    assert "SECURITY.md" in first["attributes"]["value"]


def test_every_issue_uses_a_form() -> None:
    assert {path.stem for path in FORMS} == {"bug", "feature", "wrong_verdict"}
    assert loaded(".github/ISSUE_TEMPLATE/config.yml")["blank_issues_enabled"] is False


def test_the_pull_request_template_names_what_is_there() -> None:
    text = (ROOT / ".github/pull_request_template.md").read_text(encoding="utf-8")
    [phony] = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"`make ([a-z]+)", text)) <= set(phony.split())
    assert [path for path in re.findall(r"`([\w./]+\.(?:md|yaml)|docs/)`", text) if not (ROOT / path).exists()] == []
