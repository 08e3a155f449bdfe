"""What docs/dialects.md says of support is what the mapping tables say."""

import re

import pytest

from mappings.language import SupportLevel
from tests.support.dialect_tables import DIALECTS, dialect, table
from tests.support.doc_pages import ROOT, Page
from tests.support.doc_tables import support_table

PAGE = Page(ROOT / "docs" / "dialects.md")
HEAD = next(line for line in PAGE.text.splitlines() if line.startswith("| feature | "))
TITLES = {title: title.lower() for title in HEAD.strip("|").replace("|", " ").split()[1:]}
"""The dialects in the order of the page's columns, by their titles."""
COLUMNS = list(TITLES.values())


def rows_of(section: str, head: str) -> list[list[str]]:
    """The cells of a table: the one with this head in this section, without its head."""
    text = PAGE.text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = text.partition(f"{head}\n|---")[2].partition("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_dialect_has_a_column() -> None:
    assert set(COLUMNS) == set(DIALECTS), f"the table of support is now:\n{support_table()}"


def test_the_table_of_support_is_that_of_the_mapping_tables() -> None:
    assert support_table(TITLES) in PAGE.text, f"the table is now:\n{support_table(TITLES)}"


def test_the_levels_are_explained() -> None:
    explained = [row[0] for row in rows_of("What each dialect can carry", "| level | meaning |")]
    used = {str(level) for name in COLUMNS for level in table(name).support.values()}
    assert set(explained) == used
    assert [SupportLevel(word) for word in explained]


ADVICE = rows_of("Which to choose for a new client", "| the client must | features | dialects |")


@pytest.mark.parametrize("row", ADVICE, ids=lambda row: row[0])
def test_an_advice_names_every_dialect_that_carries_the_features_in_full(row: list[str]) -> None:
    features = re.findall(r"`(\w+)`", row[1])
    assert features
    fitting = [name for name in COLUMNS if all(table(name).support[one] is SupportLevel.FULL for one in features)]
    assert [TITLES[title] for title in row[2].split(", ")] == fitting


def test_the_addresses_are_where_dialects_are_mounted() -> None:
    [address] = [row for row in rows_of("How they work", HEAD.replace(" feature ", " ")) if row[0] == "address"]
    for name, cell in zip(COLUMNS, address[1:], strict=True):
        assert f"`{dialect(name).mount}`" in cell


def test_what_is_ours_is_said_to_be_so_on_the_page_of_the_dialect() -> None:
    for row in rows_of("How they work", HEAD.replace(" feature ", " ")):
        for name, cell in zip(COLUMNS, row[1:], strict=True):
            if cell.startswith("ours: "):
                page = (ROOT / "docs" / f"{name}.md").read_text()
                [call] = re.findall(r"`([^`?]+)", cell)[:1]
                assert call in page
                assert re.search(r"\bours\b", page, re.IGNORECASE), f"docs/{name}.md"


@pytest.mark.parametrize("name", COLUMNS)
def test_the_words_of_a_dialect_are_its_own(name: str) -> None:
    code = (ROOT / "adapters" / name).rglob("*.py")
    known = "".join(path.read_text() for path in (ROOT / f"mappings/{name}.yaml", ROOT / f"docs/{name}.md", *code))
    for row in rows_of("How they work", HEAD.replace(" feature ", " ")):
        for words in re.findall(r"`([^`]+)`", row[1 + COLUMNS.index(name)]):
            unknown = [word for word in re.findall(r"[A-Za-z_][\w.:-]*", words) if word not in known]
            assert unknown == [], f"{row[0]}: {name} does not have {unknown}"
