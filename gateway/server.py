"""The process: a socket, signals, reloading, and an orderly end."""

import asyncio
import gc
import shlex
import socket
import ssl
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import cast

from aiohttp import web

from gateway import logging
from gateway.config import Config, make_tls_context
from gateway.errors import Invalid
from gateway.http import (
    DRAIN_REQUESTED,
    OPEN_SOCKETS,
    TOLD_TO_STOP,
    LimitedAppRunner,
    LoopLagMonitor,
    Metrics,
    SocketRelay,
    limit_send_buffers,
)
from gateway.private_files import make_private_folder
from gateway.process_signals import stop_events
from gateway.worker import Worker, WorkerMetrics

from .app import Gateway
from .composition import load_components
from .reload import ReloadRequests, log_setting_warnings, make_reload, reload_on_change, settings_files

log = logging.get_logger("dragoman.server")

Announce = Callable[[str], None]
GC_THRESHOLDS = (20_000, 50, 100)
"""Records and events make no cycles; collecting a third as often costs nothing and takes a seventh off a short turn."""
SWITCH_SECONDS = 0.001
"""How long other threads, such as the one that stores records, wait for the event loop: a fifth of the usual time."""
LAST_REQUEST_SECONDS = 1.0
"""How long a worker that ends serves requests on connections that it has accepted, before it refuses new turns."""
CLOSE_SECONDS = 5.0
"""How long clients on sockets may take to close their connection."""


async def run(
    config: Config, *, watch: bool, announce: Announce, overrides: Mapping[str, object] | None = None,
    worker: Worker | None = None,
) -> int:
    """Serve until SIGINT or SIGTERM; the exit code. Raises `Problems`, or `OSError` if it cannot listen.

    A worker accepts connections from the socket that its parent gave it, and tells its parent when it is ready.
    """
    requests = ReloadRequests()
    siblings = Siblings(worker) if worker else None
    gateway = _make_gateway(config, requests, siblings)
    context = make_tls_context(config.tls.certificate, config.tls.key) if config.tls else None
    _make_folder(config.data)
    log_setting_warnings(config)
    stop, hurry = stop_events()
    runner = gateway.runner(shutdown_timeout=2.0)
    await runner.setup()
    try:
        site = _site(runner, config, context, worker)
        await site.start()
        doors = _listening_sockets(site)
        limit_send_buffers(doors, config.limits.send_seconds)
        lag = LoopLagMonitor(gateway.metrics)
        lag.start()
        files = partial(settings_files, gateway) if watch else None
        reload = make_reload(gateway, doors, context, overrides or {})
        current = asyncio.create_task(reload_on_change(reload, files, requests))
        await _become_ready(gateway, runner, siblings, announce)
        await _wait_for_stop(stop, gateway.drain_requested, current)
        if siblings:
            await _leave_port(site, runner, hurry)
        await drain(gateway, hurry, DRAIN_REQUESTED if gateway.drain_requested.is_set() else TOLD_TO_STOP)
        lag.stop()
    finally:
        if siblings:
            await siblings.close()
        await runner.cleanup()
        await gateway.close()
    log.info("stopped")
    return 0


def _make_gateway(config: Config, requests: ReloadRequests, siblings: "Siblings | None") -> Gateway:
    """The gateway of the settings; that of a worker shares metrics and Socket.IO clients with the other workers."""
    return Gateway(
        load_components(config), reloads=requests if config.file else None,
        metrics_page=siblings.metrics.render_all if siblings else None,
        socket_relay=siblings.relay if siblings else None,
    )


async def _become_ready(
    gateway: Gateway, runner: LimitedAppRunner, siblings: "Siblings | None", announce: Announce,
) -> None:
    """Accept requests, and say so: a worker to its parent, any other server with the lines that `announce` gets."""
    _tune_garbage_collection()
    sys.setswitchinterval(SWITCH_SECONDS)
    await asyncio.sleep(0)  # signals are handled before the server announces that it is ready
    gateway.readiness.mark_ready()
    lines = startup_lines(gateway, _address(gateway.components.config, runner))
    if siblings:
        await siblings.start(runner, gateway.metrics, lines)
    else:
        for line in lines:
            announce(line)


def _tune_garbage_collection() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


async def _leave_port(site: web.BaseSite, runner: LimitedAppRunner, hurry: asyncio.Event) -> None:
    """Accept no more connections: the other workers do. Requests on accepted connections are served for a moment."""
    await site.stop()
    with suppress(TimeoutError):
        async with asyncio.timeout(LAST_REQUEST_SECONDS):
            await hurry.wait()
    runner.close_idle_connections()


