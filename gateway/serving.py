"""The process: a socket, signals, reloading, and an orderly end."""

import asyncio
import gc
import shlex
import signal
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

from aiohttp import web

from gateway import journal
from gateway.backends import files_of
from gateway.config import Config, load_certificate, load_config, server_context
from gateway.errors import Invalid
from gateway.marks import Place, Problem, Problems
from gateway.private_files import make_folder
from gateway.web import SOCKETS, LagWatch, hold_little
from mappings.language import builtin_path

from .app import Gateway
from .parts import load_parts
from .watch import keep_current

log = journal.get("dragoman.serve")

Announce = Callable[[str], None]
GC = (20_000, 50, 100)
"""Records and events make no cycles; collecting a third as often costs nothing and takes a seventh off a short turn."""
FAREWELL_SECONDS = 5.0
"""How long clients on sockets may take to say goodbye."""
FIXED = ("host", "port", "data", "log", "durability", "auth", "oidc", "audit")
"""Settings that are read once, when the server starts."""


async def run(
    config: Config, *, watch: bool, announce: Announce, overrides: Mapping[str, object] | None = None,
) -> int:
    """Serve until SIGINT or SIGTERM; the exit code. Raises `Problems`, or `OSError` if it cannot listen."""
    gateway = Gateway(load_parts(config))
    context = server_context(config.tls.certificate, config.tls.key) if config.tls else None
    _make_folder(config.data)
    _tell(config)
    stop, hurry = _signals()
    runner = gateway.runner(shutdown_timeout=2.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, config.host, config.port, ssl_context=context)
        await site.start()
        doors = _doors(site)
        hold_little(doors, config.limits.send_seconds)
        lag = LagWatch(gateway.metrics)
        lag.start()
        files = _files(gateway) if watch else None
        current = asyncio.create_task(keep_current(_reload(gateway, doors, context, overrides or {}), files))
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC)
        await asyncio.sleep(0)  # signals are listened to before anybody is told that we are here
        gateway.readiness.ready()
        for line in greeting(gateway, _address(config, runner)):
            announce(line)
        await _until(stop, current)
        await _leave(gateway, hurry)
        lag.stop()
    finally:
        await runner.cleanup()
        await gateway.close()
    log.info("stopped")
    return 0


def _make_folder(folder: Path) -> None:
    try:
        make_folder(folder)
    except OSError as error:
        raise Invalid(
            f"the data folder {folder} cannot be made: {error.strerror}; name another folder in `data:` or with --data"
        ) from None


def _signals() -> tuple[asyncio.Event, asyncio.Event]:
    """The first SIGINT or SIGTERM asks for an end, the second for a quick one."""
    stop, hurry = asyncio.Event(), asyncio.Event()

    def told() -> None:
        (hurry if stop.is_set() else stop).set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, told)
    return stop, hurry


async def _until(stop: asyncio.Event, meanwhile: asyncio.Task[None]) -> None:
    await stop.wait()
    meanwhile.cancel()
    with suppress(asyncio.CancelledError):
        await meanwhile


async def _leave(gateway: Gateway, hurry: asyncio.Event) -> None:
    """Take no new work; let running turns finish and their clients hear the end, and have all others come again."""
    log.info("stopping", running=gateway.sessions.running)
    gateway.readiness.draining()
    goodbye = asyncio.create_task(gateway.web[SOCKETS].leave())
    await gateway.sessions.drain(gateway.parts.config.limits.drain_seconds, hurry)
    await asyncio.wait([goodbye], timeout=0.0 if hurry.is_set() else FAREWELL_SECONDS)
    goodbye.cancel()
    with suppress(asyncio.CancelledError):
        await goodbye


def _doors(site: web.TCPSite) -> Sequence[socket.socket]:
    """Where clients come in; aiohttp keeps them to itself."""
    return cast(asyncio.Server, site._server).sockets


def _address(config: Config, runner: web.AppRunner) -> str:
    port = runner.addresses[0][1]
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(config.host, config.host)  # noqa: S104  # to connect to, not bind
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"{'https' if config.tls else 'http'}://{host}:{port}"


