"""The commands of docs/upgrading.md, run as they are there: one server is upgraded, and goes back in both ways."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.prove.crash.killable_server import KillableProcess
from tests.prove.fleet.gateways import calling
from tests.prove.upgrade.releases import ROOT

PAGE = (ROOT / "docs/upgrading.md").read_text()
DRAGOMAN = f"""\
#!/bin/sh
PYTHONPATH="$(cat "$RELEASE")" exec {sys.executable} -c 'from gateway.cli import main; main()' "$@"
"""
PIP = """\
#!/bin/sh
case "$*" in
  "install --upgrade newer/*.whl") echo "$THIS" ;;
  "install older/*.whl") echo "$PREVIOUS" ;;
  *) echo "no such command: pip $*" >&2; exit 1 ;;
esac > "$RELEASE"
"""


class OperatorShell:
    """A shell beside config.yaml, where pip only says which of the two releases `dragoman` is."""

    def __init__(self, server: KillableProcess, folder: Path, previous: Path) -> None:
        self._server = server
        self._previous = previous
        self._release = folder / "release"
        self._release.write_text(str(previous))
        for name, text in (("dragoman", DRAGOMAN), ("pip", PIP)):
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        self._env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "RELEASE": str(self._release),
                     "THIS": str(ROOT), "PREVIOUS": str(previous)}

    def run_section(self, title: str) -> None:
        """Run the commands that the page shows under this title."""
        commands = PAGE.partition(f"# {title}\n")[2].partition("```sh\n")[2].partition("```")[0]
        assert commands, title
        done = subprocess.run(["sh", "-e", "-c", commands], cwd=self._server.folder, env=self._env,
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        packages = Path(self._release.read_text().strip())
        self._server.packages = packages if packages == self._previous else None


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("way_back", "kept"), [
    ("Back with all data of before", 1),
    ("Back with the sessions of today", 2),
])
async def test_one_server_goes_up_and_back_as_the_page_says(
    tmp_path: Path, previous: Path, way_back: str, kept: int,
) -> None:
    for name in ("server", "bin"):
        (tmp_path / name).mkdir()
    server = KillableProcess(tmp_path / "server", packages=previous)
    shell = OperatorShell(server, tmp_path / "bin", previous)
    try:
        before = await sessions(server, new=True)
        shell.run_section("One server with a SQLite log")
        assert server.packages is None
        after = await sessions(server, new=True)
        assert (len(after), after[-1:]) == (2, before)
        shell.run_section(way_back)
        assert server.packages == previous
        assert await sessions(server) == after[-kept:]
    finally:
        server.close()


async def sessions(server: KillableProcess, *, new: bool = False) -> list[str]:
    """Start the server, create one more session if asked to, stop the server; return all sessions, the newest first."""
    await server.start()
    await server.wait_ready()
    async with calling() as http:
        if new:
            async with http.post(f"{server.address}/aap/sessions", json={"agent": {"name": "demo"}}) as answer:
                assert answer.status < 300, await answer.text()
        async with http.get(f"{server.address}/api/v1/cloud/sessions") as answer:
            found = [one["id"] for one in (await answer.json())["data"]]
    await server.end(signal.SIGTERM)
    return found
