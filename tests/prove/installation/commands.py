"""Commands that must end well, and users who run them."""

import os
import pwd
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[3]
HANG = 1500


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=HANG, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class User:
    """Runs programs in a folder of its own: this user with these variables or, without any, a stranger.

    The stranger has no home, and may write to the folder alone.
    """

    def __init__(self, programs: Path, folder: Path, env: dict[str, str] | None = None) -> None:
        folder.mkdir(mode=0o700)
        self._programs, self.folder, self._as = programs, folder, list[str]()
        if env is None and os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            self._as = ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
        self.env = env or {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", "COLUMNS": "200"}

    def start(self, *words: str) -> "subprocess.Popen[str]":
        pipe = subprocess.PIPE
        return subprocess.Popen([*self._as, self._programs / words[0], *words[1:]], cwd=self.folder, env=self.env,
                                stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def run(self, *words: str, given: str = "") -> str:
        process = self.start(*words)
        said, errors = process.communicate(given, timeout=HANG)
        assert process.returncode == 0, f"{words}: {said}{errors}"
        return said

    @contextmanager
    def serving(self, *words: str) -> Iterator[str]:
        """The address of a server without settings; it must end by itself when it is told to."""
        server = self.start(*words, "serve", "--port", "0")
        try:
            assert server.stdout is not None
            assert "There is no config.yaml here" in server.stdout.readline()
            found = re.search(r"http://[\d.]+:\d+", server.stdout.readline())
            assert found, server.communicate(timeout=HANG)[1]
            yield found[0]
            server.send_signal(signal.SIGTERM)
            assert server.wait(HANG) == 0
        finally:
            server.kill()
            server.communicate(timeout=HANG)
