"""Values of ZenFlux's frames and bodies, as the table binds them, made into values of the model."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import gateway.model as m
from adapters.zenflux.bodies import ReplyBody
from gateway.client import members, objects
from gateway.json_values import JsonObject
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


# -- replies over HTTP ------------------------------------------------------------------------------------------------

def unwrap(body: Any) -> Any:
    """The data of an answer, in its wrapper or without."""
    if not isinstance(body, dict):
        return body
    reply = builtin_zenflux_table().read_object(ReplyBody.row, body)
    return reply["flat"] if reply["data"] is None else reply["data"]


def read_list(row: str, data: Any) -> list[JsonObject]:
    """The objects of a list, which may be bare or under its name."""
    return objects(builtin_zenflux_table().read_object(row, data)["items"] if isinstance(data, dict) else data)


def read_body(row: str, body: Any) -> Bindings:
    """The bindings of a body; what is no object has none of its members."""
    return builtin_zenflux_table().read_object(row, members(body))


def read_bodies(row: str, listed: str, data: Any) -> list[Bindings]:
    return [read_body(row, one) for one in read_list(listed, data)]
