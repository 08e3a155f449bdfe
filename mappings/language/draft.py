"""A table of the right shape with its expressions parsed: what is checked, and then compiled."""

from dataclasses import dataclass, field
from typing import Any

from gateway.marks import Marked, Path_, Place, Problem

from .expressions import Node, Object, parse
from .shape import ENVELOPE, Shaped, TableShape

DEFAULT = "default"


class Findings:
    """Collects problems at their places in the file."""

    def __init__(self, marked: Marked) -> None:
        self._marked = marked
        self.problems: list[Problem] = []

    def place(self, path: Path_) -> Place:
        return self._marked.place(path)

    def add(self, path: Path_, message: str, hint: str = "", *, key: bool = False) -> None:
        problem = Problem(self._marked.place(path, key=key), message, hint)
        if problem not in self.problems:  # an anchor is written once and stands in several places
            self.problems.append(problem)

    def report(self, path: Path_, message: str) -> None:
        self.add(path, *message.split("; ", 1), key=path not in self._marked.values)


@dataclass(frozen=True)
class Frame:
    wire: str
    body: Node
    envelope: str
    path: Path_


@dataclass(frozen=True)
class Input:
    command: str
    given: Object
    path: Path_


@dataclass(frozen=True)
class Refusal:
    status: int | None
    body: Node


@dataclass
class Draft:
    """Every section, ready to be looked at; `broken` sections could not be read and stay empty."""

    shape: TableShape
    broken: set[str]
    envelopes: dict[str, Node] = field(default_factory=dict)
    parts: dict[str, Node | None] = field(default_factory=dict)
    frames: dict[str, list[Frame]] = field(default_factory=dict)
    inputs: dict[str, Input] = field(default_factory=dict)
    objects: dict[str, Node] = field(default_factory=dict)
    errors: dict[str, Refusal] = field(default_factory=dict)

    def nodes(self) -> list[Node]:
        """Every expression outside the inputs."""
        bodies = [frame.body for frames in self.frames.values() for frame in frames]
        parts = [part for part in self.parts.values() if part is not None]
        errors = [refusal.body for refusal in self.errors.values()]
        return [*bodies, *self.envelopes.values(), *parts, *self.objects.values(), *errors]


def draft(shaped: Shaped, findings: Findings) -> Draft:
    table = shaped.table

    def parsed(value: Any, *path: str | int) -> Node:
        return parse(value, path, findings.report)

    made = Draft(table, shaped.broken)
    made.envelopes = {name: parsed(body, "envelopes", name) for name, body in table.envelopes.items()}
    made.parts = {kind: None if body == [] else parsed(body, "parts", kind) for kind, body in table.parts.items()}
    made.objects = {name: parsed(body, "objects", name) for name, body in table.objects.items()}
    for cue, frames in table.frames.items():
        made.frames[cue] = [
            Frame(wire, parsed(body, "frames", cue, index, wire), frame.get(ENVELOPE, DEFAULT), ("frames", cue, index))
            for index, frame in enumerate(frames) for wire, body in frame.items() if wire != ENVELOPE
        ]
    for message, spelled in table.inputs.items():
        given = parsed(spelled.given, "inputs", message, "given")
        assert isinstance(given, Object)
        made.inputs[message] = Input(spelled.command, given, ("inputs", message))
    for code, refusal in table.errors.items():
        made.errors[code] = Refusal(refusal.status, parsed(refusal.body, "errors", code, "body"))
    return made
