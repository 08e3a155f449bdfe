"""`dragoman usage`: which clients speak which dialect, and what they use."""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from .options import ConfigFile, DataFolder, fail, load_settings, report_errors, setting_overrides
from .remote_server import DEFAULT_TIMEOUT, Key, Timeout

if TYPE_CHECKING:
    from gateway.config import Config
    from gateway.usage import ClientUsage

Since = Annotated[str, typer.Option(metavar="AGE", help="How far back: 7d, 12h or 30m; a day is the finest step.")]
Server = Annotated[str | None, typer.Argument(
    help="The URL of a running gateway. Without it, the log that the settings name is read.")]
HEAD = ("dialect", "key", "client", "requests", "last seen", "features")


def usage(
    url: Server = None,
    since: Since = "7d",
    as_json: Annotated[bool, typer.Option("--json", help="Print everything that was counted as JSON.")] = False,
    key: Key = None,
    config: ConfigFile = None,
    data: DataFolder = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Show which clients speak which dialect, and which endpoints and features they use; a server may be running.

    Example: [b]dragoman usage --since 30d[/b] or [b]dragoman usage http://127.0.0.1:18900 --json[/b]

    A client is a program, as its requests name it, with a key and a dialect. Servers that share a log are counted
    together. A server stores what it has counted every five seconds.
    """
    with report_errors():
        clients = read_clients(url, key, timeout, load_settings(config, setting_overrides(data=data)), since)
        if as_json:
            import msgspec

            typer.echo(msgspec.json.format(msgspec.json.encode(clients)).decode())
            return
        for line in table_lines(clients):
            typer.echo(line)
        if not clients:
            typer.echo(f"No client was seen in the last {since}.", err=True)


def read_clients(
    url: str | None, key: str | None, timeout: float, config: "Config", since: str,
) -> "list[ClientUsage]":
    """The clients that were seen since then, as a running gateway or the log says."""
    from gateway.errors import Invalid
    from gateway.quotas import SYSTEM_OWNER
    from gateway.storage_factory import read_resources
    from gateway.usage import KIND, ClientUsage, client_usage, parse_age, rows_since

    try:
        begin = time.time() - parse_age(since)
    except Invalid as error:
        fail(f"--since: {error.message}")
    if url is not None:
        import msgspec

        from .console_api import read_usage

        found = read_usage(url, key, timeout, since).get("clients", [])
        return msgspec.convert([one["usage"] for one in found], list[ClientUsage])  # type: ignore[attr-defined]
    if config.log == "memory":
        fail("the settings say `log: memory`: nothing outlives the server; name the URL of a running one")
    return client_usage(rows_since(read_resources(config, KIND, SYSTEM_OWNER), begin), begin)


def table_lines(clients: "list[ClientUsage]") -> list[str]:
    """A line for each client; what it uses beyond the table is in the JSON."""
    from .record_format import printable

    if not clients:
        return []
    rows = [HEAD, *(
        (one.dialect, printable(one.key), printable(one.client), f"{one.requests:,}", minute(one.last_at),
         ", ".join(one.features) or "-") for one in clients)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.rjust(width) if number == HEAD.index("requests") else cell.ljust(width)
                      for number, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip() for row in rows]


def minute(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
