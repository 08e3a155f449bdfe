"""Where each row of a table stands in its file, and why it is as it is: its comment, or the note of its feature."""

import re
from functools import cache
from pathlib import Path

from gateway.yaml_positions import NodePath, Position, YamlDocument

from .features import FEATURES
from .parsed_table import ParsedTable

_COMMENT = re.compile(r"(?:^|\s)#\s+(.*\S)\s*$")
_RULE = re.compile(r"--.*--$")
FRAMES, EVENTS = "frames", "events"
"""The sections that say what goes out for an event: by frames, or by cues of the dialect's code."""


class RowNotes:
    """The rows of one table; the files of the table are read once, when the first note is asked for."""

    def __init__(self, draft: ParsedTable, document: YamlDocument) -> None:
        self._draft, self._document = draft, document
        self._lines = cache(_lines_of)

    def position(self, cue: str, frame: int | None = None) -> Position | None:
        """Where a row stands, or one of the frames that it writes; None if the table has no such row."""
        place = self._document.keys.get((FRAMES, cue))
        if frame is None or place is None:
            return place
        written = [at for at, one in enumerate(self._draft.frames.get(cue, ())) if not one.read_only]
        return self._document.values.get((FRAMES, cue, written[frame])) if frame < len(written) else place

    @property
    def file(self) -> str:
        """The file of the table, without overrides."""
        return self._document.file

    @property
    def text(self) -> str:
        """The text of the file."""
        return "\n".join(self._lines(self.file)) + "\n"

    def frame_line(self, cue: str, frame: int) -> int | None:
        """The line of a frame of a row, those that are only read counted as well."""
        place = self._document.values.get((FRAMES, cue, frame))
        return place.line if place is not None else None

    def support_position(self, feature: str) -> Position | None:
        """Where the table says how well the dialect carries a feature: its note, else its level."""
        keys = self._document.keys
        return keys.get(("notes", feature)) or keys.get(("support", feature))

    def event_position(self, name: str, variant: str) -> Position | None:
        """The line of the table that names the cues of an event; None if there is no such line."""
        keys = self._document.keys
        return keys.get((EVENTS, f"{name}.{variant}")) or keys.get((EVENTS, name))

    def note(self, cue: str, section: str = FRAMES) -> str:
        """The comment beside the row or above it, else the note of the feature that it is an instance of."""
        features = [name for name, feature in FEATURES.items()
                    if {cue, cue.rpartition(".")[0]} & set(feature.carriers) or
                    any(carrier.startswith(f"{cue}.") for carrier in feature.carriers)]
        notes = [f"{name}: {self._draft.shape.notes[name]}" for name in features if name in self._draft.shape.notes]
        return self.comment(cue, section) or "; ".join(notes)

    def comment(self, cue: str, section: str = FRAMES) -> str:
        """The comment at the end of a row's first line, or in the lines above it."""
        path: NodePath = (section, cue)
        place = self._document.keys.get(path)
        lines = self._lines(place.file) if place else []
        if place is None or place.line > len(lines):
            return ""
        line = lines[place.line - 1]
        if (found := _COMMENT.search(line)) and line[:found.start()].count('"') % 2 == 0:
            return found[1]
        above: list[str] = []
        for earlier in reversed(lines[:place.line - 1]):
            match = _COMMENT.fullmatch(earlier.strip())
            if match is None or _RULE.match(match[1]) or len(earlier) - len(earlier.lstrip()) != place.column - 1:
                break
            above.insert(0, match[1])
        return " ".join(above)


def _lines_of(file: str) -> list[str]:
    try:
        return Path(file).read_text("utf-8").splitlines()
    except OSError:
        return []
