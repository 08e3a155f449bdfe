"""The wheel is built, installed into an empty environment, and used by another user in a folder with nothing in it."""

import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from urllib.request import urlopen

import pytest

from tests.support.child_commands import clean_environment

ROOT = Path(__file__).parents[3]
HANG = 1500


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=HANG, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder outside of the checkout that every user can enter."""
    folder = Path(mkdtemp(prefix="dragoman-installed-"))
    folder.chmod(0o755)
    yield folder
    run("chmod", "-R", "u+w", folder, cwd=Path("/"))
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def tree(place: Path) -> Path:
    """A clone: what is committed meanwhile does not matter."""
    run("git", "clone", "--quiet", "--no-hardlinks", "--depth=1", ROOT.as_uri(), place / "tree", cwd=place)
    return place / "tree"


@pytest.fixture(scope="module")
def dist(place: Path, tree: Path) -> Path:
    run("make", f"{Path(sys.prefix).relative_to(ROOT)}/.release", cwd=ROOT, env=clean_environment())
    run(sys.executable, "-m", "deploy.release", "--root", tree, "dist", "--out", place / "dist", cwd=ROOT)
    return place / "dist"


@pytest.fixture(scope="module")
def programs(place: Path, dist: Path) -> Path:
    """The programs of an environment that has the wheel; nobody can write to it."""
    run(sys.executable, "-m", "venv", place / "venv", cwd=place)
    run(place / "venv/bin/pip", "install", "--quiet", "--requirement", "requirements.txt", cwd=dist)
    run("chmod", "-R", "a-w,a+rX", place / "venv", cwd=place)
    return place / "venv/bin"


class Stranger:
    """A user who has no home and may write to one folder alone."""

    def __init__(self, programs: Path, folder: Path) -> None:
        folder.mkdir(mode=0o700)
        self._programs, self.folder, self._as = programs, folder, []
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            self._as = ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
        self.env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", "COLUMNS": "200"}

    def start(self, *words: str) -> "subprocess.Popen[str]":
        pipe = subprocess.PIPE
        return subprocess.Popen([*self._as, self._programs / words[0], *words[1:]], cwd=self.folder, env=self.env,
                                stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def run(self, *words: str, given: str = "") -> str:
        process = self.start(*words)
        said, errors = process.communicate(given, timeout=HANG)
        assert process.returncode == 0, f"{words}: {said}{errors}"
        return said


@pytest.fixture
def stranger(programs: Path, place: Path, request: pytest.FixtureRequest) -> Stranger:
    return Stranger(programs, place / re.sub(r"\W", "_", request.node.name))


def test_the_wheel_has_all_that_a_server_needs(dist: Path, tree: Path) -> None:
    [wheel] = dist.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    tracked = run("git", "ls-files", "gateway", "adapters", "mappings", "conformance", "docs", cwd=tree).splitlines()
    pages = {f"gateway/{path}" for path in tracked if path.startswith("docs/") and path.endswith((".md", ".svg"))}
    wanted = pages | {path for path in tracked if not path.startswith("docs/")} - {"conformance/pyproject.toml"}
    assert wanted - inside == set()
    tops = {name.partition("/")[0] for name in inside if ".dist-info" not in name}
    assert tops == {"gateway", "adapters", "mappings", "conformance"}


def test_it_serves_talks_and_examines(stranger: Stranger) -> None:
    server = stranger.start("dragoman", "serve", "--port", "0")
    try:
        assert server.stdout is not None
        assert "There is no config.yaml here" in server.stdout.readline()
        found = re.search(r"http://[\d.]+:\d+", server.stdout.readline())
        assert found, server.communicate(timeout=HANG)[1]
        url = found[0]
        for path in ("/console", "/api/v1/docs/structure", "/api/v1/docs/content/README.md", "/metrics"):
            with urlopen(f"{url}{path}", timeout=HANG) as answer:
                assert len(answer.read()) > 100, path
        for path in ("/aap", "/api/v1/cloud", "/api/v1", "/api"):
            assert stranger.run("dragoman", "chat", f"{url}{path}", given="hello\n") == "You said: hello\n"
        asked = ("aap", f"{url}/aap", "--only", "AAP-META-*", "--report", "report.html")
        told = stranger.run("dragoman", "conform", *asked)
        assert "conforms: Agent Application Protocol" in told
        assert (stranger.folder / "report.html").stat().st_size > 10_000
        server.send_signal(signal.SIGTERM)
        assert server.wait(HANG) == 0
    finally:
        server.kill()
        server.communicate(timeout=HANG)
    assert (stranger.folder / "data/dragoman.db").exists()


def test_settings_are_written_and_found_sound(stranger: Stranger) -> None:
    assert "config.yaml is written" in stranger.run("dragoman", "init")
    assert "agent demo" in stranger.run("dragoman", "check")
    assert "✗" not in stranger.run("dragoman", "doctor")
    assert "is written" in stranger.run("dragoman", "init", "other.yaml")


def test_it_tells_its_versions_also_as_a_module(stranger: Stranger) -> None:
    told = stranger.run("dragoman", "--version")
    assert told == stranger.run("python", "-m", "gateway", "--version")
    assert re.fullmatch(r"dragoman \S+\nstores +database \d+, records \d+\ntables +aap \S+, .*\n", told)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_it_completes_commands_in_shells(stranger: Stranger, shell: str) -> None:
    script = stranger.run("dragoman", "--show-completion", shell)
    assert "_DRAGOMAN_COMPLETE" in script


def test_bash_completes_what_the_script_says(stranger: Stranger, programs: Path) -> None:
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
