"""What was found is told in a table that lines up, with a verdict where there is an aim."""

import json

import pytest

from bench.measure import figure
from bench.report import Aim, Row, as_json, at_least, at_most, number, table

COLUMNS = ("ours", "theirs")
RATE = Row(
    "burst", "16 × 100", "deltas/s", {"ours": figure([30_000, 31_000]), "theirs": figure([20_000, 20_000])},
    figure([1.5, 1.55]), at_least(1.0, "1.0 ×"),
)
IDLE = Row("memory", "idle", "MB", {"ours": figure([95.04])}, aim=at_most(80, "80 MB", of="ours"))

TABLE = """\
            unit             ours       theirs             ratio  aim
BURST
  16 × 100  deltas/s  30,500 ±2%  20,000 ±0%  1.52 (1.50–1.55)  ≥ 1.0 ×  ✓
MEMORY
  idle      MB              95.0           –                 –  ≤ 80 MB  ✗
"""


def test_the_table_lines_up() -> None:
    head, *lines = table([RATE, IDLE], COLUMNS).splitlines()
    assert lines == TABLE.splitlines()[1:]
    assert head.index("aim") == lines[1].index("≥") == lines[3].index("≤")


@pytest.mark.parametrize(("aim", "value", "met"), [
    (at_least(1.0, "1 ×"), 1.0, True), (at_least(1.0, "1 ×"), 0.99, False),
    (at_most(1.3, "1.3 ×"), 1.3, True), (at_most(1.3, "1.3 ×"), 1.31, False),
])
def test_an_aim_is_met_up_to_its_bound(aim: Aim, value: float, met: bool) -> None:
    assert Row("s", "n", "u", {}, figure([value]), aim).met is met


def test_without_an_aim_there_is_no_verdict() -> None:
    assert Row("s", "n", "u", {"ours": figure([1.0])}).met is None


@pytest.mark.parametrize(("value", "text"), [(0.417, "0.42"), (4.2, "4.20"), (41.7, "41.7"), (417.2, "417"),
                                             (41_720.0, "41,720")])
def test_numbers_have_three_digits_that_mean_something(value: float, text: str) -> None:
    assert number(value) == text


def test_what_was_found_can_be_read_by_programs() -> None:
    found = json.loads(json.dumps(as_json([RATE, IDLE], "quick")))
    assert [row["met"] for row in found["rows"]] == [True, False]
    assert found["rows"][0]["figures"]["ours"]["median"] == 30_500
    assert found["machine"]["python"]
