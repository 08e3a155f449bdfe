"""All flaws of a dialect, generated from its traffic, schemas and orders; see `orders` for how each is classed."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from conformance.faults.kill.field_damage import can_damage, damaged_copy
from conformance.faults.kill.flaw import FAMILIES, Expectation, Flaw
from conformance.faults.kill.framing import ALLOWED
from conformance.faults.kill.orders import Orders, among
from conformance.faults.kill.paths import Walk
from conformance.faults.kill.setups import setup_of
from conformance.faults.kill.traffic import Traffic
from conformance.kit.schemas import Schemas
from conformance.kit.suite import home_of

BREAKS, TOLERATED, FREE = Expectation.BREAKS, Expectation.TOLERATED, Expectation.FREE
SIBLINGS = {200: 202, 201: 200, 202: 200, 204: 200}
Found = tuple[Any, list[Any]]
"""A message, and what it has at a path."""


class FlawGenerator:
    """Makes the flaws of one dialect."""

    def __init__(self, dialect: str, traffic: Traffic, orders: Orders) -> None:
        self._traffic = traffic
        self._orders = orders
        self._schemas = Schemas(_schemas_of(dialect))
        self._owner_of = setup_of(dialect).owner_of

    def flaws(self) -> list[Flaw]:
        """Every flaw, by name and without repeats, with the rules applied."""
        generated = [*self._fields(), *self._numbers(), *self._events(), *self._answers(), *self._framings()]
        return sorted({flaw.name: self._ruled(flaw) for flaw in generated}.values(), key=lambda flaw: flaw.name)

    def _ruled(self, flaw: Flaw) -> Flaw:
        owners, ruling = self._orders.owners_of(flaw.name), self._orders.ruling(flaw.name)
        if owners is not None:
            flaw = replace(flaw, owners=owners)
        return replace(flaw, expectation=ruling[0], why=ruling[1]) if ruling else flaw

    # -- fields --------------------------------------------------------------------------------------------------------

    def _fields(self) -> Iterator[Flaw]:
        for place in self._traffic.places:
            holds = self.holds(place)
            for path in self._traffic.paths(place):
                found = self._found(place, path)
                for kind in FAMILIES["field"]:
                    yield from self._field(kind, place, path, holds, found)
                if among(self._orders.cursors, f"{place} {path}"):
                    yield Flaw("stale", place, path, BREAKS, "orders: every page has a cursor of its own")
            yield from self._masked(place)

    def holds(self, place: str) -> list[tuple[str, str]]:
        """The paths of a place that are held to a schema, and to which."""
        stated = {("", schema) for glob, schema in self._orders.held.items() if among((glob,), place)}
        return sorted(self._traffic.holds.get(place, set()) | stated)

    def _found(self, place: str, path: str) -> list[Found]:
        """The samples of a place, each with what it has at the path."""
        return [(sample, self._orders.walk.values(sample, path)) for sample in self._traffic.samples[place]]

    def _field(
        self, kind: str, place: str, path: str, holds: list[tuple[str, str]], found: list[Found]
    ) -> Iterator[Flaw]:
        samples = [sample for sample, values in found if any(can_damage(kind, value, path) for value in values)]
        if not samples or (kind == "extra" and self._orders.walk.hides(path)):
            return
        if kind == "alter":
            if among(self._orders.exact, f"{place} {path}"):
                yield Flaw(kind, place, path, BREAKS, "orders: its very value is a MUST")
            return
        for sample in samples:
            if breach := self._breach(kind, place, sample, path, holds):
                yield Flaw(kind, place, path, BREAKS, *breach)
                return
        if kind == "extra":
            yield Flaw(kind, place, path, TOLERATED, "unknown members are to be ignored")
        elif kind != "enum":
            yield Flaw(kind, place, path, FREE, "no schema speaks of it")

    def _breach(
        self, kind: str, place: str, sample: Any, path: str, holds: list[tuple[str, str]]
    ) -> tuple[str, tuple[str, ...]] | None:
        """What the first schema has against the damaged sample, if the whole one fits; and who owns such schemas."""
        hurt, _ = damaged_copy(self._orders.walk, kind, sample, path)
        why, owners = "", set[str]()
        for inside, schema in holds:
            if not path.startswith(inside):
                continue
            whole = self._orders.walk.values(sample, inside)
            if any(self._schemas.problems(schema, value) for value in whole):
                continue
            for value in self._orders.walk.values(hurt, inside):
                if problems := self._schemas.problems(schema, value):
                    why = why or f"schema {schema}: {problems[0][:160]}"
                    owners |= self._traffic.owners.get((place, inside, schema), set())
        return (why, tuple(sorted(owners))) if why else None

    def _masked(self, place: str) -> Iterator[Flaw]:
        """Masks are looked for everywhere, in what belongs to the user too."""
        everywhere = Walk(self._orders.discriminators)
        for sample in self._traffic.samples[place]:
            for path, value in everywhere.paths(sample):
                if isinstance(value, str) and value in self._orders.masks:
                    yield Flaw("unmask", place, path, BREAKS, "orders: a secret is shown masked")

    def _numbers(self) -> Iterator[Flaw]:
        for sequence in self._orders.sequences:
            choices = dict.fromkeys([*sequence.paths, ",".join(sequence.paths)])
            for path in choices:
                for kind in FAMILIES["number"]:
                    yield Flaw(kind, sequence.places, path, BREAKS, "orders: the numbers count without gap or repeat")

    # -- events --------------------------------------------------------------------------------------------------------

    def _events(self) -> Iterator[Flaw]:
        for channel in self._traffic.channels():
            order = self._orders.order(channel)
            runs = {first for found, first, then in self._traffic.pairs if found == channel and first == then}
            for event in self._traffic.events(channel):
                place, is_end = f"{channel} {event}", event in order.last
                is_exact, is_bound = event in order.exact, event in (*order.first, *order.last)
                yield _event("lose", place, is_exact or is_bound)
                yield _event("double", place, is_exact or event in order.once)
                if event in runs:
                    yield _event("first-lost", place, is_exact)
                if is_end:
                    yield _event("cut", place, True)
                elif order.last:
                    yield _event("late", place, True)
                if order.last:
                    yield _event("after", place, not is_end or is_exact or event in order.once)
        yield from self._swaps()

    def _swaps(self) -> Iterator[Flaw]:
        for channel, first, then in sorted(self._traffic.pairs):
            order = self._orders.order(channel)
            if first in order.last:
                continue
            breaks = first in order.first or then in order.last or {first, then} <= set(order.exact)
            yield _event("swap", f"{channel} {first}", breaks, then)

    # -- answers and framing -------------------------------------------------------------------------------------------

    def _answers(self) -> Iterator[Flaw]:
        for place, is_stream in sorted(self._traffic.answers.items()):
            status = int(place.removesuffix(" stream").rpartition(" ")[2])
            owners, why = self._whose_success(place, status), "what succeeds or is refused is not the server's failure"
            yield Flaw("status", place, "500", BREAKS, why, owners)
            if status >= 400:
                yield Flaw("status", place, "200", BREAKS, "what is refused has not succeeded")
                yield Flaw("status", place, "418", FREE, "another refusal")
            else:
                yield Flaw("status", place, str(SIBLINGS.get(status, 200)), BREAKS, "the status is stated", owners)
            if is_stream or place in self._traffic.samples:
                is_must = is_stream or (self._orders.mime and status < 400)
                yield Flaw("mime", place, "", BREAKS if is_must else FREE, "the content type is stated")
            if place in self._traffic.samples:
                yield Flaw("garble", place, "", BREAKS if self.holds(place) else FREE, "the body is JSON")

    def _whose_success(self, place: str, status: int) -> tuple[str, ...]:
        """The requirement that such a request succeeds, if it does and the dialect has one for each."""
        method, path, _ = place.split(maxsplit=2)
        found = self._owner_of(method, path) if status < 400 else None
        return () if found is None else (found,)

    def _framings(self) -> Iterator[Flaw]:
        for kind in FAMILIES["framing"] if "sse" in self._traffic.channels() else ():
            allowed = kind in ALLOWED
            why = "the event-stream format allows it" if allowed else "the event-stream format does not allow it"
            yield Flaw(kind, "sse", "", TOLERATED if allowed else BREAKS, why)


def _event(kind: str, place: str, breaks: bool, path: str = "") -> Flaw:
    why = "orders: it comes where, and as often as, it is stated" if breaks else "the orders do not speak of it"
    return Flaw(kind, place, path, BREAKS if breaks else FREE, why)


def _schemas_of(dialect: str) -> Path:
    return home_of(dialect) / "schemas"


def visitors(traffic: Traffic, flaw: Flaw) -> set[str]:
    """The cases that see messages of the place of a flaw."""
    match flaw.family:
        case "field" | "page":
            return traffic.visitors.get((flaw.place, flaw.path), set())
        case "answer" | "secret":
            return traffic.visitors.get((flaw.place, ""), set())
        case "number":
            names = [name for name in traffic.events(flaw.channel) if among((flaw.place,), f"{flaw.channel} {name}")]
            return traffic.visitors_of(flaw.channel, names)
        case "event":
            if flaw.kind == "swap":
                return traffic.pairs.get((flaw.channel, flaw.event, flaw.path), set())
            return traffic.visitors_of(flaw.channel, [flaw.event])
        case _:
            return traffic.visitors_of(flaw.channel)
