"""The bench is run from the repository, not installed; its servers are forked from a warm interpreter."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench import servers, soak
from tests.support import fork_server


@pytest.fixture(autouse=True)
def warm_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a start costs is for the bench to measure, not for its tests."""
    cold = servers.Server._spawn

    def spawn(server: servers.Server, command: Sequence[str], core: int) -> "subprocess.Popen[bytes]":
        if command[0] != sys.executable:
            return cold(server, command, core)
        with server._errors.open("wb") as errors:
            process = fork_server.Popen(
                command, cwd=servers.ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
                env=servers._environment() | dict(server.contender.environment), start_new_session=True,
            )
        os.sched_setaffinity(process.pid, {core})
        return process

    monkeypatch.setattr(servers.Server, "_spawn", spawn)
    monkeypatch.setattr(soak, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": fork_server.Popen}))
