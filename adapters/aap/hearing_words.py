"""AAP's words read back: the table from right to left."""

from functools import cache

from gateway.model import StopReason
from mappings.language import Table, builtin_table


@cache
def table() -> Table:
    """The dialect as it comes with the house, whatever this deployment calls things: a server knows nothing of that."""
    from . import DIALECT  # the dialect has its hearing, so it cannot be imported before
    return builtin_table(DIALECT)


@cache
def stop_reasons() -> dict[str, StopReason]:
    """What each word for the end of a turn stands for."""
    return table().meanings("stop_reason", StopReason)
