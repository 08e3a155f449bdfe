"""The options of one Blade stream."""

from pydantic import BaseModel

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


def socket_options(settings: BaseModel, view: m.SessionView) -> StreamOptions:
    """The options of a subscription without wishes."""
    assert isinstance(settings, BladeSettings), "a dialect gets settings of its own kind"
    return StreamOptions(is_bare=not settings.patch_snapshots)
