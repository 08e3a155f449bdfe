"""`dragoman import`: brings the conversations of another server here, under their old ids, and what is beside them."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.private_files import private_opener

from .log import progress, session_file
from .options import (
    DIALECT_NAMES,
    ConfigFile,
    DataFolder,
    fail,
    is_address,
    load_settings,
    report_errors,
    setting_overrides,
)
from .remote_server import DEFAULT_TIMEOUT, Key, Timeout, explain_errors, resolve_server

if TYPE_CHECKING:
    from gateway.config import Config
    from gateway.migration import (
        ImportLine,
        ImportOrder,
        ImportSummary,
        ResourceLine,
        ResourceStore,
        SessionStore,
    )

    Line = ImportLine | ResourceLine
    Tell = Callable[[Line], None]
    Report = Callable[[Line], Awaitable[None]]
EXIT_PROBLEMS = 1
"""The exit code if some sessions could not be imported."""
SESSIONS = "sessions"
SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0}


def import_sessions(
    url: Annotated[str, typer.Argument(help="The URL of the old server, with the path of its dialect.")],
    dialect: Annotated[str | None, typer.Option(
        "--from", metavar="DIALECT",
        help=f"The dialect of the old server: {DIALECT_NAMES}. By default the one whose default path is in the URL.",
    )] = None,
    key: Key = None,
    user: Annotated[str, typer.Option(help="The user at the old server, if the dialect lists by user.")] = "",
    owner: Annotated[str, typer.Option(help="The user here who gets the sessions; empty if there are no keys.")] = "",
    agent: Annotated[str | None, typer.Option(
        help="The agent here, if no agent has the name of the old one; by default the first of the settings.")] = None,
    since: Annotated[str | None, typer.Option(
        metavar="TIME", help="Leave out what has not changed since: 7d, 12h, or a date such as 2026-11-01.")] = None,
    rate: Annotated[float | None, typer.Option(
        min=0.001, metavar="NUMBER", help="Make at most so many requests a second; by default as many as go.")] = None,
    is_dry: Annotated[bool, typer.Option("--dry-run", help="Read everything, and store nothing.")] = False,
    only: Annotated[list[str] | None, typer.Option(
        metavar="PART", help="Only sessions, agents, memories, files or schedules; repeat it for several.")] = None,
    without: Annotated[list[str] | None, typer.Option(
        metavar="PART", help="Everything but these; repeat it for several.")] = None,
    into: Annotated[str | None, typer.Option(
        metavar="URL", help="A running gateway to import into; without it, the log of the settings.")] = None,
    into_key: Annotated[str | None, typer.Option(
        envvar="DRAGOMAN_INTO_KEY", help="The key of an admin of that gateway.")] = None,
    report: Annotated[Path | None, typer.Option(
        help="Append a line of JSON for each session to this file, which only you can read.")] = None,
    config: ConfigFile = None,
    data: DataFolder = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Import the conversations, agents, memories, files and schedules of another server, under their old ids.

    Example: [b]dragoman import --from DIALECT http://old:8080/PATH --report import.jsonl[/b]

    With `log: sqlite`, stop the gateway first, or name the running one with --into; servers that share a Redis may run.
    Nothing changes at the old server. The command can be stopped and repeated: what is here already and has not changed
    there is not read again. Agents of the kind `remote` with the same URL continue the conversations there. The exit
    code is 0 if all sessions are here, 1 if some are not, and 2 if the command had to stop.
    """
    from gateway.migration import PROBLEMS, ImportChoice, ImportOrder, ResourceOutcome

    with report_errors(), ExitStack() as stack:
        server = resolve_server(url, dialect, key, timeout)
        order = ImportOrder(
            dialect=server.dialect, address=server.address, user=user, owner=owner, agent=agent,
            parts=read_parts(only or (), without or ()),
            choice=ImportChoice(
                since=None if since is None else read_since(since, time.time()), rate=rate, is_dry=is_dry),
        )
        tell = stack.enter_context(_told(report))
        stack.enter_context(explain_errors(server))
        if into is not None:
            done = _run_there(into, into_key, order, tell)
        else:
            done = asyncio.run(_run_here(load_settings(config, setting_overrides(data=data)), order, tell))
    for line in summary(done, order.parts, is_dry=is_dry):
        typer.echo(line)
    is_failed = any(group.counts.get(ResourceOutcome.FAILED) for group in done.groups)
    if is_failed or any(done.counts.get(outcome) for outcome in PROBLEMS):
        raise typer.Exit(EXIT_PROBLEMS)


def read_parts(only: Sequence[str], without: Sequence[str]) -> tuple[str, ...]:
    """What is imported: everything, these parts, or everything but those."""
    from gateway.migration import PARTS

    if unknown := next((part for part in (*only, *without) if part not in PARTS), None):
        fail(f"'{unknown}' cannot be imported; there are: {', '.join(PARTS)}")
    return tuple(part for part in PARTS if part in (only or PARTS) and part not in without)


