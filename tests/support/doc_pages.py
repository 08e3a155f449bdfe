"""Pages of the documentation, read as GitHub shows them: headings, anchors, links and contents."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
INDEX = ROOT / "docs" / "README.md"
LONG = 60
"""A page of more lines than this has contents at its top."""
CONTENTS = "**Contents**\n\n"


@dataclass(frozen=True)
class Heading:
    """A heading of a page: its level, its words, and the anchor that a link to it names."""

    level: int
    text: str
    anchor: str


@dataclass(frozen=True)
class Link:
    """A link of a page: its words, the file it names (empty: this page), and the anchor."""

    text: str
    target: str
    anchor: str

    @property
    def is_relative(self) -> bool:
        return not re.match(r"[a-z]+:", self.target)


class Page:
    """One Markdown file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def is_long(self) -> bool:
        return self.text.count("\n") > LONG

    @cached_property
    def prose(self) -> str:
        """The page without its blocks of code."""
        return re.sub(r"^```.*?^```$", "", self.text, flags=re.MULTILINE | re.DOTALL)

    @cached_property
    def headings(self) -> list[Heading]:
        found: list[Heading] = []
        for marks, text in re.findall(r"^(#+) (.+)$", self.prose, re.MULTILINE):
            anchor = re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")
            before = sum(re.sub(r"-\d+$", "", heading.anchor) == anchor for heading in found)
            found.append(Heading(len(marks), text, f"{anchor}-{before}" if before else anchor))
        return found

    @property
    def anchors(self) -> set[str]:
        return {heading.anchor for heading in self.headings}

    @cached_property
    def links(self) -> list[Link]:
        return list(links_in(self.prose))

    @property
    def contents(self) -> list[Link] | None:
        """The links of the list of contents, or None where the page has no such list."""
        _, mark, rest = self.text.partition(CONTENTS)
        return list(links_in(rest.partition("\n\n")[0])) if mark else None

    def right_contents(self) -> str:
        """The list of contents that fits the headings: an item per section, with its sub-sections in a row."""
        lines: list[str] = []
        for heading in self.headings:
            link = f"[{heading.text}](#{heading.anchor})"
            if heading.level == 2:
                lines.append(f"- {link}")
            elif heading.level == 3:
                lines[-1] += f"{', ' if '), [' in lines[-1] or ': [' in lines[-1] else ': '}{link}"
        return CONTENTS + "\n".join(lines) + "\n"


def links_in(text: str) -> Iterator[Link]:
    for words, target, anchor in re.findall(r"\[((?:`[^`]*`|[^\[\]])*)\]\(([^)#\s]*)#?([^)\s]*)\)", text):
        yield Link(words, target, anchor)


def pages() -> list[Page]:
    """The pages at the top of the project, those of docs/, and those of the examples."""
    paths = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*/README.md")]
    return [Page(path) for path in sorted(paths)]
