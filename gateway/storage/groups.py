"""One group on its way into the file, in the thread that writes: all of it, or nothing if the file does not take it."""

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

from .opening import is_own
from .schema import version_of

log = structlog.get_logger("dragoman.storage")

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]


@dataclass(slots=True)
class Task:
    """Something to be written, and who waits for it."""

    work: Work[Any]
    done: asyncio.Future[Any]


Result = tuple[Task, Any, Exception | None]
"""What came of a piece of work: its result, or what it raised."""


def written(
    connection: sqlite3.Connection, batch: Work[None] | None, tasks: list[Task],
) -> tuple[list[Result], Exception | None]:
    """What came of each task, and why nothing was written if that is so; without anything to write, try the file."""
    outcomes: list[Result] = []
    try:
        connection.execute("BEGIN IMMEDIATE")
        if batch is not None:
            batch(connection)
        elif not tasks:
            _try_out(connection)
        outcomes = [_attempt(connection, task) for task in tasks]
        connection.execute("COMMIT")
    except Exception as error:  # noqa: BLE001  # the thread's border: those who wait must hear of it, whatever it is
        _undo(connection)
        return outcomes, error
    return outcomes, None


def _attempt(connection: sqlite3.Connection, task: Task) -> Result:
    """One piece of work, undone by itself if it refuses; trouble with the file is everybody's."""
    connection.execute("SAVEPOINT piece")
    try:
        result = task.work(connection)
    except Exception as error:  # it is raised again where the work was asked for
        if not is_own(error):
            raise
        connection.execute("ROLLBACK TO piece")
        connection.execute("RELEASE piece")
        return task, None, error
    connection.execute("RELEASE piece")
    return task, result, None


def _try_out(connection: sqlite3.Connection) -> None:
    """Write a page that says what it said before, to see whether the file takes it."""
    connection.execute(f"PRAGMA user_version = {version_of(connection)}")


def _undo(connection: sqlite3.Connection) -> None:
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        log.warning("a group that was not written could not be undone", error=str(error))
