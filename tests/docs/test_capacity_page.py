"""The pages about capacity have the figures of the measured costs."""

import msgspec
import pytest

from gateway.capacity import read_coefficients
from tests.prove.capacity.page import PAGE, PAGES, TABLE, TABLES, written


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_and_commands_show_the_costs_of_today(page: object) -> None:
    text = page.read_text(encoding="utf-8")  # type: ignore[attr-defined]
    assert written(text, read_coefficients()) == text, "write them anew: tests.prove.capacity.page.write_pages()"


def test_every_table_is_on_the_page_and_follows_the_costs() -> None:
    text, costs = PAGE.read_text(encoding="utf-8"), read_coefficients()
    assert {found[1] for found in TABLE.findall(text)} == set(TABLES)
    machine = msgspec.structs.replace(costs.machine, processor="another one")
    assert "another one" in written(text, msgspec.structs.replace(costs, machine=machine))
