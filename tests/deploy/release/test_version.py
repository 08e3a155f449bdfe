"""`make release` changes the files that name the version and no others, and refuses versions that cannot be."""

import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from deploy.release.version import CHANGELOG, CHART, PROJECTS, Refused, current_version, plan

ROOT = Path(__file__).parents[3]
DAY = date(2026, 12, 24)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "conformance").mkdir()
    for name in PROJECTS:
        (tmp_path / name).write_text('[project]\nversion = "0.3.0"\nrequires = ["x>=0.3.0"]\n')
    (tmp_path / CHART).parent.mkdir(parents=True)
    (tmp_path / CHART).write_text("apiVersion: v2\nversion: 0.3.0\nappVersion: 0.3.0\nkubeVersion: '>=1'\n")
    (tmp_path / CHANGELOG).write_text("# Changelog\n\n## Unreleased\n\n- new\n\n## 0.3.0 - 2026-01-01\n\n- old\n")
    return tmp_path


def test_a_release_writes_the_version_and_its_section(tree: Path) -> None:
    made = plan(tree, "0.4.0", DAY)
    assert made.files == {
        **dict.fromkeys(PROJECTS, '[project]\nversion = "0.4.0"\nrequires = ["x>=0.3.0"]\n'),
        CHART: "apiVersion: v2\nversion: 0.4.0\nappVersion: 0.4.0\nkubeVersion: '>=1'\n",
        CHANGELOG: "# Changelog\n\n## Unreleased\n\n## 0.4.0 - 2026-12-24\n\n- new\n\n## 0.3.0 - 2026-01-01\n\n- old\n",
    }
    assert made.notes == "- new"
    assert "git tag --annotate v0.4.0 --message 'Dragoman 0.4.0'" in made.commands


def test_a_candidate_comes_before_its_version(tree: Path) -> None:
    (tree / PROJECTS[0]).write_text('version = "0.4.0rc2"\n')
    for newer in ("0.4.0rc10", "0.4.0", "0.4.1a1"):
        assert plan(tree, newer, DAY)
    assert "\nversion: 0.4.0-rc10\n" in plan(tree, "0.4.0rc10", DAY).files[CHART], "as Helm spells it"
    with pytest.raises(Refused, match="not newer"):
        plan(tree, "0.4.0rc1", DAY)


@pytest.mark.parametrize(("version", "why"), [
    ("1", "not a version"), ("v1.0.0", "not a version"), ("01.0.0", "not a version"), ("", "not a version"),
    ("0.3.0", "not newer than 0.3.0"), ("0.2.9", "not newer than 0.3.0"),
])
def test_versions_that_cannot_be_are_refused(tree: Path, version: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        plan(tree, version, DAY)


def test_a_release_in_which_nothing_changed_is_refused(tree: Path) -> None:
    (tree / CHANGELOG).write_text("# Changelog\n\n## Unreleased\n\n## 0.3.0 - 2026-01-01\n\n- old\n")
    with pytest.raises(Refused, match="nothing under '## Unreleased'"):
        plan(tree, "0.4.0", DAY)


def test_a_dry_run_changes_nothing(tree: Path) -> None:
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    told = released(tree, "0.4.0", "--dry-run")
    assert "would write pyproject.toml" in told
    assert "git tag --annotate v0.4.0" in told
    assert {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()} == before
    assert "wrote pyproject.toml" in released(tree, "0.4.0")
    assert current_version(tree) == "0.4.0"


def released(tree: Path, *words: str) -> str:
    command = [sys.executable, "-m", "deploy.release", "--root", str(tree), "next", *words]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=300).stdout


def test_the_next_release_of_this_project_can_be_planned(tmp_path: Path) -> None:
    """The patterns fit the files that are really there: each names the new version once, and nothing else changes."""
    (tmp_path / "conformance").mkdir()
    (tmp_path / CHART).parent.mkdir(parents=True)
    for name in (*PROJECTS, CHART, CHANGELOG):
        shutil.copy(ROOT / name, tmp_path / name)
    made = plan(tmp_path, "99.0.0", DAY)
    for name in PROJECTS:
        old, new = (ROOT / name).read_text().splitlines(), made.files[name].splitlines()
        assert [b for a, b in zip(old, new, strict=True) if a != b] == ['version = "99.0.0"']
    assert "\n## Unreleased\n\n## 99.0.0 - 2026-12-24\n" in made.files[CHANGELOG]


def test_both_packages_have_one_version() -> None:
    assert len({line for name in PROJECTS for line in (ROOT / name).read_text().splitlines()
                if line.startswith("version = ")}) == 1
