"""The options of one Blade stream."""

import gateway.model as m
from adapters.blade.wire import BladeSettings
from gateway import ports


class StreamOptions(ports.StreamOptions, frozen=True, kw_only=True):
    """Which form the events of a subscription have."""

    is_raw: bool = False
    """Whether every event is repeated in an envelope."""
    is_bare: bool = False
    """Whether patches leave out the snapshot of their turn."""


BARE = StreamOptions(is_bare=True)


def socket_options(settings: BladeSettings, view: m.SessionView) -> StreamOptions:
    """The options of a subscription without wishes."""
    return StreamOptions(is_bare=not settings.patch_snapshots)
