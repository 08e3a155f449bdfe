"""`dragoman migrate`: what a move from one dialect to another costs the clients that were seen."""

import time
from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    DIALECT_NAMES,
    CommandGroup,
    ConfigFile,
    DataFolder,
    fail,
    load_settings,
    report_errors,
    setting_overrides,
)
from .remote_server import DEFAULT_TIMEOUT, Key, Timeout
from .usage import Server, Since, minute, read_clients

if TYPE_CHECKING:
    from gateway.usage import ClientLosses, FeatureLoss, NoticedDifference

WIDTH = 100
MARKS = {"lost": "✗", "degraded": "~"}
DAY_SECONDS = 86_400

migrate = typer.Typer(
    cls=CommandGroup, no_args_is_help=True,
    help="Move from one protocol to another. Example: [b]dragoman migrate plan --from OLD --to NEW[/b]",
)


@migrate.command("plan")
def plan(
    source: Annotated[str, typer.Option("--from", metavar="NAME", help=f"The old dialect: {DIALECT_NAMES}.")],
    target: Annotated[str, typer.Option("--to", metavar="NAME", help="The new dialect.")],
    url: Server = None,
    since: Since = "30d",
    quiet_days: Annotated[int, typer.Option(
        "--quiet-days", min=1, help="A client that was not seen for so many days has moved.")] = 7,
    key: Key = None,
    config: ConfigFile = None,
    data: DataFolder = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Print a checklist of the clients of the old dialect, with what the new one degrades or loses for them.

    Example: [b]dragoman migrate plan --from OLD --to NEW --since 30d[/b]

    What a client uses is what the gateway has seen of it, see `dragoman usage`. The exit code is 0 if no client speaks
    the old dialect any more, and 1 otherwise.
    """
    from gateway.composition import load_dialect_table
    from gateway.usage import client_losses

    with report_errors():
        settings = load_settings(config, setting_overrides(data=data))
        if source == target:
            fail(f"--from and --to are both {source}; name two dialects")
        old, new = load_dialect_table(settings, source), load_dialect_table(settings, target)
        clients = read_clients(url, key, timeout, settings, since)
        found = client_losses(clients, *old, *new)
        moved = [one for one in found if time.time() - one.usage.last_at > quiet_days * DAY_SECONDS]
        typer.echo(f"{source} → {target}: clients of {source} in the last {since}\n")
        for one in found:
            for line in _lines(one, one in moved):
                typer.echo(line)
        left = len(found) - len(moved)
        if left:
            typer.echo(f"{left} of {len(found)} clients still speak {source}.")
            raise typer.Exit(1)
        quiet = f"{quiet_days}d" if found else since
        typer.echo(f"No client has spoken {source} in the last {quiet}: take it out of `dialects`.")


@migrate.command("shadow")
def shadow(
    url: Server = None,
    since: Since = "30d",
    key: Key = None,
    config: ConfigFile = None,
    data: DataFolder = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Sum up the shadow report: each difference, how many turns had it, and which clients would notice it.

    Example: [b]dragoman migrate shadow --since 30d[/b]

    A client notices a difference if it was seen to use a feature that differs, see `dragoman usage`. The report is the
    file that `shadow:` names, in the data folder of this machine. The exit code is 0 if no client would notice a
    difference, and 1 otherwise.
    """
    from gateway.usage import noticed_differences

    with report_errors():
        settings = load_settings(config, setting_overrides(data=data))
        if settings.shadow is None:
            fail("the settings have no `shadow:`, so nothing is compared")
        clients = read_clients(url, key, timeout, settings, since)
        try:
            with (settings.data / settings.shadow.report).open("rb") as lines:
                found = noticed_differences(lines, clients)
        except FileNotFoundError:
            found = []
        except OSError as error:
            fail(f"{error.filename} cannot be read: {error.strerror}")
    for one in found:
        for line in _difference(one):
            typer.echo(line)
    if not found:
        typer.echo("The report has no differences.")
    if any(one.clients for one in found):
        raise typer.Exit(1)


def _difference(one: "NoticedDifference") -> Iterator[str]:
    from .record_format import printable

    turns = f"{one.turns:,} turn{'' if one.turns == 1 else 's'}"
    first, second = (printable(", ".join(facts)) or "nothing" for facts in (one.first, one.second))
    yield from wrap(f"{turns} of {one.agent}: {first} → {second}", WIDTH, subsequent_indent="      ")
    names = ", ".join(f"{printable(used.client)} ({used.dialect}, key {printable(used.key)})" for used in one.clients)
    yield from _wrapped("noticed by ", names or "nobody that was seen")


def _lines(one: "ClientLosses", has_moved: bool) -> Iterator[str]:
    from .record_format import printable

    used = one.usage
    name = printable(f"{used.client}, key {used.key}")
    yield f"[{'x' if has_moved else ' '}] {name}: {count(used.requests)}, the last {minute(used.last_at)}"
    if one.carried:
        yield from _wrapped("✓ arrives as before: ", ", ".join(one.carried))
    for loss in one.losses:
        yield from _loss(loss)
    yield from _wrapped("calls ", ", ".join(f"{endpoint} ({count:,})" for endpoint, count in used.endpoints.items()))
    yield ""


def count(requests: int) -> str:
    return f"{requests:,} request{'' if requests == 1 else 's'}"


def _loss(loss: "FeatureLoss") -> Iterator[str]:
    yield from _wrapped(f"{MARKS[loss.verdict]} {loss.verdict}: ", f"{loss.feature} ({loss.uses:,} ×): {loss.note}")


def _wrapped(label: str, text: str) -> list[str]:
    return wrap(label + text, WIDTH, initial_indent="    ", subsequent_indent="      ", break_long_words=False)
