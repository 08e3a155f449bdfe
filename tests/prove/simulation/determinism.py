"""Gives programs of a world its clocks and its randomness, and takes away what would differ from run to run.

Time and randomness come from the process that runs: `time.time`, `time.monotonic`, `os.urandom`, `secrets`, `random`
and `uuid`. Functions that took a clock as a default when they were defined are given the world's. Outside of a world
everything is as ever.
"""

import os
import random
import secrets
import sys
import time
import types
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any
from unittest.mock import patch

import aiohappyeyeballs
import aiohttp
from aiohttp._websocket.writer import WebSocketWriter
from aiohttp.web_fileresponse import FileResponse

from gateway import time_slices
from tests.prove.simulation.loop import EPOCH, current_process

ROOMS = ("gateway", "adapters", "mappings", "aiohttp", "socketio", "engineio", "redis", "tests.prove.crash")
"""Where functions may have a clock as a default."""
REAL_TIME, REAL_MONOTONIC, REAL_COUNTER, REAL_URANDOM = time.time, time.monotonic, time.perf_counter, os.urandom


def wall_clock() -> float:
    """The time of day of the process that runs, which may be wrong."""
    process = current_process()
    return REAL_TIME() if process is None else EPOCH + process.loop.now + process.clock_error


def monotonic() -> float:
    process = current_process()
    return REAL_MONOTONIC() if process is None else 1000.0 + process.loop.now


def counter() -> float:
    process = current_process()
    return REAL_COUNTER() if process is None else process.loop.now


def urandom(size: int) -> bytes:
    process = current_process()
    return REAL_URANDOM(size) if process is None else process.random.randbytes(size)


class ProcessRandom(random.Random):
    """Random numbers of the process that runs."""

    def random(self) -> float:
        process = current_process()
        return super().random() if process is None else process.random.random()

    def getrandbits(self, bits: int) -> int:
        process = current_process()
        return super().getrandbits(bits) if process is None else process.random.getrandbits(bits)


CLOCKS: dict[Any, Callable[[], float]] = {REAL_TIME: wall_clock, REAL_MONOTONIC: monotonic, REAL_COUNTER: counter}
RANDOM = ProcessRandom()
NAMES = ("random", "uniform", "randint", "choice", "choices", "sample", "shuffle", "randrange", "getrandbits",
         "expovariate", "randbytes")


def uuid4() -> uuid.UUID:
    return uuid.UUID(bytes=urandom(16), version=4)


def token_bytes(size: int | None = None) -> bytes:
    return urandom(secrets.DEFAULT_ENTROPY if size is None else size)


def submit(self: ThreadPoolExecutor, work: Callable[..., Any], /, *given: Any, **named: Any) -> Any:
    """In place of a thread: at once. What awaits a result comes through the loop, and takes its time there."""
    future: Future[Any] = Future()
    try:
        future.set_result(work(*given, **named))
    except BaseException as error:  # noqa: BLE001  # as a thread keeps what its work raised
        future.set_exception(error)
    return future


def slice_queue() -> Any:
    """The queue of long work: a process of its own has one of its own, though all are in one loop."""
    process = current_process()
    if process is None:
        return SLICE_QUEUE()
    if process.slices is None:
        process.slices = time_slices._SliceQueue()
    return process.slices


SLICE_QUEUE = time_slices._slice_queue


@contextmanager
def world_sources() -> Iterator[None]:
    """While this holds, programs of a world have its time and its randomness."""
    patches = [
        patch.object(time, "time", wall_clock), patch.object(time, "monotonic", monotonic),
        patch.object(time, "perf_counter", counter), patch.object(os, "urandom", urandom),
        patch.object(secrets, "token_bytes", token_bytes),
        patch.object(secrets, "token_hex", lambda size=None: token_bytes(size).hex()),
        patch.object(uuid, "uuid4", uuid4), patch.object(ThreadPoolExecutor, "submit", submit),
        patch.object(aiohappyeyeballs, "start_connection", _start_connection),
        patch.object(time_slices, "_slice_queue", slice_queue),
        patch.object(aiohttp.ClientSession, "__init__", _client_session),
        patch.object(FileResponse, "_make_response", _make_file_response),
        patch.dict(WebSocketWriter.__init__.__kwdefaults__, random=RANDOM),
        *(patch.object(random, name, getattr(RANDOM, name)) for name in NAMES),
        *(patch.object(module, "uuid4", uuid4) for module in _modules()
          if getattr(module, "uuid4", None) is uuid.uuid4),
    ]
    sites = list(_clock_sites())
    for one in patches:
        one.start()
    for function, defaults, keywords in sites:
        function.__defaults__, function.__kwdefaults__ = _given(defaults), _named(keywords)
    try:
        yield
    finally:
        for function, defaults, keywords in sites:
            function.__defaults__, function.__kwdefaults__ = defaults, keywords
        for one in reversed(patches):
            one.stop()


MAKE_SESSION = aiohttp.ClientSession.__init__


def _client_session(self: aiohttp.ClientSession, *given: Any, **named: Any) -> None:
    """An HTTP client sends the key of its process, whoever makes it."""
    process = current_process()
    if process is not None and process.token:
        named["headers"] = {"Authorization": f"Bearer {process.token}", **(named.get("headers") or {})}
    MAKE_SESSION(self, *given, **named)


MAKE_FILE_RESPONSE = FileResponse._make_response


def _make_file_response(self: FileResponse, *given: Any) -> Any:
    """Clients are told when a file was changed: the disk has the time of the real world."""
    with suppress(OSError):
        os.utime(self._path, (EPOCH, EPOCH))
    return MAKE_FILE_RESPONSE(self, *given)


async def _start_connection(addr_infos: Any, **given: Any) -> Any:
    process = current_process()
    assert process is not None, "connections are made within a world"
    return await process.loop.network.connect_socket(addr_infos, **given)


def _modules() -> list[types.ModuleType]:
    return [module for name, module in sys.modules.items() if module is not None and name.startswith(ROOMS)]


def _clock_sites() -> Iterator[tuple[Any, Any, Any]]:
    """Functions with a clock as a default, and the defaults they have."""
    seen: set[int] = set()
    for module in _modules():
        for value in list(vars(module).values()):
            found = list(vars(value).values()) if isinstance(value, type) else [value]
            for function in found:
                function = getattr(function, "__func__", function)
                if isinstance(function, types.FunctionType) and id(function) not in seen:
                    seen.add(id(function))
                    given, named = function.__defaults__ or (), function.__kwdefaults__ or {}
                    if any(_is_clock(one) for one in (*given, *named.values())):
                        yield function, function.__defaults__, function.__kwdefaults__


def _is_clock(value: Any) -> bool:
    return isinstance(value, types.BuiltinFunctionType) and value in CLOCKS


def _given(defaults: Any) -> Any:
    return defaults and tuple(CLOCKS[one] if _is_clock(one) else one for one in defaults)


def _named(keywords: Any) -> Any:
    return keywords and {name: CLOCKS[one] if _is_clock(one) else one for name, one in keywords.items()}
