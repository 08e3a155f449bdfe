"""A gateway that is killed cannot end its agents: they end by themselves, or are started so that they do."""

import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support import fork_server
from tests.support.backends.acp_turns import AGENT

ROOT = Path(__file__).parents[3]
GATEWAY = """
import asyncio, pathlib, sys
from gateway.backends.acp import AcpBackend, AcpSettings
from tests.support import fork_server
from tests.support.backends.acp_turns import played

async def main(folder, command, *args):
    made = AcpBackend(AcpSettings(command=command, args=args), pathlib.Path(folder))
    print((await played(made, ["pid"])).text, flush=True)
    await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""
AGENT_COMMAND = (sys.executable, "-I", "-S", str(AGENT))


def ends(agent: int) -> None:
    """Wait for the end of a process that is nobody's child here."""
    with suppress(ProcessLookupError):  # it is gone already
        watched = os.pidfd_open(agent)
        ready, _, _ = select.select([watched], [], [], 60)
        os.close(watched)
        assert ready, "it is still there"


@contextmanager
def killed(folder: Path, *command: str) -> Iterator[int]:
    """The process of an agent whose gateway was killed as soon as it had answered."""
    made = fork_server.Popen(
        [sys.executable, "-c", GATEWAY, str(folder), *command], stdout=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert made.stdout is not None
    with made:
        agent = next(int(line) for line in made.stdout if line.strip().isdigit())
        made.send_signal(signal.SIGKILL)
    try:
        yield agent
    finally:
        with suppress(ProcessLookupError):
            os.kill(agent, signal.SIGKILL)


def test_an_agent_that_hears_the_end_of_its_input_ends(tmp_path: Path) -> None:
    with killed(tmp_path, *AGENT_COMMAND) as agent:
        ends(agent)


@pytest.mark.skipif(
    shutil.which("setpriv") is None and not os.environ.get("CI"), reason="setpriv comes with Linux only",
)
def test_an_agent_that_does_not_is_ended_by_the_system_where_it_was_started_so(tmp_path: Path) -> None:
    with killed(tmp_path, "setpriv", "--pdeathsig", "KILL", *AGENT_COMMAND, "--undying") as agent:
        ends(agent)
