"""docs/glossary.md explains our words, the words of the dialects, and terms that the other pages use."""

import re

import pytest

from tests.support.doc_pages import ROOT, Page, pages

PAGE = Page(ROOT / "docs" / "glossary.md")
TWELVE = ["session", "turn", "message", "block", "scope", "ask", "event", "command", "record", "frame", "cue", "table"]
HEAD = next(line for line in PAGE.text.splitlines() if line.startswith("| ours | "))
COLUMNS = HEAD.strip("|").lower().replace("|", " ").split()[1:]
"""The dialects in the order of the columns."""


def rows_of(section: str) -> list[list[str]]:
    lines = PAGE.text.partition(f"\n## {section}\n")[2].partition("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| ")]
    return rows[1:]


def test_our_words_are_twelve() -> None:
    assert [row[0] for row in rows_of("Our twelve words")] == TWELVE


@pytest.mark.parametrize(("column", "name"), list(enumerate(COLUMNS, start=1)))
def test_the_words_of_a_dialect_are_its_own(column: int, name: str) -> None:
    known = "".join((ROOT / path).read_text() for path in (f"mappings/{name}.yaml", f"docs/{name}.md"))
    for row in rows_of("The words of the dialects"):
        for word in re.findall(r"`([^`…]+)`", row[column]):
            assert word.split()[-1] in known, f"{name} has no {word}"


def test_terms_are_in_order_and_used_elsewhere() -> None:
    terms = [row[0] for row in rows_of("Terms of the field")]
    elsewhere = "\n".join(page.text for page in pages() if page.path != PAGE.path).lower()
    unused = [term for term in terms if not re.search(rf"\b{re.escape(term.lower())}", elsewhere.replace("\n", " "))]
    assert unused == [], "no other page uses these terms"
    assert terms == sorted(terms, key=str.lower)
