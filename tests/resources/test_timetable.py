"""Cron in time zones: clocks go forward and back, and nonsense is refused by name."""

from datetime import datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from gateway.errors import Invalid
from gateway.resources.schedules import Timetable


def times(cron: str, zone: str, start: str, count: int) -> list[str]:
    at = datetime.fromisoformat(start).timestamp()
    found = islice(Timetable(cron, zone).times_after(at), count)
    return [datetime.fromtimestamp(time, ZoneInfo(zone)).strftime("%m-%d %H:%M %z") for time in found]


def test_it_is_read_in_its_time_zone() -> None:
    assert times("0 9 * * *", "Asia/Shanghai", "2026-01-01T00:00:00Z", 2) == ["01-01 09:00 +0800", "01-02 09:00 +0800"]
    assert times("0 9 * * 1-5", "UTC", "2026-01-02T09:00:00Z", 1) == ["01-05 09:00 +0000"]


def test_a_time_that_clocks_leave_out_comes_when_they_go_on() -> None:
    found = times("30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", 2)
    assert found == ["03-08 03:00 -0400", "03-09 02:30 -0400"]


def test_a_time_that_clocks_show_twice_comes_once() -> None:
    found = times("30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", 2)
    assert found == ["11-01 01:30 -0400", "11-02 01:30 -0500"]
    assert times("30 1 * * *", "America/New_York", "2026-11-01T05:30:01Z", 1) == ["11-02 01:30 -0500"]


def test_every_half_hour_is_every_half_hour() -> None:
    found = times("*/30 * * * *", "America/New_York", "2026-11-01T05:20:00Z", 4)
    assert found == ["11-01 01:30 -0400", "11-01 01:00 -0500", "11-01 01:30 -0500", "11-01 02:00 -0500"]


@pytest.mark.parametrize("cron", [
    "", "x", "* * * *", "* * * * * *", "@daily", "61 * * * *", "H * * * *", "R * * * *", "0 0 31 2 *", "*/0 * * * *",
    "* * * * funday",
])
def test_nonsense_is_refused_by_name(cron: str) -> None:
    with pytest.raises(Invalid, match="cron: ") as told:
        Timetable(cron).check()
    assert told.value.param == "cron"


@pytest.mark.parametrize("zone", ["", "Mars/Base", "../etc/passwd", "/etc/passwd", "a\0b", "America"])
def test_an_unknown_time_zone_is_refused_by_name(zone: str) -> None:
    with pytest.raises(Invalid, match="there is no time zone") as told:
        Timetable("* * * * *", zone).check()
    assert told.value.param == "timezone"


@pytest.mark.parametrize("cron", ["* * * * *", "0 9 * * mon-fri", "0 0 29 2 *", "0 0 L * *", "5,10 1-3 */2 mar thu"])
def test_what_is_cron_is_taken(cron: str) -> None:
    Timetable(cron, "Europe/Berlin").check()
