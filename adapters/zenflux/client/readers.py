"""Values of ZenFlux's frames and bodies, as the table binds them, made into values of the model."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import gateway.model as m
from mappings.language import Table, builtin_table

Bindings = dict[str, Any]
MOST_TOKENS = 2**53


@cache
def builtin_zenflux_table() -> Table:
    """The documented table, without the overrides of one deployment."""
    from adapters.zenflux import DIALECT  # the dialect imports its decoder, so it cannot be imported at the top
    return builtin_table(DIALECT)


def read_fault(given: Bindings) -> m.Fault:
    """A server that fails by itself is a failed agent; one that is unavailable may be retried."""
    said, fault = given["code"], given["fault"]
    code = said if isinstance(said, m.FaultCode) else m.FaultCode.INTERNAL
    is_away, retryable = code is m.FaultCode.BACKEND, fault["retryable"]
    return m.Fault(
        code=m.FaultCode.BACKEND if code is m.FaultCode.INTERNAL else code,
        message=fault["message"] or "the server did not say what went wrong",
        retryable=retryable if retryable is not None else is_away or code.is_retryable,
    )


def tokens(count: int | None) -> int:
    """A number of tokens; what is out of all bounds counts for nothing."""
    return count if count is not None and 0 < count < MOST_TOKENS else 0


def read_usage(usage: Mapping[str, int | None]) -> m.Usage:
    return m.Usage(**{name: tokens(count) for name, count in usage.items()})


def text(value: Any) -> str:
    """A text, or an empty one."""
    return value if isinstance(value, str) else ""


def members(value: Any) -> dict[str, Any]:
    """An object, or an empty one."""
    return value if isinstance(value, dict) else {}
