"""`dragoman sessions`: lists the sessions of a server of any dialect, or of a data folder."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from .log import session_file
from .options import OWN_PROCESS, ConfigFile, DataFolder, is_address, load_settings, report_errors, setting_overrides
from .remote_server import DEFAULT_TIMEOUT, DialectName, Key, RemoteServer, Timeout, explain_errors, resolve_server

if TYPE_CHECKING:
    from gateway.ports import RemoteSession

HEAD = ("session", "user", "agent", "status", "changed", "title")
USER = HEAD.index("user")
LONGEST_TITLE = 60


def sessions(
    context: typer.Context,
    url: Annotated[str | None, typer.Argument(
        help="The URL of a server. Without it, the sessions of the data folder are listed.",
    )] = None,
    dialect: DialectName = None,
    key: Key = None,
    config: ConfigFile = None,
    data: DataFolder = None,
    limit: Annotated[int, typer.Option(min=1, help="How many sessions to list, the newest first.")] = 20,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """List the sessions of a server, or those in a data folder; a server may be running meanwhile.

    Example: [b]dragoman sessions http://127.0.0.1:18900[/b] or [b]dragoman sessions --data data[/b]

    A gateway lists the sessions of the user of the key. A server of a dialect, named with its path, lists them with the
    fields that its dialect has. A data folder has the sessions of all users. `dragoman chat URL --session ID` continues
    a session.
    """
    from gateway.chat import InterruptWatcher

    rows: Sequence[tuple[str, ...]]
    with InterruptWatcher(is_last=context.obj is OWN_PROCESS) as interrupts, report_errors():
        if url is not None and dialect is None and is_address(url) and urlsplit(url).path in ("", "/"):
            from .console_api import read_sessions

            rows = [_row(_listed(one)) for one in read_sessions(url, key, timeout, limit + 1)]
        elif url is not None:
            from gateway.chat import SyncClient

            server: RemoteServer = resolve_server(url, dialect, key, timeout)
            with explain_errors(server), SyncClient(server.connect(), interrupts) as client:
                rows = [_row(one) for one in client.sessions(limit + 1)]
        else:
            rows = list(_stored_sessions(session_file(load_settings(config, setting_overrides(data=data))), limit + 1))
    _print_rows(rows, limit)


def _print_rows(rows: Sequence[tuple[str, ...]], limit: int) -> None:
    for line in _table(rows[:limit]):
        typer.echo(line)
    if not rows:
        typer.echo("There are no sessions.", err=True)
    if len(rows) > limit:
        typer.echo(f"There are more than these; --limit {limit * 5} lists more.", err=True)


def _listed(shown: dict[str, Any]) -> "RemoteSession":
    """A session as the console shows it; without a title, its first words."""
    from gateway.ports import RemoteSession

    return RemoteSession(
        session_id=str(shown.get("session_id")), agent=shown.get("agent"), status=shown.get("status"),
        title=shown.get("title") or shown.get("preview"), updated_at=shown.get("updated_at"),
    )


def _row(session: "RemoteSession", user: str = "") -> tuple[str, ...]:
    from .record_format import printable

    at = session.updated_at
    changed = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC") if at is not None else ""
    title = session.title or ""
    cells = (
        session.session_id, user, session.agent or "", session.status or "", changed,
        title if len(title) <= LONGEST_TITLE else f"{title[:LONGEST_TITLE - 1]}…",
    )
    return tuple(map(printable, cells))


def _stored_sessions(path: Path, most: int) -> Iterator[tuple[str, ...]]:
    """Return the newest sessions of a file, the last changed first."""
    import gateway.model as m
    from gateway.ports import RemoteSession
    from gateway.storage.log import open_log_file

    with open_log_file(path) as file:
        heads = list(file.heads())[-most:]
        views = [m.fold(head.session_id, file.records(head.session_id)) for head in heads]
    for view in sorted(views, key=lambda view: view.updated_at, reverse=True):
        if view.closed is not m.CloseReason.DELETED:
            yield _row(RemoteSession(
                session_id=view.session_id, agent=view.agent, title=view.title, status=str(view.status),
                updated_at=view.updated_at,
            ), view.owner)


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Print a table without columns that are empty, and without users if all sessions have the same user."""
    if not rows:
        return
    columns = [number for number in range(len(HEAD)) if any(row[number] for row in rows)]
    if len({row[USER] for row in rows}) == 1 and USER in columns:
        columns.remove(USER)
    widths = {number: max(len(row[number]) for row in (HEAD, *rows)) for number in columns}
    for row in (HEAD, *rows):
        yield "  ".join(row[number].ljust(widths[number]) for number in columns).rstrip()
