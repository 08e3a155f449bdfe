"""The wheel is built, installed into an empty environment, and used by another user in a folder with nothing in it."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.prove.installation.commands import HANG, ROOT, User, run


@pytest.fixture(scope="module")
def programs(place: Path, dist: Path) -> Path:
    """The programs of an environment that has the wheel; nobody can write to it."""
    run(sys.executable, "-m", "venv", place / "venv", cwd=place)
    run(place / "venv/bin/pip", "install", "--quiet", "--requirement", "requirements.txt", cwd=dist)
    run("chmod", "-R", "a-w,a+rX", place / "venv", cwd=place)
    return place / "venv/bin"


@pytest.fixture
def stranger(programs: Path, place: Path, request: pytest.FixtureRequest) -> User:
    return User(programs, place / re.sub(r"\W", "_", request.node.name))


def test_the_wheel_has_all_that_a_server_needs(wheel: Path, tree: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    tracked = run("git", "ls-files", "gateway", "adapters", "mappings", "conformance", "docs", cwd=tree).splitlines()
    pages = {f"gateway/{path}" for path in tracked if path.startswith("docs/") and path.endswith((".md", ".svg"))}
    wanted = pages | {path for path in tracked if not path.startswith("docs/")} - {"conformance/pyproject.toml"}
    assert wanted - inside == set()
    tops = {name.partition("/")[0] for name in inside if ".dist-info" not in name}
    assert tops == {"gateway", "adapters", "mappings", "conformance"}


def test_it_serves_talks_and_examines(stranger: User) -> None:
    with stranger.serving("dragoman") as url:
        for path in ("/console", "/api/v1/docs/structure", "/api/v1/docs/content/README.md", "/metrics"):
            with urlopen(f"{url}{path}", timeout=HANG) as answer:
                assert len(answer.read()) > 100, path
        for path in ("/aap", "/api/v1/cloud", "/api/v1", "/api"):
            assert stranger.run("dragoman", "chat", f"{url}{path}", given="hello\n") == "You said: hello\n"
        asked = ("aap", f"{url}/aap", "--only", "AAP-META-*", "--report", "report.html")
        told = stranger.run("dragoman", "conform", *asked)
        assert "conforms: Agent Application Protocol" in told
        assert (stranger.folder / "report.html").stat().st_size > 10_000
    assert (stranger.folder / "data/dragoman.db").exists()


def test_settings_are_written_and_found_sound(stranger: User) -> None:
    assert "config.yaml is written" in stranger.run("dragoman", "init")
    assert "agent demo" in stranger.run("dragoman", "check")
    assert "✗" not in stranger.run("dragoman", "doctor")
    assert "is written" in stranger.run("dragoman", "init", "other.yaml")


def test_it_tells_its_versions_also_as_a_module(stranger: User) -> None:
    told = stranger.run("dragoman", "--version")
    assert told == stranger.run("python", "-m", "gateway", "--version")
    assert re.fullmatch(r"dragoman \S+\nstores +database \d+, records \d+\ntables +aap \S+, .*\n", told)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_it_completes_commands_in_shells(stranger: User, shell: str) -> None:
    script = stranger.run("dragoman", "--show-completion", shell)
    assert "_DRAGOMAN_COMPLETE" in script


def test_bash_completes_what_the_script_says(stranger: User, programs: Path) -> None:
    script = stranger.run("dragoman", "--show-completion", "bash")
    asked = f'{script}\nCOMP_WORDS=(dragoman doc) COMP_CWORD=1; _dragoman_completion dragoman; echo "${{COMPREPLY[@]}}"'
    env = {**stranger.env, "PATH": f"{programs}:{stranger.env['PATH']}"}
    assert run("bash", "-c", asked, cwd=stranger.folder, env=env).split() == ["doctor"]


def test_the_same_commit_gives_the_same_bytes_elsewhere(dist: Path, tree: Path, place: Path) -> None:
    """Another folder, another umask, a later time."""
    run("git", "clone", "--quiet", tree, place / "clone", cwd=place)
    again = ["--root", str(place / "clone"), "dist", "--out", str(place / "again")]
    build = [sys.executable, "-m", "deploy.release", *again]
    done = subprocess.run(build, cwd=ROOT, umask=0o077, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (place / "again/SHA256SUMS").read_text() == (dist / "SHA256SUMS").read_text()