def _tell(config: Config) -> None:
    for warning in config.warnings:
        log.warning("setting_is_old", setting=warning)
    for name in ("hosts", "origins"):
        if config.auth == "none" and "*" in (getattr(config, name) or ()):
            log.warning("setting_is_open", setting=name, advice="pages of every site may use the agents without a key; "
                        "name those that may in place of '*', or set `auth: keys`")


# -- reading the settings again ---------------------------------------------------------------------------------------

def _reload(
    gateway: Gateway, doors: Sequence[socket.socket], context: ssl.SSLContext | None, overrides: Mapping[str, object],
) -> Callable[[], Awaitable[None]]:
    async def reload() -> None:
        old = gateway.parts
        assert old.config.file is not None, "only settings from a file can be read again"
        config = load_config(old.config.file, overrides)
        problems = list(_must_stay(old.config, config))
        try:
            parts = load_parts(config, old)
        except Problems as found:
            problems += found.problems
        if problems:
            raise Problems(problems)
        if context is not None and config.tls is not None:
            load_certificate(context, config.tls.certificate, config.tls.key)
        gateway.take(parts)
        _tell(config)
        hold_little(doors, config.limits.send_seconds)
        journal.configure(config.journal.format, config.journal.level)

    return reload


def _must_stay(old: Config, new: Config) -> Iterator[Problem]:
    """Some settings cannot change under a running server; better to say so than to obey by half."""
    place, hint = Place(str(new.file)), "restart the server to change it"
    changed = [name for name in FIXED if getattr(old, name) != getattr(new, name)]
    if (old.tls is None) != (new.tls is None):
        changed.append("tls")
    if _mounts(old) != _mounts(new):
        changed.append("dialects")
    for name in changed:
        yield Problem(place, f"'{name}' cannot change while the server runs", hint)


def _mounts(config: Config) -> dict[str, str | None]:
    return {name: dialect.mount for name, dialect in config.dialects.items()}


def _files(gateway: Gateway) -> Callable[[], list[Path]]:
    def files() -> list[Path]:
        parts = gateway.parts
        code = [file for backend in parts.backends.values() for file in files_of(backend)]
        return [*parts.config.files, *(builtin_path(name) for name in parts.dialects), *code]

    return files


# -- what to try ------------------------------------------------------------------------------------------------------

def greeting(gateway: Gateway, address: str) -> list[str]:
    config = gateway.parts.config
    lines = [f"Dragoman serves {', '.join(gateway.parts.cards)} on {address}"]
    lines += [f"  {name:<8} {address}{context.mount}" for name, context in gateway.contexts.items()]
    lines += [f"  data     {config.data}", f"  metrics  {address}/metrics"]
    return [*lines, *_without_keys(gateway), *_to_try(gateway, address)]


def _without_keys(gateway: Gateway) -> list[str]:
    """Whoever has to show a key must have one; those that are made later are known at once."""
    config = gateway.parts.config
    if config.asks_for != ("keys",) or len(gateway.keys):
        return []
    return [
        "There are no keys yet, and `auth: keys` lets nobody in without one. Make a key with:",
        f"  {_program()} keys add NAME --data {shlex.quote(str(_from_here(config.data)))}",
    ]


def _to_try(gateway: Gateway, address: str) -> list[str]:
    config, first = gateway.parts.config, next(iter(gateway.contexts.values()), None)
    if first is None:
        return []
    there, dialect = f"{address}{first.mount}", gateway.parts.dialects[first.dialect]
    has_keys = bool(config.asks_for)
    lines = [f"{_program()} chat {there} --dialect {first.dialect}{' --key $KEY' if has_keys else ''}"]
    if dialect.examples:
        lines += dialect.examples(there, config.default_agent, ' -H "Authorization: Bearer $KEY"' if has_keys else "")
    return ["Try:", *(f"  {line}" for line in lines)]


def _program() -> str:
    """How we were called, as it can be typed here."""
    called = Path(sys.argv[0])
    if called.name != "dragoman":
        return "dragoman"
    return str(_from_here(called))


def _from_here(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
