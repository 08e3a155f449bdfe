"""The wheel is installed by other programs than pip, and into every Python of this machine that we support."""

import re
import sys
from pathlib import Path

import pytest

from tests.prove.installation.commands import User, run
from tests.support.child_commands import clean_environment
from tests.support.interpreters import installed, version_of


@pytest.fixture(scope="session")
def installers(place: Path) -> Path:
    run(sys.executable, "-m", "venv", place / "installers", cwd=place)
    run(place / "installers/bin/pip", "install", "--quiet", "pipx", "uv", cwd=place)
    return place / "installers/bin"


def serves_and_talks(user: User, *dragoman: str) -> None:
    assert re.match(r"dragoman \d", user.run(*dragoman, "--version"))
    with user.serving(*dragoman) as url:
        for path in ("/aap", "/api/v1/cloud", "/api/v1", "/api"):
            assert user.run(*dragoman, "chat", f"{url}{path}", given="hello\n") == "You said: hello\n"


def test_pipx_installs_it(installers: Path, wheel: Path, place: Path) -> None:
    env = {**clean_environment(), "PIPX_HOME": str(place / "pipx"), "PIPX_BIN_DIR": str(place / "pipx-bin"),
           "PIPX_MAN_DIR": str(place / "pipx-man")}
    told = run(installers / "pipx", "install", wheel, cwd=place, env=env)
    assert "installed package dragoman" in told
    serves_and_talks(User(place / "pipx-bin", place / "user of pipx"), "dragoman")


def test_uvx_runs_it(installers: Path, wheel: Path, place: Path) -> None:
    env = {**clean_environment(), "UV_CACHE_DIR": str(place / "cache of uvx")}
    user = User(installers, place / "user of uvx", env)
    serves_and_talks(user, "uvx", "--quiet", "--from", str(wheel), "dragoman")


@pytest.mark.parametrize("python", installed(), ids=lambda python: str(version_of(python)))
def test_it_serves_with_every_python(python: str, wheel: Path, place: Path) -> None:
    folder = place / f"python{version_of(python)}"
    run(python, "-m", "venv", folder, cwd=place)
    run(folder / "bin/pip", "install", "--quiet", f"{wheel}[redis,mcp,acp,agui,otel]", cwd=place)
    user = User(folder / "bin", place / f"user of {folder.name}", clean_environment())
    serves_and_talks(user, "dragoman")
    assert "✗" not in user.run("dragoman", "doctor")
