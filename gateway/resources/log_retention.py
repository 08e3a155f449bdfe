"""Retention of log files: each day gets a file of its own, and the files of old days are deleted."""

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from gateway.ports import Clock

from .retention import KeepRule, has_bound


class LogRetention:
    """Moves the lines of a log to a file with the date (`audit.jsonl.2026-01-31`), once a day, while there is a rule.

    Whoever writes a log opens it for each line, so that no line is lost. Several servers may share a folder.
    """

    def __init__(self, files: Callable[[], Sequence[Path]], rule: Callable[[], KeepRule], clock: Clock) -> None:
        self._files = files
        self._rule = rule
        self._clock = clock

    async def delete_expired(self) -> None:
        rule, today = self._rule(), datetime.fromtimestamp(self._clock(), UTC).date()
        if has_bound(rule):
            for file in self._files():
                await asyncio.to_thread(_rotate, file, today)
                await asyncio.to_thread(_delete_old_days, file, rule, today)


def _rotate(file: Path, today: date) -> None:
    """Give the file its second name, then take its first: a line that is written meanwhile stays in it."""
    with suppress(FileNotFoundError, FileExistsError):  # nothing was written; or today's file is there already
        os.link(file, file.with_name(f"{file.name}.{today}"))
        file.unlink()


def _delete_old_days(file: Path, rule: KeepRule, today: date) -> None:
    days = sorted(((day, dated) for dated in file.parent.glob(f"{file.name}.*") if (day := _day_of(dated))),
                  reverse=True)
    for place, (day, dated) in enumerate(days):
        is_old = rule.days is not None and today - day > timedelta(days=rule.days)
        if is_old or (rule.newest is not None and place >= rule.newest):
            dated.unlink(missing_ok=True)


def _day_of(dated: Path) -> date | None:
    try:
        return date.fromisoformat(dated.suffix[1:])
    except ValueError:
        return None
