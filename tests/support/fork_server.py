"""Python processes that start at once: they are forked from an interpreter that has everything imported already.

`Popen` takes the arguments of `subprocess.Popen` and does what it does, for commands that run this interpreter:
`[sys.executable, "-c", CODE, …]`, `[sys.executable, "-m", MODULE, …]` and `[sys.executable, FILE, …]`.
"""

import atexit
import fcntl
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.support.fork_client import LONGEST, ask

ROOT = Path(__file__).parents[2]
CLIENT = Path(__file__).with_name("fork_client.py")
IMPORTED = (
    "uvloop", "rich.console", "gateway.server", "gateway.cli", "gateway.chat", "gateway.translate",
    "gateway.backends.remote", "conformance.command", "tests.support.dialect_tables",
)
PATIENCE = 300.0


# -- the process that is forked from ----------------------------------------------------------------------------------

def fork_server(asked: int) -> None:
    """Fork a process for every command that comes in; tell its id at once, and its exit code when it has ended."""
    from gateway import composition
    from mappings.language import load

    for name in IMPORTED:
        importlib.import_module(name)
    tables = importlib.import_module("tests.support.dialect_tables")
    for name in tables.DIALECTS:
        tables.table(name)
    composition.load_table = load.load_table = tables.load_once
    gc.collect()
    gc.freeze()
    _serve(socket.socket(fileno=asked))


def _serve(asked: socket.socket) -> None:
    asking: dict[int, socket.socket] = {}

    def reap(*_: object) -> None:
        while asking:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            with asking.pop(pid) as client, suppress(OSError):
                client.send(str(os.waitstatus_to_exitcode(status)).encode())

    signal.signal(signal.SIGCHLD, reap)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while asked in select.select([asked, 0], [], [])[0]:
        client, _ = asked.accept()
        said, files, _, _ = socket.recv_fds(client, LONGEST, 3)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        pid = os.fork()
        if pid == 0:
            for line in (asked, client, *asking.values()):
                line.close()
            _become(json.loads(said), files)
        asking[pid] = client
        client.send(str(pid).encode())
        for file in files:
            os.close(file)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def _become(command: dict[str, Any], files: list[int]) -> None:
    """What happens between the start of an interpreter and its end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    os.environ.clear()
    os.environ.update(command["env"])
    os.chdir(command["cwd"])
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    if command["is_new_session"]:
        os.setsid()
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    is_unbuffered = "PYTHONUNBUFFERED" in os.environ
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stdout.reconfigure(line_buffering=os.isatty(1), write_through=is_unbuffered)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.stderr.reconfigure(line_buffering=True)
    os._exit(_exit_code(command["args"]))


def _exit_code(args: list[str]) -> int:
    code = 0
    try:
        _run(args)
    except SystemExit as left:
        if isinstance(left.code, str):
            print(left.code, file=sys.stderr)
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except KeyboardInterrupt:
        traceback.print_exc()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:  # noqa: BLE001  # an interpreter tells of all of them
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError as error:
        print(f"Exception ignored: {error!r}", file=sys.stderr)
        code = 120
    sys.stderr.flush()
    return code


def _run(args: list[str]) -> None:
    how, *words = args[1:]
    if how == "-c":
        main = ModuleType("__main__")
        sys.modules["__main__"], sys.argv = main, ["-c", *words[1:]]
        exec(compile(words[0], "<string>", "exec"), main.__dict__)
    elif how == "-m":
        sys.argv = words
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [how, *words]
        sys.path.insert(0, str(Path(how).parent))
        runpy.run_path(how, run_name="__main__")


# -- the process that asks --------------------------------------------------------------------------------------------

class ForkServer:
    """One serves all tests of a process, and ends with it."""

    def __init__(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind("")  # Linux chooses a name
            listening.listen(64)
            self.address = listening.getsockname()
            code = f"from tests.support.fork_server import fork_server; fork_server({listening.fileno()})"
            self._process = subprocess.Popen(
                [sys.executable, "-c", code], cwd=ROOT, pass_fds=[listening.fileno()], stdin=subprocess.PIPE,
            )

    def close(self) -> None:
        self._process.communicate(timeout=PATIENCE)


@cache
def fork_server_of_this_process() -> ForkServer:
    made = ForkServer()
    atexit.register(made.close)
    return made


def for_shells() -> str:
    """Stands for `python` in lines that are given to a shell."""
    name = fork_server_of_this_process().address[1:].decode()
    return f"{sys.executable} -I -S {CLIENT} {name}"


class Popen(subprocess.Popen):  # type: ignore[type-arg]
    """`subprocess.Popen` of a command of this interpreter, without the half second that its imports take."""

    def _execute_child(  # type: ignore[no-untyped-def]
        self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell,
        p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, restore_signals, gid, gids, uid, umask,
        start_new_session, *rest,
    ) -> None:
        assert args[0] == sys.executable and preexec_fn is None, args
        self.args = args
        files = [own if file == -1 else file for own, file in enumerate((p2cread, c2pwrite, errwrite))]
        words, where = [os.fspath(word) for word in args], os.fspath(cwd or Path.cwd())
        try:
            self._line = ask(
                fork_server_of_this_process().address, files, args=words, cwd=where,
                env=dict(os.environ if env is None else env), is_new_session=start_new_session,
            )
        finally:
            self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]
        self.pid = int(self._line.recv(32))
        self._child_created = True

    def _internal_poll(self, *given: object, **named: object) -> int | None:
        self._look(0)
        return self.returncode

    def _wait(self, timeout: float | None) -> int | None:
        if not self._look(timeout):
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def _look(self, seconds: float | None) -> bool:
        if self.returncode is None and select.select([self._line], [], [], seconds)[0]:
            with self._line as line:
                self.returncode = int(line.recv(32) or 255)  # nothing: the fork server was killed
        return self.returncode is not None


def run(args: Sequence[str], *, input: str | None = None, **given: Any) -> "subprocess.CompletedProcess[str]":
    """`subprocess.run` with text, and with what is printed kept."""
    pipe = subprocess.PIPE
    asked = pipe if input is not None else subprocess.DEVNULL
    with Popen(args, stdin=asked, stdout=pipe, stderr=pipe, text=True, **given) as process:
        try:
            out, errors = process.communicate(input, PATIENCE)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(args, process.returncode, out, errors)
