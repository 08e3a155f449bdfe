"""`dragoman export`: makes sessions of ours at another server, if its protocol takes a history."""

import asyncio
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.private_files import private_opener

from .import_sessions import read_since
from .log import session_file
from .options import DIALECT_NAMES, ConfigFile, DataFolder, fail, load_settings, report_errors, setting_overrides
from .remote_server import DEFAULT_TIMEOUT, Key, RemoteServer, Timeout, explain_errors, resolve_server

if TYPE_CHECKING:
    from gateway.config import Config

EXIT_PROBLEMS = 1
FEATURE, TAKES_HISTORIES = "history_seed", "full"
"""The feature of a dialect, and its degree, with which a session can be created from messages."""


def export_sessions(
    url: Annotated[str, typer.Argument(help="The URL of the other server, with the path of its dialect.")],
    dialect: Annotated[str | None, typer.Option(
        "--to", metavar="DIALECT",
        help=f"The dialect of the other server: {DIALECT_NAMES}. By default the one whose default path is in the URL.",
    )] = None,
    key: Key = None,
    agent: Annotated[str | None, typer.Option(help="The agent there; by default the first one.")] = None,
    owner: Annotated[str, typer.Option(help="The user here whose sessions are exported.")] = "",
    since: Annotated[str | None, typer.Option(
        metavar="TIME", help="Leave out what has not changed since: 7d, 12h, or a date such as 2026-11-01.")] = None,
    is_dry: Annotated[bool, typer.Option("--dry-run", help="Send nothing.")] = False,
    report: Annotated[Path, typer.Option(
        help="A line of JSON for each session, with both ids; sessions in it are not exported again.",
    )] = Path("export.jsonl"),
    config: ConfigFile = None,
    data: DataFolder = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Make sessions of yours at another server; a gateway may be running meanwhile.

    Example: [b]dragoman export --to DIALECT http://other:8080/PATH[/b]

    The protocol must be one in which a session can be created with messages; of the others the command says so. The
    other server gives the sessions new ids, which are in the report. The command can be repeated with the same report.
    The exit code is 0 if all were exported, 1 if some were not, and 2 if the command had to stop.
    """
    with report_errors():
        chosen = load_settings(config, setting_overrides(data=data))
        server = resolve_server(url, dialect, key, timeout, agent)
        _check_takes_histories(chosen, server)
        path = session_file(chosen)
        with explain_errors(server):
            after = None if since is None else read_since(since, time.time())
            counts = _run(path, server, report, owner, after, is_dry)
    _tell(counts, is_dry)


def _check_takes_histories(config: "Config", server: RemoteServer) -> None:
    from gateway.backends.remote import client_dialects
    from gateway.composition import load_dialect_table

    can = [name for name in client_dialects()
           if load_dialect_table(config, name)[1].support.get(FEATURE) == TAKES_HISTORIES]
    if server.dialect not in can:
        fail(f"in {server.dialect} a session cannot be created with messages, so nothing can be exported to such a "
             f"server; it can in: {', '.join(can) or 'none'}")


def _run(
    path: Path, server: RemoteServer, report: Path, owner: str, since: float | None, is_dry: bool,
) -> "Counter[str]":
    """How many sessions have each outcome, and of how many each loss is known."""
    import msgspec

    from gateway.migration import ExportChoice, ExportLine, export_sessions_to
    from gateway.storage.log import open_log_file

    counts = Counter[str]()
    choice = ExportChoice(url=server.url, owner=owner, since=since, done=_exported(report, server.url), is_dry=is_dry)
    with ExitStack() as stack:
        file = stack.enter_context(open_log_file(path))
        try:
            target = None if is_dry else stack.enter_context(open(report, "ab", opener=private_opener))
        except OSError as error:
            fail(f"{report} cannot be written: {error.strerror}")

        def write(line: ExportLine) -> None:
            counts.update((line.outcome, *line.unseen))
            if target is not None:
                target.write(msgspec.json.encode(line) + b"\n")
                target.flush()

        async def run(choice: ExportChoice) -> None:
            remote = server.connect()
            try:
                await export_sessions_to(remote, file, choice, write)
            finally:
                await remote.close()

        asyncio.run(run(choice))
    return counts


def _exported(report: Path, url: str) -> frozenset[str]:
    """The sessions that the report says were exported to this server."""
    import msgspec

    from gateway.migration import ExportLine, ExportOutcome

    try:
        found = [msgspec.json.decode(line, type=ExportLine) for line in report.read_bytes().splitlines()]
    except FileNotFoundError:
        return frozenset()
    except (OSError, msgspec.MsgspecError) as error:
        fail(f"--report: {report} is no report of an export: {error}")
    return frozenset(line.session_id for line in found if line.url == url and line.outcome is ExportOutcome.EXPORTED)


def _tell(counts: "Counter[str]", is_dry: bool) -> None:
    from gateway.migration import EXPORT_TEXTS, ExportOutcome

    for outcome in ExportOutcome:
        if counts[outcome]:
            typer.echo(f"{counts[outcome]:,} {'to be ' if is_dry else ''}{EXPORT_TEXTS[outcome]}")
    if not counts:
        typer.echo("There is nothing to export.")
    for loss, sessions in counts.most_common():
        if loss not in EXPORT_TEXTS:
            typer.echo(f"not there, of {sessions:,}: {loss}")
    if counts[ExportOutcome.FAILED] or counts[ExportOutcome.RUNNING]:
        raise typer.Exit(EXIT_PROBLEMS)
