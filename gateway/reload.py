"""Reloads settings, tables and agents while the server runs: when their files change, or on SIGHUP."""

import asyncio
import gc
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from gateway import logging
from gateway.app import Gateway
from gateway.composition import load_components
from gateway.config import Config, load_certificate, load_config
from gateway.engine_parts import adopting_agents
from gateway.errors import GatewayError, RateLimited
from gateway.http import limit_send_buffers
from gateway.process_signals import on_sighup
from gateway.yaml_positions import Position, Problem, Problems
from mappings.language import builtin_path

Reload = Callable[[], Awaitable[None]]
WatchedFiles = Callable[[], Collection[Path]]
Stamps = dict[Path, tuple[int, ...]]
QUIET_SECONDS = 0.1
"""Seconds without a change before the files are read: an editor or a deployment writes several files, some twice."""
POLL_MILLISECONDS = 1000
"""Milliseconds after which the files are looked at even if nobody announced a change: some file systems never do."""
REQUEST_SECONDS = 1.0
"""Admins may reload the settings over the API so many seconds after the last time."""
log = logging.get_logger("dragoman.reload")


class ReloadRequests:
    """Takes requests to reload from admins; whoever has the settings carries them out, one after another."""

    def __init__(self) -> None:
        self._due = asyncio.Event()
        self._answer: asyncio.Future[str | None] | None = None
        self._next_at = 0.0

    async def reload(self) -> str | None:
        """Wait for a reload; the problem for which the settings of before stay in force, if there is one."""
        loop = asyncio.get_running_loop()
        if self._answer is not None or loop.time() < self._next_at:
            raise RateLimited("the settings were read a moment ago; try again in a second",
                              retry_after=REQUEST_SECONDS, details={"retry_after": round(REQUEST_SECONDS)})
        self._answer, self._next_at = loop.create_future(), loop.time() + REQUEST_SECONDS
        self._due.set()
        return await asyncio.shield(self._answer)

    async def serve(self, reload: Reload) -> None:
        """Carry out requests until cancelled; a request that waits then is answered as well."""
        try:
            while True:
                await self._due.wait()
                self._due.clear()
                self._tell("; ".join(await try_reload(reload)) or None)
        finally:
            self._tell("the server is shutting down")

    def _tell(self, problem: str | None) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.set_result(problem)


async def reload_on_change(
    reload: Reload, files: WatchedFiles | None = None, requests: ReloadRequests | None = None, *,
    quiet: float = QUIET_SECONDS,
) -> None:
    """Call `reload` on SIGHUP, at a request and, if `files` are given, when one of them changes; until cancelled.

    If a reload fails, all its problems are logged, and the settings of before stay in force.
    """
    due = asyncio.Event()
    seen = file_stamps(files()) if files else {}
    with on_sighup(due.set):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_reload_when_due(reload, due, quiet))
            if files is not None:
                tasks.create_task(_watch_files(files, seen, due))
            if requests is not None:
                tasks.create_task(requests.serve(reload))


async def _reload_when_due(reload: Reload, due: asyncio.Event, quiet: float) -> None:
    while True:
        await due.wait()
        while due.is_set():
            due.clear()
            await asyncio.sleep(quiet)
        await try_reload(reload)


async def try_reload(reload: Reload) -> list[str]:
    """Reload once; if there are problems, nothing has changed."""
    try:
        await reload()
    except Problems as found:
        problems = [str(problem) for problem in found.problems]
    except (GatewayError, OSError) as error:
        problems = [str(error)]
    else:
        log.info("reloaded")
        return []
    finally:
        gc.collect()  # tables refer to themselves, megabytes of them, and a server collects old objects next to never
    log.error("reload_failed", problems=problems)
    return problems


async def _watch_files(files: WatchedFiles, seen: Stamps, due: asyncio.Event) -> None:
    """Set `due` on every change. Folders are watched instead of files, because editors replace files."""
    from watchfiles import awatch

    while True:
        folders = _folders(files())
        async for _ in awatch(
            *folders,
            recursive=False,
            watch_filter=None,
            debounce=400,
            rust_timeout=POLL_MILLISECONDS,
            yield_on_timeout=True,
        ):
            now = file_stamps(files())
            if any(file in now and now[file] != stamp for file, stamp in seen.items()):
                due.set()
            seen = now
            if _folders(files()) != folders:
                break


def file_stamps(files: Collection[Path]) -> Stamps:
    """Stamps that differ if a file was written to."""
    return {file: _stamp(file) for file in files}


def _stamp(file: Path) -> tuple[int, ...]:
    try:
        stat = file.stat()
    except OSError:
        return ()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _folders(files: Collection[Path]) -> set[Path]:
    return {file.parent for file in files if file.parent.is_dir()}


RESTART_SETTINGS = ("host", "port", "data", "log", "durability", "auth", "oidc", "audit")
"""Settings that are read once, when the server starts."""


def log_setting_warnings(config: Config) -> None:
    for warning in config.warnings:
        log.warning("setting_deprecated", setting=warning)
    for name in ("hosts", "origins"):
        if config.auth == "none" and "*" in (getattr(config, name) or ()):
            log.warning("setting_unsafe", setting=name, advice="pages of every site may use the agents without a key; "
                        "name those that may in place of '*', or set `auth: keys`")
    for name, agent in config.agents.items():
        if config.files_folder is None and agent.backend == "acp":
            log.warning("agent_needs_folder", agent=name, advice="ACP agents work in folders of this machine, not in "
                        "the bucket of `files:`; keep their `root` on a disk that outlives the server")


def make_reload(
    gateway: Gateway, doors: Sequence[socket.socket], context: ssl.SSLContext | None, overrides: Mapping[str, object],
) -> Callable[[], Awaitable[None]]:
    async def reload() -> None:
        old = gateway.components
        assert old.config.file is not None, "only settings from a file can be read again"
        config = load_config(old.config.file, overrides)
        problems = list(_fixed_setting_problems(old.config, config))
        try:
            parts = load_components(config, old)
        except Problems as found:
            problems += found.problems
        if problems:
            raise Problems(problems)
        if context is not None and config.tls is not None:
            load_certificate(context, config.tls.certificate, config.tls.key)
        gateway.replace_components(parts)
        log_setting_warnings(config)
        limit_send_buffers(doors, config.limits.send_seconds)
        logging.configure_logging(config.logging.format, config.logging.level)

    return reload


def _fixed_setting_problems(old: Config, new: Config) -> Iterator[Problem]:
    """A problem for each change of a setting that is only read at the start."""
    place, hint = Position(str(new.file)), "restart the server to change it"
    changed = [name for name in RESTART_SETTINGS if getattr(old, name) != getattr(new, name)]
    if (old.tls is None) != (new.tls is None):
        changed.append("tls")
    if _mounts(old) != _mounts(new):
        changed.append("dialects")
    if not adopting_agents(old) and adopting_agents(new):
        changed.append("adopt")
    for name in changed:
        yield Problem(place, f"'{name}' cannot change while the server runs", hint)


def _mounts(config: Config) -> dict[str, str | None]:
    return {name: dialect.mount for name, dialect in config.dialects.items()}


def settings_files(gateway: Gateway) -> list[Path]:
    """The files that the current settings, tables and agents were loaded from."""
    parts = gateway.components
    code = [file for made in parts.made.values() if made.module for file in made.module.files]
    return [*parts.config.source_files, *(builtin_path(name) for name in parts.dialects), *code]
