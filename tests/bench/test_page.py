"""The page of figures is written by a command from what runs of the bench found."""

import pytest

from bench.measure import figure
from bench.page import BEGIN, END, PAGE, figures_block, with_block
from bench.report import Row, as_json, at_least, at_most

RATE = Row("burst", "16 × 100", "deltas/s", {"ours": figure([30_000.0]), "theirs": figure([20_000.0])},
           figure([1.5]), at_least(1.0, "1.0 ×"))
SLOWER = Row("burst", "16 × 100", "deltas/s", {"ours": figure([10_000.0])}, figure([0.5]), at_least(1.0, "1.0 ×"))
IDLE = Row("memory", "idle", "MB", {"ours": figure([95.04])}, aim=at_most(80, "80 MB", of="ours"))


def test_each_scenario_is_a_table_with_aims_and_verdicts() -> None:
    block = figures_block([as_json([RATE, IDLE], "full")])
    assert "1 of 2 aims were met." in block
    assert "`python -m bench --only burst`:\n\n|  | unit | ours | theirs | ratio | aim |  |" in block
    assert "| 16 × 100 | deltas/s | 30,000 | 20,000 | 1.50 | ≥ 1.0 × | ✓ |" in block
    assert "| idle | MB | 95.0 | – | ≤ 80 MB | ✗ |" in block


def test_a_later_run_of_a_scenario_takes_the_place_of_an_earlier_one() -> None:
    block = figures_block([as_json([RATE, IDLE], "full"), as_json([SLOWER], "quick")])
    assert "10,000" in block and "30,000" not in block and "95.0" in block
    assert "`python -m bench --quick --only burst`:" in block


def test_only_what_is_between_the_marks_changes() -> None:
    page = f"a\n{BEGIN}\n\nold\n{END}\nz\n"
    assert with_block(page, "new") == f"a\n{BEGIN}\n\nnew\n{END}\nz\n"
    with pytest.raises(ValueError, match="no lines"):
        with_block("a page", "new")


def test_the_page_has_the_marks() -> None:
    assert with_block(PAGE.read_text(encoding="utf-8"), "new").count("new") >= 1
