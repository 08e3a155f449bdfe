"""`dragoman import`: brings the conversations of another server here, under their old ids."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
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
    load_settings,
    report_errors,
    setting_overrides,
)
from .remote_server import DEFAULT_TIMEOUT, Key, RemoteServer, Timeout, explain_errors, resolve_server

if TYPE_CHECKING:
    from gateway.config import Config
    from gateway.migration import Destination, ImportChoice, Importer, ImportLine, Origin, SessionStore
    from gateway.ports import PastSessions

EXIT_PROBLEMS = 1
"""The exit code if some sessions could not be imported."""
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
    report: Annotated[Path | None, typer.Option(
        help="Append a line of JSON for each session to this file, which only you can read.")] = None,
    config: ConfigFile = None,
    data: DataFolder = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Import the conversations of another server, under their old ids. Stop the gateway first.

    Example: [b]dragoman import --from DIALECT http://old:8080/PATH --report import.jsonl[/b]

    Nothing changes at the old server. The command can be stopped and repeated: what is here already and has not changed
    there is not read again. Agents of the kind `remote` with the same URL continue the conversations there. The exit
    code is 0 if all sessions are here, 1 if some are not, and 2 if the command had to stop.
    """
    from gateway.migration import PROBLEMS, Destination, ImportChoice

    with report_errors():
        chosen = load_settings(config, setting_overrides(data=data))
        path = session_file(chosen, may_be_new=not is_dry)
        server = resolve_server(url, dialect, key, timeout)
        if agent is not None and agent not in chosen.agents:
            fail(f"--agent: there is no agent '{agent}' in the settings; there are: {', '.join(chosen.agents)}")
        to = Destination(owner=owner, agent=agent or chosen.default_agent, agents=frozenset(chosen.agents))
        choice = ImportChoice(since=None if since is None else read_since(since, time.time()), rate=rate, is_dry=is_dry)
        with explain_errors(server):
            done = _run(server, user, path, chosen, to, choice, report)
    for line in summary(done, is_dry=is_dry):
        typer.echo(line)
    if any(done.counts[outcome] for outcome in PROBLEMS):
        raise typer.Exit(EXIT_PROBLEMS)


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


def _run(
    server: RemoteServer, user: str, path: Path, config: "Config", to: "Destination", choice: "ImportChoice",
    report: Path | None,
) -> "Importer":
    from gateway.migration import Importer, NoStore, Origin, open_file_store
    from gateway.storage_factory import make_seal

    with ExitStack() as stack:
        tell = stack.enter_context(progress("{} sessions looked at"))
        write = stack.enter_context(_report(report))
        is_new = choice.is_dry and not path.exists()
        store: SessionStore = NoStore() if is_new else stack.enter_context(open_file_store(path, make_seal(config)))

        async def run(origin: "Origin", source: "PastSessions") -> Importer:
            importer = Importer(
                source, store, origin, to, time.time, choice=choice, report=write,
                progress=lambda done: tell(done, 0),
            )
            try:
                await importer.run()
            finally:
                await source.close()
            return importer

        return asyncio.run(run(Origin(dialect=server.dialect, url=server.url), server.past_sessions(user)))


@contextmanager
def _report(file: Path | None) -> Iterator[Callable[["ImportLine"], None]]:
    import msgspec

    if file is None:
        yield lambda line: None
        return
    try:
        with open(file, "ab", opener=private_opener) as target:
            def write(line: "ImportLine") -> None:
                target.write(msgspec.json.encode(line) + b"\n")
                target.flush()

            yield write
    except OSError as error:
        fail(f"{file} cannot be written: {error.strerror}")


def summary(done: "Importer", *, is_dry: bool) -> Iterator[str]:
    """One line for each outcome that there is, and one for what was lost."""
    from gateway.migration import OUTCOME_TEXTS, ImportOutcome

    for outcome in ImportOutcome:
        if done.counts[outcome]:
            words = OUTCOME_TEXTS[outcome]
            yield f"{done.counts[outcome]:,} {'to be ' if is_dry and words.startswith('imported') else ''}{words}"
    if not sum(done.counts.values()):
        yield "The server lists no sessions."
    for loss, sessions in done.losses.most_common():
        yield f"not seen, or not kept, of {sessions:,}: {loss}"
