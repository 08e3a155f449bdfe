"""What a dialect, or a pair of dialects, loses, by the `support:` sections of their tables."""

from gateway.model import SupportLevel

from .features import FEATURES
from .table import Table

LOST_LEVELS = frozenset((SupportLevel.DROPPED, SupportLevel.REJECTED))
LEVEL_SYMBOLS = {
    SupportLevel.FULL: "✓",
    SupportLevel.PARTIAL: "~",
    SupportLevel.FALLBACK: "~",
    SupportLevel.DROPPED: "✗",
    SupportLevel.REJECTED: "✗",
}
LEVEL_MEANINGS = {SupportLevel.PARTIAL: "some of it arrives", SupportLevel.FALLBACK: "it arrives as something else"}
"""The note of a degraded feature whose table has no note."""


def losses_between(first: Table, second: Table) -> tuple[list[str], list[str]]:
    """Return the features that clients of the second dialect lose, and those they get in a degraded form."""
    levels = {name: {first.client_support[name], second.support[name]} for name in FEATURES}
    lost = [name for name, both in levels.items() if LOST_LEVELS & both]
    return lost, [name for name, both in levels.items() if name not in lost and both != {SupportLevel.FULL}]