def read_since(given: str, now: float) -> float:
    """The time in seconds since the epoch: an age such as 7d, or a date or time, in UTC if it has no zone."""
    number, unit = given[:-1], given[-1:]
    if number.isdecimal() and unit in SECONDS:
        return now - int(number) * SECONDS[unit]
    try:
        at = datetime.fromisoformat(given)
    except ValueError:
        fail(f"--since: must be an age such as 7d or 12h, or a date such as 2026-11-01, not '{given}'")
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _run_there(url: str, key: str | None, order: "ImportOrder", tell: "Tell") -> "ImportSummary":
    """Have a running gateway import."""
    from .console_api import run_import

    choice, address = order.choice, order.address
    body: dict[str, object] = {
        "dialect": order.dialect, "url": address.url, "key": address.key, "user": order.user, "owner": order.owner,
        "agent": order.agent, "since": choice.since, "rate": choice.rate, "dry_run": choice.is_dry,
        "timeout": address.patience.first_byte, "parts": list(order.parts),
    }
    if not is_address(url):
        fail(f"--into: '{url}' is not an http or https address; write it as http://HOST:PORT")
    done, cut = None, f"{url} has ended the import before it was done"
    for news in run_import(url, key, address.patience.first_byte, body):
        if (line := news.line or news.resource) is not None:
            tell(line)
        done, cut = news.done, news.error or cut
    if done is None:
        fail(f"{cut}; repeat the command: it goes on where it was")
    return done


async def _run_here(config: "Config", order: "ImportOrder", tell: "Tell") -> "ImportSummary":
    """Import into the log of the settings."""
    async def report(line: "Line") -> None:
        tell(line)

    if order.agent is not None and order.agent not in config.agents:
        fail(f"--agent: there is no agent '{order.agent}' in the settings; there are: {', '.join(config.agents)}")
    if "://" in config.log:
        from gateway.purge import opened

        async with opened(config) as gateway:
            done = await gateway.imports.run(order, report)
            await gateway.sessions.drain(config.limits.drain_seconds, asyncio.Event())
            return done
    from gateway.storage import StorageUnusable

    try:
        return await _run_in_file(config, order, report)
    except StorageUnusable as error:
        fail(f"{error.message}; or name the running gateway with --into; `adopt: true` is another way")


async def _run_in_file(config: "Config", order: "ImportOrder", report: "Report") -> "ImportSummary":
    """Import into the file of the settings, which no server may use meanwhile; other imports may."""
    from msgspec.structs import replace

    from gateway.migration import NoResources, NoStore, ServerImports, open_file_store, waiting_for_file
    from gateway.purge import opened
    from gateway.storage_factory import make_seal

    def imports(sessions: "SessionStore", resources: "ResourceStore | None") -> ServerImports:
        return ServerImports(sessions, resources, lambda: config.agents, lambda: config.default_agent, time.time)

    path = session_file(config, may_be_new=not order.choice.is_dry)
    if not path.exists():
        return await imports(NoStore(), NoResources()).run(order, report)
    with open_file_store(path, make_seal(config)) as store:
        done = await imports(store, None).run(order, report)
    others = replace(order, parts=tuple(part for part in order.parts if part != SESSIONS))
    if not others.parts:
        return done
    async with AsyncExitStack() as stack:
        gateway = await waiting_for_file(lambda: stack.enter_async_context(opened(config)))
        return replace(done, groups=(await gateway.imports.run(others, report)).groups)


@contextmanager
def _told(file: Path | None) -> "Iterator[Tell]":
    """Shows the progress of each session, and writes the line of each to the report."""
    import msgspec

    with ExitStack() as stack:
        show, seen = stack.enter_context(progress("{} things looked at")), count(1)
        try:
            target = None if file is None else stack.enter_context(open(file, "ab", opener=private_opener))
        except OSError as error:
            fail(f"{file} cannot be written: {error.strerror}")

        def tell(line: "Line") -> None:
            show(next(seen), 0)
            if target is not None:
                target.write(msgspec.json.encode(line) + b"\n")
                target.flush()

        yield tell


def summary(done: "ImportSummary", parts: Sequence[str], *, is_dry: bool) -> Iterator[str]:
    """One line for each outcome that there is, and one for what was lost."""
    from gateway.migration import OUTCOME_TEXTS, RESOURCE_TEXTS, ImportOutcome

    for outcome in ImportOutcome:
        if number := done.counts.get(outcome):
            words = OUTCOME_TEXTS[outcome]
            yield f"{number:,} {'to be ' if is_dry and words.startswith('imported') else ''}{words}"
    if SESSIONS in parts and not sum(done.counts.values()):
        yield "The server lists no sessions."
    for group in done.groups:
        for what, number in group.counts.items():
            words = RESOURCE_TEXTS[what]
            yield f"{group.group}: {number:,} {'to be ' if is_dry and words == 'imported' else ''}{words}"
    for loss, sessions in done.losses.items():
        yield f"not seen, or not kept, of {sessions:,}: {loss}"
    for unseen in dict.fromkeys(group.unseen for group in done.groups if group.unseen):
        names = ", ".join(group.group for group in done.groups if group.unseen == unseen)
        yield f"not seen, or not kept, of {names}: {unseen}"
