"""A reader finds every page from the index, every section from the contents, and no link that leads nowhere."""

import pytest
import yaml

from tests.support.doc_pages import CONTENTS, INDEX, ROOT, Page, pages

PAGES = pages()
OURS = [page for page in PAGES if page.path.parent in (ROOT, ROOT / "docs") and page.name != "CHANGELOG.md"]
"""Pages that have a list of contents if they are long; a changelog is read from its top."""


def named(page: Page) -> str:
    return page.name


def test_readme_links_to_the_index() -> None:
    readme = Page(ROOT / "README.md")
    assert any(readme.path.parent / link.target == INDEX for link in readme.links)


def test_readme_is_read_in_one_go() -> None:
    assert (ROOT / "README.md").read_text().count("\n") < 150, "what is longer belongs to docs/"


def test_every_page_stands_in_the_navigation_of_the_site() -> None:
    settings = yaml.safe_load((ROOT / "docs" / "mkdocs.yml").read_text())
    listed = [page for entry in settings["nav"] for part in entry.values()
              for page in ([part] if isinstance(part, str) else [one for row in part for one in row.values()])]
    wanted = {str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))}
    assert set(listed) == wanted
    assert len(listed) == len(wanted)


def test_the_index_links_to_every_page() -> None:
    linked = {(INDEX.parent / link.target).resolve() for link in Page(INDEX).links if link.is_relative and link.target}
    everything = {path for path in (ROOT / "docs").glob("*.md") if path != INDEX}
    assert everything - linked == set(), "docs/README.md does not link to these pages"


@pytest.mark.parametrize("page", [page for page in OURS if page.is_long], ids=named)
def test_the_contents_of_a_long_page_are_its_headings(page: Page) -> None:
    right = page.right_contents()
    assert page.contents is not None, f"put this below the introduction of {page.name}:\n\n{right}"
    sections = [(heading.text, heading.anchor) for heading in page.headings if heading.level in (2, 3)]
    assert [(link.text, link.anchor) for link in page.contents] == sections, f"the contents should be:\n\n{right}"
    first = page.text.index(f"\n## {sections[0][0]}\n")
    assert page.text.index(CONTENTS) < first, "the contents stand above the first section"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_relative_links_and_anchors_resolve(page: Page) -> None:
    for link in page.links:
        if not link.is_relative:
            continue
        target = page.path.parent / link.target if link.target else page.path
        assert target.exists(), f"{page.name} links to {link.target}, which does not exist"
        if link.anchor:
            assert link.anchor in Page(target).anchors, f"{page.name} links to {link.target}#{link.anchor}"
