"""A pytest plugin that runs the tests in several processes: they are collected once, and the workers are forked then.

    the parent          imports and collects everything, forks the workers, and reports what they send
    a worker            takes a portion of the tests, runs it, takes the next, until none is left

The workers of pytest-xdist would begin anew: each of them imports and collects everything again.
"""

import atexit
import os
import pickle
import selectors
import signal
import struct
import sys
import traceback
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from _pytest.junitxml import xml_key

from tests.support.longest_first import LONGEST

PORTION = 8
"""How many tests of one file a worker takes at once: few enough that no worker is left alone with many at the end."""
NUMBER = struct.Struct("<I")
AT_ONCE = 1 << 16
REPORTERS = ("terminalreporter", "terminalprogress-plugin", "lfplugin", "nfplugin", "stepwiseplugin")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--workers", type=int, default=0, help="in how many forked processes tests run; 0: in this one")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in workers, if workers are wanted and everything could be collected."""
    number = session.config.getoption("workers")
    if not number or session.config.option.collectonly or session.testsfailed:
        return None
    Workers(session, number).run()
    return True


def portions(items: Sequence[pytest.Item]) -> list[range]:
    """The numbers of the tests, in the portions in which they are taken; a test that takes long is one by itself."""
    found = []
    for path, group in groupby(range(len(items)), lambda number: items[number].path):
        numbers, step = list(group), 1 if path.stem in LONGEST else PORTION
        found += [range(first, min(first + step, numbers[-1] + 1)) for first in numbers[::step]]
    return found


class Workers:
    """The workers of a run, seen from the process that reports."""

    def __init__(self, session: pytest.Session, number: int) -> None:
        self.session, self.config = session, session.config
        self._selector = selectors.DefaultSelector()
        self._running: dict[int, int | None] = {}
        """The test that each worker is at, by the worker's process."""
        self._left = set(range(len(session.items)))
        self._portions = portions(session.items)
        self._tickets, offer = os.pipe()
        os.write(offer, b"".join(map(NUMBER.pack, range(len(self._portions)))))
        os.close(offer)
        self._names = [f"gw{place}" for place in range(number)]

    def _fork(self) -> None:
        """Begin the workers; an interruption waits until all are there."""
        home = self.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        sys.stdout.flush()
        sys.stderr.flush()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        for name in self._names:
            self._fork_one(name, home)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def _fork_one(self, name: str, home: Path) -> None:
        come, go = os.pipe()
        pid = os.fork()
        if not pid:
            code = 1
            try:
                os.close(come)
                code = Worker(self.session, name, home, self._portions, self._tickets, go).run()
            finally:
                os._exit(code)
        os.close(go)
        self._running[pid] = None
        self._selector.register(come, selectors.EVENT_READ, (pid, bytearray()))

    def run(self) -> None:
        try:
            self._fork()
            while self._selector.get_map():
                for key, _ in self._selector.select():
                    self._hear(key.fd, *key.data)
        finally:
            self._end()
        if self.session.shouldfail:
            raise self.session.Failed(self.session.shouldfail)
        if self.session.shouldstop:
            raise self.session.Interrupted(self.session.shouldstop)
        for number in sorted(self._left):
            self._fail(number, "the worker that had taken this ended before it")

    def _hear(self, come: int, pid: int, unread: bytearray) -> None:
        given = os.read(come, AT_ONCE)
        unread += given
        while len(unread) >= (begin := NUMBER.size) and len(unread) >= (end := begin + NUMBER.unpack_from(unread)[0]):
            self._take(pid, *pickle.loads(unread[begin:end]))
            del unread[:end]
        if not given:
            self._lose(come, pid)

    def _take(self, pid: int, word: str, given: Any) -> None:
        hook = self.config.hook
        if word == "report":
            hook.pytest_runtest_logreport(report=hook.pytest_report_from_serializable(config=self.config, data=given))
            if self.session.shouldfail or self.session.shouldstop:
                while os.read(self._tickets, AT_ONCE):
                    """Nobody need run what nobody has taken yet."""
            return
        item = self.session.items[given]
        if word == "begins":
            self._running[pid] = given
            self._left.discard(given)
            hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        else:
            self._running[pid] = None
            hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _lose(self, come: int, pid: int) -> None:
        """A worker has ended; if it was at a test, that test has failed."""
        self._selector.unregister(come)
        os.close(come)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        number = self._running.pop(pid)
        if number is not None:
            self._fail(number, f"the worker that ran this ended with exit code {code}")

    def _fail(self, number: int, words: str) -> None:
        item = self.session.items[number]
        self.config.hook.pytest_runtest_logreport(
            report=pytest.TestReport(item.nodeid, item.location, {}, outcome="failed", longrepr=words, when="call"))

    def _end(self) -> None:
        """Interrupt the workers that are left, and wait for their end."""
        for pid in self._running:
            os.kill(pid, signal.SIGINT)
        for pid in self._running:
            os.waitpid(pid, 0)
        os.close(self._tickets)


class Worker:
    """One worker, in its own process: it prints nothing, and has a folder for temporary files of its own."""

    def __init__(
        self, session: pytest.Session, name: str, home: Path, offered: Sequence[range], tickets: int, go: int
    ) -> None:
        self.session, self.config = session, session.config
        self._portions, self._tickets, self._go = offered, tickets, go
        atexit._clear()  # what the parent has to put away is not ours
        plugins = self.config.pluginmanager
        for plugin in [*map(plugins.get_plugin, REPORTERS), self.config.stash.get(xml_key, None)]:
            if plugin is not None:
                plugins.unregister(plugin)
        plugins.register(self, "forked-worker")
        self.config.workerinput = {"workerid": name}  # type: ignore[attr-defined]
        (home / name).mkdir()
        self.config._tmp_path_factory._basetemp = home / name  # type: ignore[attr-defined]
        capture: Any = plugins.get_plugin("capturemanager")
        if capture.is_globally_capturing():  # into a file that is the parent's
            capture.stop_global_capturing()
            capture.start_global_capturing()
            capture.suspend_global_capture()

    def run(self) -> int:
        """Run what is offered: the exit code of this process."""
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            numbers = self._numbers()
            following = next(numbers, None)
            while (number := following) is not None:
                following = next(numbers, None)
                self._run_one(number, following)
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            self.session._setupstate.teardown_exact(None)
            return 128 + signal.SIGINT
        except BaseException:  # noqa: BLE001  # what is left of the run goes on without this worker, and fails
            traceback.print_exc()
            return 1
        finally:
            atexit._run_exitfuncs()
        return 0

    def _run_one(self, number: int, following: int | None) -> None:
        items = self.session.items
        self._tell("begins", number)
        self.config.hook.pytest_runtest_protocol(
            item=items[number], nextitem=None if following is None else items[following])
        self._tell("ended", number)

    def _numbers(self) -> Iterator[int]:
        while ticket := os.read(self._tickets, NUMBER.size):
            yield from self._portions[NUMBER.unpack(ticket)[0]]

    def _tell(self, word: str, given: object) -> None:
        message = pickle.dumps((word, given))
        message = NUMBER.pack(len(message)) + message
        while message:
            message = message[os.write(self._go, message):]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._tell("report", self.config.hook.pytest_report_to_serializable(config=self.config, report=report))
