"""The traffic of one clean run: every place of a dialect's messages, and which cases see messages of that place."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from conformance.faults.kill.paths import Walk

MOST_SAMPLES = 16
Pair = tuple[str, str, str]
"""A channel and two events that followed each other."""
Hold = tuple[str, str, str]
"""A place, a path in its messages, and a schema."""


@dataclass
class CaseTraffic:
    """What passed in one case."""

    case: str
    binds: bool
    seconds: float = 0.0
    messages: list[tuple[str, Any]] = field(default_factory=list)
    pairs: set[Pair] = field(default_factory=set)
    answers: set[tuple[str, bool]] = field(default_factory=set)
    holds: set[Hold] = field(default_factory=set)
    """What the case held to which schema."""
    owners: dict[Hold, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The requirements that own the shape of what was held to a schema."""

    def held(self, walk: Walk, schema: str, value: Any, owner: str | None = None) -> None:
        """Note where a value that was held to a schema came from, and which requirement the shape belongs to."""
        if (found := self._source(walk, value)) is not None:
            self.holds.add((*found, schema))
            if owner is not None:
                self.owners[*found, schema].add(owner)

    def _source(self, walk: Walk, value: Any) -> tuple[str, str] | None:
        """The place and the path of a value: the latest message that is it, or has it inside."""
        for place, json in reversed(self.messages):
            if json == value:
                return place, ""
        for place, json in reversed(self.messages):
            for path, found in walk.paths(json):
                if found == value and type(found) is type(value):
                    return place, path
        return None


@dataclass
class Traffic:
    """The traffic of all cases."""

    walk: Walk
    samples: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    visitors: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    pairs: dict[Pair, set[str]] = field(default_factory=lambda: defaultdict(set))
    answers: dict[str, bool] = field(default_factory=dict)
    holds: dict[str, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))
    owners: dict[Hold, set[str]] = field(default_factory=lambda: defaultdict(set))
    judges: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    seconds: dict[str, float] = field(default_factory=dict)
    _shapes: dict[str, set[frozenset[tuple[str, str]]]] = field(default_factory=lambda: defaultdict(set))

    def add(self, record: CaseTraffic) -> None:
        """Add the traffic of one case."""
        self.seconds[record.case] = record.seconds
        for place, json in record.messages:
            self._visit(record.case, place, json)
        for pair in record.pairs:
            self.pairs[pair].add(record.case)
        for place, is_stream in record.answers:
            self.answers[place] = is_stream
            self.visitors[place, ""].add(record.case)
        for place, path, schema in record.holds:
            self.judges[place].add(record.case)
            if record.binds:
                self.holds[place].add((path, schema))
        for hold, owners in record.owners.items():
            self.owners[hold] |= owners

    def _visit(self, case: str, place: str, json: Any) -> None:
        paths = [(path, type(value).__name__) for path, value in self.walk.paths(json)]
        for path, _ in paths:
            self.visitors[place, path].add(case)
        shape = frozenset(paths)
        if shape not in self._shapes[place] and len(self.samples[place]) < MOST_SAMPLES:
            self._shapes[place].add(shape)
            self.samples[place].append(json)

    @property
    def places(self) -> list[str]:
        return sorted(self.samples)

    def paths(self, place: str) -> list[str]:
        """The paths seen in the messages of a place."""
        return sorted(path for found, path in self.visitors if found == place)

    def channels(self) -> Iterator[str]:
        yield from sorted({place.partition(" ")[0] for place in self.samples if not _is_answer(place)})

    def events(self, channel: str) -> list[str]:
        """The names of the events of a channel."""
        named = (place.partition(" ") for place in self.places)
        return [name for found, _, name in named if found == channel]

    def visitors_of(self, channel: str, events: Iterable[str] = ()) -> set[str]:
        """The cases that see any of these events, or the channel."""
        names = list(events) or self.events(channel)
        return {case for name in names for case in self.visitors.get((f"{channel} {name}", ""), ())}


def _is_answer(place: str) -> bool:
    return place.partition(" ")[0].isupper()