class Siblings:
    """The other workers of the parent: each shows the metrics of all, and passes on what another one has to answer."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self.metrics = WorkerMetrics(worker)
        self.relay = SocketRelay(worker.folder)

    async def start(self, runner: web.AppRunner, metrics: Metrics, lines: Sequence[str]) -> None:
        """Take requests from the other workers, and tell the parent that this one serves."""
        await web.UnixSite(runner, self.relay.own_socket).start()
        await self.metrics.start(metrics.render)
        self._worker.stop_with_parent()
        self._worker.report_ready(lines)

    async def close(self) -> None:
        self.metrics.stop()
        await self.relay.close()


def _site(
    runner: web.AppRunner, config: Config, context: ssl.SSLContext | None, worker: Worker | None,
) -> web.TCPSite | web.SockSite:
    if worker:
        return web.SockSite(runner, worker.door, ssl_context=context)
    return web.TCPSite(runner, config.host, config.port, ssl_context=context)


def _make_folder(folder: Path) -> None:
    try:
        make_private_folder(folder)
    except OSError as error:
        raise Invalid(
            f"the data folder {folder} cannot be made: {error.strerror}; name another folder in `data:` or with --data"
        ) from None


async def _wait_for_stop(
    stop: asyncio.Event, drain_requested: asyncio.Event, meanwhile: asyncio.Task[None],
) -> None:
    """Wait for a signal, or for an operator's request; a signal after the request is the second one."""
    asked = [asyncio.create_task(stop.wait()), asyncio.create_task(drain_requested.wait())]
    await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    for task in asked:
        task.cancel()
    stop.set()
    meanwhile.cancel()
    with suppress(asyncio.CancelledError):
        await meanwhile


async def drain(gateway: Gateway, hurry: asyncio.Event | None = None, why: str = TOLD_TO_STOP) -> None:
    """Start no turn; let running turns finish and their clients receive the end; the others have to reconnect."""
    hurry = hurry or asyncio.Event()
    log.info("stopping", running=gateway.table.turn_count)
    gateway.readiness.mark_draining(why)
    goodbye = asyncio.create_task(gateway.web[OPEN_SOCKETS].close_when_idle())
    await gateway.sessions.drain(gateway.components.config.limits.drain_seconds, hurry)
    await asyncio.wait([goodbye], timeout=0.0 if hurry.is_set() else CLOSE_SECONDS)
    goodbye.cancel()
    with suppress(asyncio.CancelledError):
        await goodbye


def _listening_sockets(site: web.TCPSite | web.SockSite) -> Sequence[socket.socket]:
    """The sockets that the server listens on, which aiohttp does not offer."""
    return cast(asyncio.Server, site._server).sockets


def _address(config: Config, runner: web.AppRunner) -> str:
    port = runner.addresses[0][1]
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(config.host, config.host)  # noqa: S104  # to connect to, not bind
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"{'https' if config.tls else 'http'}://{host}:{port}"


# -- what is printed at the start -------------------------------------------------------------------------------------

def startup_lines(gateway: Gateway, address: str) -> list[str]:
    config = gateway.components.config
    lines = [f"Dragoman serves {', '.join(gateway.components.cards)} on {address}"]
    lines += [f"  {name:<8} {address}{context.mount}" for name, context in gateway.contexts.items()]
    lines += [f"  console  {address}/console"] if config.console else []
    lines += [f"  data     {config.data}", f"  metrics  {address}/metrics"]
    return [*lines, *_key_hint(gateway), *_example_commands(gateway, address)]


def _key_hint(gateway: Gateway) -> list[str]:
    """How to make the first key, where clients need one."""
    config = gateway.components.config
    if config.auth_methods != ("keys",) or len(gateway.keys):
        return []
    return [
        "There are no keys yet, and `auth: keys` refuses every request without one. Make a key with:",
        f"  {_program_name()} keys add NAME --data {shlex.quote(str(_relative_to_here(config.data)))}",
    ]


def _example_commands(gateway: Gateway, address: str) -> list[str]:
    config, first = gateway.components.config, next(iter(gateway.contexts.values()), None)
    if first is None:
        return []
    there, dialect = f"{address}{first.mount}", gateway.components.dialects[first.dialect]
    has_keys = bool(config.auth_methods)
    chat = f"{_program_name()} chat {there} --dialect {first.dialect}{' --key $KEY' if has_keys else ''}"
    lines = [chat] if dialect.remote else []
    if dialect.examples:
        lines += dialect.examples(there, config.default_agent, ' -H "Authorization: Bearer $KEY"' if has_keys else "")
    return ["Try:", *(f"  {line}" for line in lines)]


def _program_name() -> str:
    """The name of the program, as it can be typed in this folder."""
    called = Path(sys.argv[0])
    if called.name != "dragoman":
        return "dragoman"
    return str(_relative_to_here(called))


def _relative_to_here(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
