"""What the server logs: every event has a name, and the page on upgrading gives names that are written."""

import re
from functools import cache

from tests.support.logged_events import LoggedEvent, logged_events
from tests.support.source_trees import ROOT


@cache
def all_events() -> dict[str, LoggedEvent]:
    return logged_events(ROOT / "gateway", ROOT / "adapters", ROOT / "mappings")


def test_every_event_has_a_name_instead_of_a_sentence() -> None:
    assert len(all_events()) > 70
    assert sorted(name for name in all_events() if not re.fullmatch(r"[a-z][a-z0-9_]+", name)) == []


def test_the_page_on_upgrading_gives_names_that_are_written() -> None:
    page = (ROOT / "docs" / "upgrading.md").read_text().partition("## Log events")[2].partition("\n## ")[0]
    shown = set(re.findall(r"\| `(\w+)` \|$", page, re.MULTILINE))
    assert len(shown) > 60
    assert shown - all_events().keys() == set()
