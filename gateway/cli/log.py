"""`dragoman log`: verifies, compacts, exports and imports the file that stores the sessions."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from gateway.private_files import private_opener

from .options import (
    CommandGroup,
    ConfigFile,
    DataFolder,
    fail,
    load_settings,
    report_errors,
    setting_overrides,
    write_audit_line,
)

if TYPE_CHECKING:
    from gateway.config import Config
    from gateway.ports import Clock

log = typer.Typer(cls=CommandGroup, no_args_is_help=True, help=(
    "Maintain the file that stores the sessions. Example: [b]dragoman log verify[/b]"))

SECRETS = "the file has secrets of clients, sealed: only the key of this installation opens them"
PROGRESS_SECONDS = 1.0
"""Seconds between two reports of progress."""


@log.command("verify")
def verify(config: ConfigFile = None, data: DataFolder = None) -> None:
    """Check that the file is complete and consistent; a server may be running meanwhile.

    Example: [b]dragoman log verify[/b]

    Every problem is printed with its session and record. The exit code is 0 if there is none, 1 if there are some,
    and 2 if there is no such file.
    """
    from gateway.storage.log import verify_log as look

    with report_errors():
        path = session_file(load_settings(config, setting_overrides(data=data)))
        with progress("verified {} of {} sessions") as tell:
            verdict = look(path, tell)
    for problem in verdict.problems:
        typer.echo(str(problem))
    typer.echo(
        f"{path}: {_many(verdict.sessions, 'session')}, {_many(verdict.records, 'record')} in "
        f"{_many(verdict.segments, 'segment')}, {_many(verdict.resources, 'version')} of resources; "
        f"{_many(len(verdict.problems), 'problem')}"
    )
    raise typer.Exit(1 if verdict.problems else 0)


@log.command("compact")
def compact(config: ConfigFile = None, data: DataFolder = None) -> None:
    """Make the file smaller and faster to read; stop the server first. No session changes.

    Example: [b]dragoman log compact[/b]

    The command removes remains of deleted sessions, joins small segments, and frees space on the disk. Meanwhile it
    needs as much free space as the file has.
    """
    from gateway.storage.log import compact_log as press

    with report_errors():
        path = session_file(load_settings(config, setting_overrides(data=data)))
        with progress("compacted {} of {} sessions") as tell:
            done = press(path, tell)
    typer.echo(
        f"{path}: {done.bytes_before:,} bytes became {done.bytes_after:,}, {_many(done.segments_before, 'segment')} "
        f"became {done.segments_after:,}, {_many(done.leftovers, 'leftover')} removed"
    )


@log.command("export")
def export(
    sessions: Annotated[
        list[str] | None, typer.Argument(help="The ids of sessions; all sessions if none is given.", metavar="SESSION")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A new file to write, which only you can read.")] = None,
    config: ConfigFile = None,
    data: DataFolder = None,
) -> None:
    """Write sessions as lines of JSON, for a backup or for another server; a server may be running meanwhile.

    Example: [b]dragoman log export --out sessions.jsonl[/b]

    Secrets are sealed in it. Agents, files and other resources are not in it: they belong to the installation.
    """
    from gateway.storage.log import export_sessions
    from gateway.storage_factory import make_seal

    with report_errors():
        chosen = load_settings(config, setting_overrides(data=data))
        path = session_file(chosen)
        with progress("wrote {} of {} sessions") as tell:
            lines = export_sessions(path, sessions or (), tell, seal=make_seal(chosen))
            first = next(lines)  # problems are reported before anything is written
            with _target(out) as target:
                target.write(first)
                target.writelines(lines)
    typer.echo(f"Written{f' to {out}' if out else ''}: {SECRETS}.", err=True)


@log.command("import")
def import_sessions(
    file: Annotated[
        Path | None, typer.Argument(help="A file that `dragoman log export` wrote; standard input if none is given.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace sessions that exist.")] = False,
    config: ConfigFile = None,
    data: DataFolder = None,
) -> None:
    """Import exported sessions: all of them, or none. Stop the server first.

    Example: [b]dragoman log import sessions.jsonl[/b] or [b]dragoman log import < sessions.jsonl[/b]

    Sessions keep their ids and owners. A session that exists is refused unless --replace is given.
    """
    from gateway.storage.log import import_sessions as carry_in
    from gateway.storage_factory import make_seal

    with report_errors():
        chosen = load_settings(config, setting_overrides(data=data))
        path = session_file(chosen, may_be_new=True)
        with progress("imported {} sessions") as tell, _source(file) as lines:
            done = carry_in(path, lines, seal=make_seal(chosen), replace=replace, progress=tell)
    replaced = f", {done.replaced:,} of them replaced existing ones" if done.replaced else ""
    typer.echo(f"{path}: imported {_many(done.sessions, 'session')}, {_many(done.records, 'record')}{replaced}")


@log.command("move")
def move(
    to: Annotated[str, typer.Option(
        envvar="DRAGOMAN_MOVE_TO", help="The address of the Redis that gets everything, as in `log:`.")],
    source: Annotated[
        str | None, typer.Option("--from", help="The address of the Redis of today; if none is given, that of `log:`.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only check, and say how much would be moved.")] = False,
    config: ConfigFile = None,
) -> None:
    """Move everything from one Redis to another: to a Redis Cluster, from it, or to other partitions. Stop all servers.

    Example: [b]dragoman log move --to redis+cluster://10.0.0.31,10.0.0.32,10.0.0.33[/b]

    Sessions, resources, keys and stored responses are copied and then compared; the Redis of before stays as it is.
    Servers refuse the new one until everything is there. If the command is interrupted, run it again.
    """
    import asyncio

    from gateway.storage_factory import move_store

    with report_errors():
        before, after = (load_settings(config, setting_overrides(log=one)) for one in (source, to))
        if "://" not in before.log or "://" not in after.log:
            fail("both must be a Redis; sessions of `log: sqlite` are written by `dragoman log export`")
        if before.log == after.log:
            fail("--from and --to are the same address")
        with progress("moved {} of {} things") as tell:
            moved = asyncio.run(move_store(before, after, is_dry=dry_run, progress=tell))
        if not dry_run:
            write_audit_line(before, "log.moved", "to another Redis")
    typer.echo(
        f"{'would move' if dry_run else 'moved'} {_many(moved.sessions, 'session')}, "
        f"{_many(moved.resources, 'resource')}, {_many(moved.responses, 'stored response')}, "
        f"{_many(moved.keys, 'key')}")


# -- shared by the commands -------------------------------------------------------------------------------------------

def session_file(config: "Config", *, may_be_new: bool = False) -> Path:
    """Return the file that stores the sessions of these settings."""
    from gateway.storage_factory import DATABASE_FILE

    kind, _, place = config.log.partition(":")
    if kind != "sqlite":
        fail(f"the settings say `log: {kind}`: there is no file to work on; these commands are for `log: sqlite`")
    path: Path = config.data / (place or DATABASE_FILE)
    if may_be_new and not path.exists():
        from gateway.storage import create_database

        create_database(path)
    return path


@contextmanager
def _target(out: Path | None) -> Iterator[BinaryIO]:
    """Open standard output, or a new private file that exists only when it is complete."""
    if out is None:
        yield sys.stdout.buffer
        return
    if out.exists():
        fail(f"{out} exists already; remove it, or choose another name")
    part = out.with_name(f"{out.name}.part")
    try:
        with open(part, "wb", opener=private_opener) as target:
            yield target
        part.rename(out)
    except OSError as error:
        fail(f"{out} cannot be written: {error.strerror}")
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _source(file: Path | None) -> Iterator[Iterable[bytes]]:
    if file is None:
        if sys.stdin.isatty():
            fail("name a file, or send one: dragoman log import < sessions.jsonl")
        yield sys.stdin.buffer
        return
    try:
        with file.open("rb") as lines:
            yield lines
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}")


@contextmanager
def progress(words: str) -> Iterator["ProgressReporter"]:
    pace = ProgressReporter(words, time.monotonic)
    yield pace
    pace.end()


class ProgressReporter:
    """Reports the progress of long work on standard error from time to time; short work is not reported."""

    def __init__(self, words: str, clock: "Clock") -> None:
        self._words = words
        self._clock = clock
        self._next = clock() + PROGRESS_SECONDS
        self._is_shown = False

    def __call__(self, done: int, total: int) -> None:
        if (now := self._clock()) < self._next:
            return
        self._next, self._is_shown = now + PROGRESS_SECONDS, True
        on_terminal = sys.stderr.isatty()
        typer.echo(("\r" if on_terminal else "") + self._words.format(f"{done:,}", f"{total:,}"), err=True,
                   nl=not on_terminal)

    def end(self) -> None:
        if self._is_shown and sys.stderr.isatty():
            typer.echo(err=True)


def _many(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
