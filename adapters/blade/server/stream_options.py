"""The options of one Blade stream."""

from gateway import ports


class StreamOptions(ports.StreamOptions, frozen=True, kw_only=True):
    """Which form the events of a subscription have."""

    is_raw: bool = False
    """Whether every event is repeated in an envelope."""
    is_bare: bool = False
    """Whether patches leave out the snapshot of their turn."""


BARE = StreamOptions(is_bare=True)
