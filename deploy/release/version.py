"""The next version: which files change and how, and what forbids it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:(a|b|rc)(\d+))?")
"""Versions that Python packages and Semantic Versioning both know, and candidates: 1.2.3, 1.2.3rc1."""
LINE = re.compile(r'^version = "([^"]+)"$', re.MULTILINE)
PROJECTS = ("pyproject.toml", "conformance/pyproject.toml")
CHART = "deploy/helm/Chart.yaml"
CHART_LINE = re.compile(r"^(version|appVersion): .+$", re.MULTILINE)
CHANGELOG = "CHANGELOG.md"
HEADING = re.compile(r"^## Unreleased\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


class Refused(Exception):
    """This version cannot be made; the text says why, and what to do."""


@dataclass(frozen=True)
class Plan:
    """The new texts of files, the text of the release, and the commands that follow."""

    files: dict[str, str]
    notes: str
    commands: tuple[str, ...]


def plan(root: Path, version: str, today: date) -> Plan:
    """Return what a release of this version changes; raises `Refused`."""
    text = (root / CHANGELOG).read_text()
    _check(root, version, text)
    notes = _unreleased(text)
    files = {name: LINE.sub(f'version = "{version}"', (root / name).read_text(), count=1) for name in PROJECTS}
    files[CHART] = CHART_LINE.sub(rf"\1: {_semantic(version)}", (root / CHART).read_text())
    files[CHANGELOG] = text.replace("## Unreleased\n", f"## Unreleased\n\n## {version} - {today:%Y-%m-%d}\n", 1)
    commands = (
        f"git commit --all --message 'Release {version}'",
        f"git tag --annotate v{version} --message 'Dragoman {version}'",
        "make dist",
        f"git push --follow-tags origin HEAD v{version}",
    )
    return Plan(files, notes, commands)


def current_version(root: Path) -> str:
    found = LINE.search((root / PROJECTS[0]).read_text())
    assert found, "pyproject.toml has a version"
    return found[1]


def _check(root: Path, version: str, changelog: str) -> None:
    if problems := list(_problems(root, version, changelog)):
        raise Refused("\n".join(problems))


def _problems(root: Path, version: str, changelog: str) -> Iterator[str]:
    now = current_version(root)
    if not VERSION.fullmatch(version):
        yield f"'{version}' is not a version; write three numbers, as in VERSION=0.2.0, or 0.2.0rc1 for a candidate"
    elif not _order(version) > _order(now):
        yield f"{version} is not newer than {now}, which pyproject.toml has"
    if not _unreleased(changelog):
        yield f"{CHANGELOG} has nothing under '## Unreleased'; write down what changed for users"
    if f"\n## {version} - " in changelog:
        yield f"{CHANGELOG} has a section {version} already"


def _unreleased(changelog: str) -> str:
    found = HEADING.search(changelog)
    return found[1].strip() if found else ""


def _semantic(version: str) -> str:
    """The version as Helm spells it, by Semantic Versioning: 1.2.3-rc1."""
    return re.sub(r"(a|b|rc)(\d+)$", r"-\1\2", version)


def _order(version: str) -> tuple[int, int, int, str, int]:
    """A key that sorts versions; a candidate comes before its version."""
    found = VERSION.fullmatch(version)
    assert found, version
    major, minor, patch, kind, number = found.groups()
    return int(major), int(minor), int(patch), kind or "z", int(number or 0)
