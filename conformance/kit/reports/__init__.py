"""Reports: the same findings for a terminal, for programs (JSON, JUnit) and for a browser (one HTML file)."""

from collections.abc import Callable
from pathlib import Path

from conformance.kit.verdict import Report

EXTENSIONS = {".json": "json", ".xml": "junit", ".html": "html", ".htm": "html"}


def writer(kind: str) -> Callable[[Report], str]:
    """What turns a report into the text of a file of this kind."""
    from conformance.kit.reports import html, jsonfile, junit

    return {"json": jsonfile.text, "junit": junit.text, "html": html.text}[kind]


def parse_destination(text: str) -> tuple[str, Path]:
    """`junit=out.xml`, or just `out.xml`; ValueError says what would be right."""
    kind, separator, path = text.partition("=")
    if separator and kind in EXTENSIONS.values():
        return kind, Path(path)
    known = EXTENSIONS.get(Path(text).suffix.lower())
    if known is None:
        raise ValueError(f"{text!r}: say json=PATH, junit=PATH or html=PATH, or end the path in .json, .xml or .html")
    return known, Path(text)


def write_transcripts(report: Report, folder: Path) -> None:
    """One file of wire traffic per case."""
    folder.mkdir(parents=True, exist_ok=True)
    for result in report.results:
        heading = f"{result.name}: {result.outcome}\n{result.sentence}\n{result.remark}".rstrip()
        (folder / f"{result.name}.txt").write_text(f"{heading}\n\n{result.transcript}\n", encoding="utf-8")
