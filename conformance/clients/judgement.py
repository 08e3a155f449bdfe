"""Judgements: functions that read a client's traffic in a situation and decide whether a requirement was met."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType

from conformance.clients.client_traffic import ClientTraffic
from conformance.kit.requirement import Catalogue

Check = Callable[[ClientTraffic], None]


class DoesNotApply(Exception):
    """The requirement is about something that this client does not do at all."""


@dataclass(frozen=True)
class Judgement:
    """What decides a requirement; in each of the situations it names, or wherever there is something to judge."""

    name: str
    requirement: str
    sentence: str
    check: Check
    situations: tuple[str, ...]

    def is_for(self, situation: str) -> bool:
        return not self.situations or situation in self.situations


def judges(requirement: str, *situations: str) -> Callable[[Check], Judgement]:
    """Make a judgement of a function that raises Failed, NotTestable or DoesNotApply; without any it has passed."""

    def bind(check: Check) -> Judgement:
        return Judgement(check.__name__, requirement, " ".join((check.__doc__ or "").split()), check, situations)

    return bind


def collect_judgements(*modules: ModuleType) -> tuple[Judgement, ...]:
    """The judgements of these modules, in the order they are written; SHARED has those that dialects share."""
    found = (item for module in modules for item in (*vars(module).values(), *getattr(module, "SHARED", ())))
    return tuple(item for item in found if isinstance(item, Judgement))


def mismatches(catalogue: Catalogue, judgements: Iterable[Judgement], situations: Iterable[str]) -> list[str]:
    """Where the catalogue, the judgements and the situations do not match; empty when all is well."""
    judgements, known = list(judgements), set(situations)
    judged = {item.requirement for item in judgements}
    return [
        *(f"{name}: no judgement decides it" for name in sorted(catalogue.ids - judged)),
        *(f"{name}: a judgement names it, the catalogue does not" for name in sorted(judged - catalogue.ids)),
        *(f"{item.name}: there is no situation {name}" for item in judgements for name in {*item.situations} - known),
        *(f"{item.name}: has no sentence" for item in judgements if not item.sentence),
    ]  # fmt: skip
