"""Reports: the same findings for a terminal, for programs (JSON, JUnit) and for people (HTML, Markdown, a badge)."""

from collections.abc import Callable
from pathlib import Path

from conformance.kit.verdict import Report

EXTENSIONS = {
    ".json": "json", ".xml": "junit", ".html": "html", ".htm": "html", ".md": "markdown", ".svg": "badge",
}  # fmt: skip
FILES = {
    "html": "report-{}.html", "junit": "report-{}.xml", "json": "report-{}.json", "markdown": "report-{}.md",
    "badge": "badge-{}.svg",
}  # fmt: skip


def writer(kind: str) -> Callable[[Report], str]:
    """The function that writes a report in this format."""
    from conformance.kit.reports import badge, html, jsonfile, junit, markdown

    return {
        "json": jsonfile.text, "junit": junit.text, "html": html.text, "markdown": markdown.text, "badge": badge.text,
    }[kind]  # fmt: skip


def parse_destination(text: str, dialect: str) -> tuple[str, Path]:
    """Parse `html`, `junit=out.xml` or just `out.xml`; ValueError says what is expected."""
    kind, separator, path = text.partition("=")
    if kind in FILES and (path or not separator):
        return kind, Path(path or FILES[kind].format(dialect))
    known = EXTENSIONS.get(Path(text).suffix.lower())
    if known is None:
        kinds, endings = ", ".join(FILES), ", ".join(sorted(EXTENSIONS))
        raise ValueError(f"{text!r}: say one of {kinds}; or json=PATH and the like; or a path that ends in {endings}")
    return known, Path(text)


def write_report(report: Report, kind: str, path: Path) -> None:
    """Write the report to one file; its folder is made if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(writer(kind)(report), encoding="utf-8")


def write_transcripts(report: Report, folder: Path) -> None:
    """One file of wire traffic per case."""
    folder.mkdir(parents=True, exist_ok=True)
    for result in report.results:
        heading = f"{result.name}: {result.outcome}\n{result.sentence}\n{result.remark}".rstrip()
        (folder / f"{result.name}.txt").write_text(f"{heading}\n\n{result.transcript}\n", encoding="utf-8")
