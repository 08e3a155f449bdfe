"""`dragoman purge`: shows and deletes what is old, or everything of one user."""

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import ConfigFile, DataFolder, fail, load_settings, report_errors, setting_overrides

if TYPE_CHECKING:
    from gateway.config import Config

AGE = re.compile(r"(\d+)d")
KEPT = "Lines of the audit log and of the shadow report stay: they name the user or ids."
NOT_REWRITTEN = ("Redis did not take BGREWRITEAOF: what was deleted may be in its append-only file until Redis writes "
                 "the file anew.")


def purge(
    older_than: Annotated[str | None, typer.Option(
        metavar="AGE", help="Sessions and files that have not changed for so long: 90d is 90 days.")] = None,
    user: Annotated[str | None, typer.Option(
        help="Everything of this user; with --older-than, only what is old.")] = None,
    export: Annotated[Path | None, typer.Option(
        metavar="FOLDER", help="With --user: a new folder to which everything is written first.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete it. Without this, the command only shows it.")] = False,
    config: ConfigFile = None,
    data: DataFolder = None,
) -> None:
    """Show what `retention` does not keep, what is old, or what a user has; --yes deletes it.

    Example: [b]dragoman purge --older-than 90d[/b] or [b]dragoman purge --user alice --export alice --yes[/b]

    With `log: sqlite`, stop the server first; with `log: redis://…`, servers may run. A user is erased with sessions,
    workspaces, files, memories, agents, schedules, settings, keys, shared links and stored responses. Lines of the
    audit log and of the shadow report stay.
    """
    if export is not None and (user is None or older_than is not None):
        fail("--export writes everything of one user: give it with --user, and without --older-than")
    with report_errors():
        chosen = load_settings(config, setting_overrides(data=data))
        if chosen.log == "memory":
            fail("the settings say `log: memory`: nothing outlives the server, so there is nothing to purge")
        try:
            if user is not None and older_than is None:
                _purge_user(chosen, user, export, yes)
            else:
                _purge_expired(chosen, older_than, user, yes)
        except OSError as error:
            fail(f"{error.filename or chosen.data} cannot be read or written: {error.strerror or error}")


def _purge_expired(config: "Config", older_than: str | None, user: str | None, yes: bool) -> None:
    from datetime import UTC, datetime

    from gateway.config import RetentionSettings
    from gateway.purge import delete_expired

    rules = config.retention
    if older_than is not None:
        old = {kind: {"days": _days(older_than)} for kind in ("sessions", "files")}
        rules = RetentionSettings.model_validate(old if user is None else {"users": {user: old}})
    elif rules == RetentionSettings():
        typer.echo("The settings have no `retention:`, so everything is kept. Name an age (--older-than 90d) or a user "
                   "(--user NAME).", err=True)
        return
    found = asyncio.run(delete_expired(config, rules, is_dry=not yes))
    for one in found:
        changed = datetime.fromtimestamp(one.changed_at, UTC)
        typer.echo(f"{one.kind}  {one.id}  {one.owner or '-'}  {changed:%Y-%m-%d %H:%M} UTC")
    _tell(_count(len(found), "session or file", "sessions and files"), bool(found), yes)


def _purge_user(config: "Config", user: str, export: Path | None, yes: bool) -> None:
    from gateway.purge import UserPurge

    purged = UserPurge(config, user)
    counts = asyncio.run(purged.counts())
    for kind, number in counts.items():
        typer.echo(f"{number:6}  {kind}")
    if not counts:
        typer.echo(f"There is nothing of a user '{user}'.", err=True)
    elif export is not None:
        asyncio.run(purged.export(export))
        typer.echo(f"Written to {export}; secrets in it are sealed.", err=True)
    if yes:  # also if nothing is found: an erasure that was cut off may have left counters
        was_rewritten = asyncio.run(purged.erase())
        if counts:
            typer.echo(KEPT if was_rewritten else f"{KEPT}\n{NOT_REWRITTEN}", err=True)
    _tell(f"everything of '{user}'", bool(counts), yes)


def _tell(what: str, is_found: bool, yes: bool) -> None:
    """Say what was done, or what --yes would do."""
    if yes and is_found:
        typer.echo(f"Deleted: {what}.", err=True)
    else:
        typer.echo(f"Nothing was deleted{'; --yes deletes it' if is_found else ''}.", err=True)


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _days(age: str) -> int:
    found = AGE.fullmatch(age)
    if found is None:
        fail(f"--older-than: must be a number of days such as 90d, not '{age}'")
    return int(found[1])
