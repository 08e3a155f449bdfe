"""Attribution: which requirements a failure is charged to, and which it only keeps from being judged.

A failure with an owner breaks the owner's sentence: the owner fails, and what else the case was to judge is not
testable because of it. A failure without an owner breaks the sentences of the case. A departure that was noted on the
way charges its owner, whatever becomes of the case; a case that then stumbles does so because of the first departure.
After a misleading departure (an event that is told otherwise than it is listed, say) a failure is because of that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from conformance.kit.departures import Departure
from conformance.kit.expect import Failed, NotTestable, Unanswered
from conformance.kit.unreadable_answers import Unreadable
from conformance.kit.verdict import Outcome


@dataclass(frozen=True)
class Ending:
    """The outcome of a case: of its requirements that have a departure, and of the others."""

    outcome: Outcome
    expected: str | None = None
    seen: str | None = None
    reason: str | None = None
    because: str | None = None
    departures: tuple[Departure, ...] = ()
    rest: Outcome | None = None


def attributed(
    requirements: Sequence[str], error: BaseException | None, noted: Sequence[Departure], limit: float = inf
) -> Ending:
    """The ending of a case of these requirements that raised this error after these departures."""
    departures = tuple(noted)
    misled = next((item for item in departures if item.is_misleading), None)
    if misled is not None and isinstance(error, Failed) and not isinstance(error, Unanswered):
        error = Failed(misled.expected, misled.seen, misled.owner)
    if isinstance(error, Failed) and error.owner is not None:
        others = [item for item in departures if item.owner != error.owner]
        departures = (*others, Departure(error.owner, error.expected, error.seen))
    rest = _rest(error, departures, limit)
    own = next((item for item in departures if item.owner in requirements), None)
    if own is None or rest.outcome is Outcome.FAILED:
        return _with(rest, departures)
    return Ending(Outcome.FAILED, own.expected, own.seen, rest.reason, rest.because, departures, rest.outcome)


def _with(ending: Ending, departures: tuple[Departure, ...]) -> Ending:
    return Ending(ending.outcome, ending.expected, ending.seen, ending.reason, ending.because, departures)


def _rest(error: BaseException | None, departures: Sequence[Departure], limit: float) -> Ending:
    """The outcome of the requirements that no departure names."""
    first = departures[0].owner if departures else None
    match error:
        case None:
            return Ending(Outcome.PASSED)
        case Failed() if error.owner is not None:
            return _blocked(error.owner)
        case Failed():
            return Ending(Outcome.FAILED, error.expected, error.seen)
        case (Unreadable() | TimeoutError()) if first is not None:
            return _blocked(first)
        case NotTestable():
            return Ending(Outcome.NOT_TESTABLE, reason=str(error))
        case TimeoutError():
            expected = f"the whole exchange to take less than {limit:g} s"
            return Ending(Outcome.FAILED, expected, "it had not ended by then")
        case _:
            said = f"the examiner stumbled: {type(error).__name__}: {error}"
            return Ending(Outcome.NOT_TESTABLE, reason=said)


def _blocked(owner: str) -> Ending:
    return Ending(Outcome.NOT_TESTABLE, reason=f"not testable because {owner} failed", because=owner)
