"""What tests of the examiners must know of the servers of one dialect; `examination.py` in its folder says it."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.faults.kill.setups import SETUPS
from tests.support.dialect_parts import has_part, part

KEY = "the-key-of-the-examiners"
Ask = Callable[..., Awaitable[Any]]
"""Sends a request to a server, and returns the JSON of the answer."""


@dataclass(frozen=True, kw_only=True)
class ExaminationFacts:
    """All of it; what has a default need not be said."""

    make_foreign: Callable[[Ask], Awaitable[None]]
    """Makes one resource of every kind, as somebody who is not the examiner."""
    foreign_lists: Sequence[str]
    """The paths at which a server lists such resources."""
    damaged: Callable[[Any], Any] | None = None
    """(a `Damage`) → a server that damages a share of what it says."""
    quick_requirement: str
    """A requirement whose cases need the paths of the dialect, and the socket where it has one."""
    patience: float = 5.0
    """Seconds that a case waits for a wrong server."""
    at_once: int | None = None
    """How many cases are put at a time, if not as many as usual."""
    recorded: str = ""
    """Faults that are examined through the recording proxy, so that their recordings are judged too."""
    lax: Sequence[str] = ()
    """Faults of servers that take what they should refuse, and must be left as they were found."""
    combined_faults: Sequence[str] = ()
    """Faults that are put together in one server, which is examined by the whole suite."""
    variations: Mapping[str, str] = field(default_factory=dict)
    """Groups of variations that do not stand in each other's way; those that do are in different groups."""
    sparing: Collection[str] = ()
    """Variations that do without what is only a SHOULD: they are examined by themselves."""
    variations_keep_shoulds: bool = True
    """Whether the other variations do what is only a SHOULD."""
    passed_offline: int = 1
    """How many requirements the recording of a correct server shows to be kept, at least."""
    needs_times: Collection[str] = ()
    """Requirements that take the time of each event of a stream, which a HAR file does not have."""
    has_destructive_cases: bool = False
    at_origin: bool = False
    """Whether the address of a server has no path: the protocol itself says where its paths begin."""
    own_settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the dialect in our own server that save the examiners a wait."""
    own_profile: Mapping[str, Any] = field(default_factory=dict)
    """What a profile says of a server with these settings."""
    leaves_something: bool = False
    """Whether the protocol has no way to delete something that the examiners must make."""


EXAMINED = [name for name in SETUPS if has_part(name, "examination")]
"""The dialects whose servers the tests examine; the proof `reference` names those that are left out."""


def examination_facts(dialect: str) -> ExaminationFacts:
    facts: ExaminationFacts = part(dialect, "examination").FACTS
    return facts
