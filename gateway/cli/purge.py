"""`dragoman purge`: shows and deletes what is old in a data folder, or everything of one user."""

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .log import session_file
from .options import ConfigFile, DataFolder, fail, load_settings, report_errors, setting_overrides

if TYPE_CHECKING:
    from gateway.config import Config

AGE = re.compile(r"(\d+)d")


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
    """Show what `retention` does not keep, what is old, or what a user has; --yes deletes it. Stop the server first.

    Example: [b]dragoman purge --older-than 90d[/b] or [b]dragoman purge --user alice --export alice --yes[/b]

    A user is erased with sessions, workspaces, files, memories, agents, schedules, settings, keys, shared links and
    stored responses, and the database is written anew. Lines of the audit log and of the shadow report stay. The
    command is for `log: sqlite`.
    """
    if export is not None and (user is None or older_than is not None):
        fail("--export writes everything of one user: give it with --user, and without --older-than")
    with report_errors():
        chosen = load_settings(config, setting_overrides(data=data))
        session_file(chosen)
        if user is not None and older_than is None:
            _purge_user(chosen, user, export, yes)
        else:
            _purge_expired(chosen, older_than, user, yes)
    if not yes:
        typer.echo("Nothing was deleted; --yes deletes it.", err=True)


def _purge_expired(config: "Config", older_than: str | None, user: str | None, yes: bool) -> None:
    from datetime import UTC, datetime

    from gateway.config import RetentionSettings
    from gateway.purge import delete_expired

    rules = config.retention
    if older_than is not None:
        old = {kind: {"days": _days(older_than)} for kind in ("sessions", "files")}
        rules = RetentionSettings.model_validate(old if user is None else {"users": {user: old}})
    for one in asyncio.run(delete_expired(config, rules, is_dry=not yes)):
        changed = datetime.fromtimestamp(one.changed_at, UTC)
        typer.echo(f"{one.kind}  {one.id}  {one.owner or '-'}  {changed:%Y-%m-%d %H:%M} UTC")


def _purge_user(config: "Config", user: str, export: Path | None, yes: bool) -> None:
    from gateway.purge import UserPurge

    purged = UserPurge(config, user)
    for kind, number in asyncio.run(purged.counts()).items():
        typer.echo(f"{number:6}  {kind}")
    if export is not None:
        purged.export(export)
        typer.echo(f"Written to {export}; secrets in it are sealed.", err=True)
    if yes:
        asyncio.run(purged.erase())
        typer.echo("Lines of the audit log and of the shadow report stay: they name the user or ids.", err=True)


def _days(age: str) -> int:
    found = AGE.fullmatch(age)
    if found is None:
        fail(f"--older-than: must be a number of days such as 90d, not '{age}'")
    return int(found[1])
