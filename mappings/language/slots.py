"""Does every slot name something that is there, and filter it by something that fits?"""

from collections import defaultdict
from typing import Any

from gateway.marks import Path_, Place, nearest
from gateway.model import Content

from .draft import Draft, Findings
from .expressions import BODY, SPLICE, WIRE, Node, Slot, slots
from .filters import CONTENT, FILTERS, PARTS, TIMES
from .names import ENUMS, Name, Scope, Source, attributes, members


class SlotChecker:
    """Looks at slots in their scopes; what is unknown in several cues is told once."""

    def __init__(self, draft: Draft, findings: Findings) -> None:
        self._broken = draft.broken
        self._enums, self._reads = draft.shape.enums, draft.shape.reads
        self._findings = findings
        self._missing: dict[tuple[Place, str], list[tuple[Path_, str, str]]] = defaultdict(list)

    def look(self, node: Node, scope: Scope, where: str, *, inputs: bool = False) -> None:
        for slot, key in slots(node):
            if slot.name not in scope:
                place = self._findings.place(slot.path)
                self._missing[place, slot.name].append((slot.path, where, nearest(slot.name, scope)))
                hint = None
            else:
                hint = self._step(slot, scope[slot.name])
            self._filters(slot, hint, inputs)
            if slot.is_optional and key in (None, SPLICE):
                self._findings.add(slot.path, "only the value of a key can be optional")

    def tell(self) -> None:
        """What was unknown, and where."""
        for (_, name), misses in self._missing.items():
            path, _, hint = misses[0]
            if name in (WIRE, BODY):
                self._findings.add(path, f"'${name}' is known in envelopes only")
            else:
                where = _listed([where for _, where, _ in misses])
                self._findings.add(path, f"there is no name '${name}' in {where}", hint)

    def _step(self, slot: Slot, name: Name) -> Any:
        """The type at the end of the dots; None where it is unknown or wrong."""
        if name.source is Source.ENVELOPE and (slot.steps or slot.filters):
            self._findings.add(slot.path, f"'${slot.name}' stands alone")
        said, hint = "$" + slot.name, name.type
        for step in slot.steps:
            known = attributes(hint)
            if known is None:
                return None
            if step not in known:
                self._findings.add(slot.path, f"{said} has no '{step}'", _hint(step, known, hint))
                return None
            said, hint = f"{said}.{step}", known[step]
        return hint

    def _filters(self, slot: Slot, hint: Any, inputs: bool) -> None:
        maps, others = (self._reads, self._enums) if inputs else (self._enums, self._reads)
        for name in slot.filters:
            if name in FILTERS or name in maps or (name in (CONTENT, PARTS) and not inputs):
                if mismatch := _mismatch(name, hint):
                    self._findings.add(slot.path, f"'{name}' is for {mismatch}, and '{slot}' is not one")
            elif name in others:
                side = "enums are for what the gateway says" if inputs else "reads are for what clients say"
                self._findings.add(slot.path, f"'{name}' does not belong here", side)
            elif ("reads" if inputs else "enums") not in self._broken:
                known = [*FILTERS, *maps, *(() if inputs else (CONTENT, PARTS))]
                self._findings.add(slot.path, f"there is no filter '{name}'", nearest(name, known))
            hint = None  # what a filter gives is no business of the next one's


def _hint(step: str, known: dict[str, Any], hint: Any) -> str:
    having = [kind for kind in members(hint) if step in (attributes(kind) or ())]
    if having and len(having) < len(members(hint)):
        kinds = ", ".join(str(getattr(kind, "kind", kind.__name__)) for kind in having)
        return f"only {kinds} {'has' if len(having) == 1 else 'have'} it"
    return nearest(step, known)


def _mismatch(name: str, hint: Any) -> str:
    """What the filter is for, if what it is given is surely something else."""
    kinds = members(hint)
    if hint is None or Any in kinds:
        return ""
    if name in TIMES:
        return "" if set(kinds) <= {float, int} else "times"
    if name in (CONTENT, PARTS):
        return "" if set(kinds) <= {*members(Content)} else "content"
    enum = ENUMS.get(name.partition("@")[0])
    return "" if enum is None or kinds == (enum,) or str in kinds else f"{enum.__name__}"


def _listed(cues: list[str]) -> str:
    names = list(dict.fromkeys(cues))
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
