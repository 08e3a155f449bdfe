"""When something is to happen: five words of cron, read in a time zone."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from croniter import CroniterError, croniter  # type: ignore[import-untyped]

from gateway.errors import Invalid

FIELDS, HOUR = 5, 1
RANDOM = "hHrR"
"""Words of croniter that stand for a time nobody can foresee."""


@dataclass(frozen=True, slots=True)
class Timetable:
    """A cron expression and the time zone whose clocks it means."""

    cron: str
    timezone: str = "UTC"

    def check(self) -> None:
        """Refuse what is no cron expression, or no time zone, or never comes."""
        _zone(self.timezone)
        words = self.cron.split()
        if len(words) != FIELDS or not croniter.is_valid(self.cron) or any(word[0] in RANDOM for word in words):
            raise Invalid(f"cron: '{self.cron}' is not five fields of cron, such as '0 9 * * 1-5'", param="cron")
        if self.next_after(datetime.now(UTC).timestamp()) is None:
            raise Invalid(f"cron: '{self.cron}' never comes", param="cron")

    def next_after(self, at: float) -> float | None:
        """The first time after that, in seconds since the epoch."""
        return next(self.times_after(at), None)

    def times_after(self, at: float) -> Iterator[float]:
        """Every time after that, up to the year 9999; none if it never comes."""
        try:
            start = datetime.fromtimestamp(at, _zone(self.timezone))
        except (ValueError, OverflowError):
            return
        times, shown, fixed = croniter(self.cron, start), start.replace(tzinfo=None), "*" not in self.cron.split()[HOUR]
        while True:
            try:
                found: datetime = times.get_next(datetime)
            except (CroniterError, ValueError, OverflowError):  # croniter's own is one of the second kind
                return
            clock = found.replace(tzinfo=None)
            if clock > shown or not fixed:  # an hour that clocks show twice is one time, unless every hour is meant
                yield found.timestamp()
            shown = max(clock, shown)


@lru_cache(maxsize=512)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise Invalid(f"timezone: there is no time zone '{name}'", param="timezone") from None
