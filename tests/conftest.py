"""What all tests share: a quiet journal, and property tests without a stopwatch."""

import asyncio
import gc
import itertools
import logging
import re
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from aiohttp import web_app
from aiohttp.web_urldispatcher import UrlDispatcher
from hypothesis import HealthCheck, settings

from gateway import composition
from gateway.client.address_policy import ip_literal
from mappings.language import load
from tests.simulation import SimulatedLoop
from tests.support.ast_parser import keep_whole
from tests.support.dialect_tables import load_once
from tests.support.examples import EXAMPLES, SEARCH, fewer, forget_constants
from tests.support.route_copies import RouteCopies, missing_names

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that runs a job in the background has it ignore Ctrl-C, and so would all processes that tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)

USUAL = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("dragoman", USUAL, max_examples=fewer(EXAMPLES), derandomize=True)  # the same every time
# Others each time, for tests/prove/properties; under CI hypothesis itself would fix them.
settings.register_profile(SEARCH, USUAL, max_examples=EXAMPLES, derandomize=False, print_blob=True)
settings.load_profile("dragoman")
forget_constants()
keep_whole()

ALLOCATIONS = 50_000
"""How many objects are made between two looks for garbage: Python's own number costs a tenth of the time of a run."""
gc.disable()  # while modules are imported and tests are collected, hardly anything is garbage


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Tests run in simulated time: waits cost nothing, and a test that would hang says so at once."""
    return {"simulated": SimulatedLoop}


BROKEN: list[str] = []
"""What went wrong in pytest itself: more goes wrong after it, and is printed after it."""


def pytest_internalerror(excrepr: object) -> None:
    BROKEN.append(str(excrepr))


def pytest_unconfigure() -> None:
    if BROKEN:
        print("what broke first:", *BROKEN[0].splitlines()[-20:], sep="\n")


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: nobody need look through it for garbage again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(ALLOCATIONS, 20, 20)
    gc.enable()


def pytest_sessionfinish() -> None:
    """The process ends: nobody need look through all that it holds, as pytest does five times."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def tables_read_once() -> Iterator[None]:
    """A table cannot change, so all the gateways of a run share those that come with it."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (composition, load):
            patch.setattr(module, "load_table", load_once)
        yield


@pytest.fixture(autouse=True, scope="session")
def paths_read_once() -> Iterator[None]:
    """The routes of a gateway have the paths of the gateway before it."""
    copies = RouteCopies(UrlDispatcher.add_routes)
    with pytest.MonkeyPatch.context() as patch:
        if not missing_names():
            patch.setattr(UrlDispatcher, "add_routes", lambda router, routes: copies.add(router, routes))
        yield


FOLDERS = itertools.count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the test alone. To find a free name, pytest's own looks through the folders of all earlier tests."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / f"{name}_{next(FOLDERS)}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(autouse=True, scope="session")
def no_name_servers() -> Iterator[None]:
    """No test depends on what a name server knows: names that are not of this machine lead nowhere."""
    ask = socket.getaddrinfo

    def known(host: Any, *given: Any, **named: Any) -> Any:
        if host in (None, "", "localhost") or ip_literal(str(host)) is not None:
            return ask(host, *given, **named)
        str(host).encode("idna")  # as the original, which refuses what can be no name
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", known)
        yield


@pytest.fixture(autouse=True, scope="module")
def gateways_forgotten() -> Iterator[None]:
    """aiohttp keeps the handlers of the last thousand routes that were asked, and with them the gateways of tests."""
    yield
    web_app._cached_build_middleware.cache_clear()


def drop(*entry: Any) -> Any:
    raise structlog.DropEvent


def be_quiet() -> None:
    """What is logged goes nowhere, unless a test captures it."""
    structlog.reset_defaults()
    structlog.configure(processors=[drop])


@pytest.fixture(autouse=True, scope="module")
def journal_put_back() -> Iterator[None]:
    """A test that sets up the journal leaves nothing behind that writes into a closed stream."""
    be_quiet()
    yield
    be_quiet()


@pytest.fixture
def journal_for_a_while() -> Iterator[None]:
    """For a test that sets up the journal for itself."""
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    be_quiet()
    logging.basicConfig(handlers=handlers, level=level, force=True)
