"""Checks the slots of a table's expressions: their names, the steps behind a dot, and their filters."""

from collections import defaultdict
from enum import Enum, auto
from typing import Any

import gateway.model as m
from gateway.yaml_positions import NodePath, Position, suggest

from .expressions import BODY, SPLICE, WIRE, Node, Slot, nested_row, slots
from .filters import CONTENT_FILTER, FILTERS, PARTS_FILTER, TIME_FILTERS
from .parsed_table import ParsedTable, ProblemCollector
from .scopes import MODEL_ENUMS, NameSource, Scope, ScopedName, TypeHint, known_attributes, union_members


class SlotChecker:
    """Checks slots in their scopes; a name that is unknown in several cues is reported once."""

    def __init__(self, draft: ParsedTable, findings: ProblemCollector) -> None:
        self._broken = draft.broken
        self._enums, self._reads, self._objects = draft.shape.enums, draft.shape.reads, draft.objects
        self._findings = findings
        self._missing: dict[tuple[Position, str], list[tuple[NodePath, str, str]]] = defaultdict(list)

    def check(self, node: Node, scope: Scope, where: str, *, section: "InSection | None" = None) -> None:
        for slot, key in slots(node):
            if slot.name not in scope:
                place = self._findings.place(slot.path)
                self._missing[place, slot.name].append((slot.path, where, suggest(slot.name, scope)))
                hint = None
            else:
                hint = self._step(slot, scope[slot.name])
            self._filters(slot, hint, section or InSection.FRAMES)
            if slot.is_optional and key in (None, SPLICE):
                self._findings.add(slot.path, "only the value of a key can be optional")

    def report_missing(self) -> None:
        """The unknown names, and where they are used."""
        for (_, name), misses in self._missing.items():
            path, _, hint = misses[0]
            if name in (WIRE, BODY):
                self._findings.add(path, f"'${name}' is known in envelopes only")
            else:
                where = _cue_list([where for _, where, _ in misses])
                self._findings.add(path, f"there is no name '${name}' in {where}", hint)

    def _step(self, slot: Slot, name: ScopedName) -> TypeHint | None:
        """The type after the last dot; None if it is unknown or wrong."""
        if name.source is NameSource.ENVELOPE and (slot.steps or slot.filters):
            self._findings.add(slot.path, f"'${slot.name}' stands alone")
        path, hint = "$" + slot.name, name.type
        for step in slot.steps:
            known = known_attributes(hint)
            if known is None:
                return None
            if step not in known:
                self._findings.add(slot.path, f"{path} has no '{step}'", _attribute_hint(step, known, hint))
                return None
            path, hint = f"{path}.{step}", known[step]
        return hint

    def _filters(self, slot: Slot, hint: TypeHint | None, section: "InSection") -> None:
        by_code = section is InSection.CODE
        maps = {InSection.FRAMES: self._enums, InSection.CODE: self._reads,
                InSection.WIRE: {**self._enums, **self._reads}}[section]
        for name in slot.filters:
            if (nested := nested_row(name)) is not None:
                if nested[1] not in self._objects and "objects" not in self._broken:
                    self._findings.add(
                        slot.path, f"there is no object '{nested[1]}'", suggest(nested[1], self._objects))
            elif name in FILTERS or name in maps or (name in (CONTENT_FILTER, PARTS_FILTER) and not by_code):
                if mismatch := _filter_mismatch(name, hint):
                    self._findings.add(slot.path, f"'{name}' is for {mismatch}, and '{slot}' is not one")
            elif name in self._enums or name in self._reads:
                side = "enums are for what the gateway says" if by_code else "reads are for what clients say"
                self._findings.add(slot.path, f"'{name}' does not belong here", side)
            elif ("reads" if by_code else "enums") not in self._broken:
                known = [*FILTERS, *maps, *(() if by_code else (CONTENT_FILTER, PARTS_FILTER))]
                self._findings.add(slot.path, f"there is no filter '{name}'", suggest(name, known))
            hint = None  # the type of a filter's result is not checked


class InSection(Enum):
    """Where an expression stands, which decides what its filters may be."""

    FRAMES = auto()  # or in another section that is written
    CODE = auto()  # in an input whose names are bound by code
    WIRE = auto()  # in an input as it is sent


def _attribute_hint(step: str, known: dict[str, TypeHint], hint: TypeHint) -> str:
    having = [kind for kind in union_members(hint) if step in (known_attributes(kind) or ())]
    if having and len(having) < len(union_members(hint)):
        kinds = ", ".join(str(getattr(kind, "kind", None) or getattr(kind, "__name__", kind)) for kind in having)
        return f"only {kinds} {'has' if len(having) == 1 else 'have'} it"
    return suggest(step, known)


def _filter_mismatch(name: str, hint: TypeHint | None) -> str:
    """What the filter is for, if its input certainly has another type."""
    kinds = union_members(hint)
    if hint is None or Any in kinds:
        return ""
    if name in TIME_FILTERS:
        return "" if set(kinds) <= {float, int} else "times"
    if name in (CONTENT_FILTER, PARTS_FILTER):
        return "" if set(kinds) <= {*union_members(m.Content)} else "content"
    enum = MODEL_ENUMS.get(name.partition("@")[0])
    return "" if enum is None or kinds == (enum,) or str in kinds else f"{enum.__name__}"


def _cue_list(cues: list[str]) -> str:
    names = list(dict.fromkeys(cues))
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
