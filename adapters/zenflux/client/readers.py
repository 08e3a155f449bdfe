"""Values of ZenFlux's frames and bodies, as the table binds them, made into values of the model."""

from typing import Any

import gateway.model as m
from adapters.zenflux.bodies import ReplyBody
from gateway.client import members
from gateway.errors import BackendFailed
from mappings.language import Bindings, ServerTable

ZENFLUX = ServerTable("adapters.zenflux", "json", "sse")


class RunEvent:
    """A frame that the table has: its cue, what stands in its envelope, and its other bindings."""

    ENVELOPE = ("run_id", "session_id", "out_seq")
    __slots__ = ("cue", "error", "given", "run_id", "seq", "session_id")

    def __init__(self, cue: str, given: Bindings, error: BackendFailed | None = None) -> None:
        self.cue, self.given, self.error = cue, given, error
        """`error` says why the frame cannot be understood; then it has no bindings."""
        self.run_id: str = given.pop("run_id", None) or ""
        self.session_id: str = given.pop("session_id", None) or ""
        self.seq: int = max(0, given.pop("out_seq", None) or 0)


def read_fault(code: m.FaultCode | None, fault: Bindings) -> m.Fault:
    """A server that fails by itself is a failed agent; one that is unavailable may be retried."""
    code, retryable = code or m.FaultCode.INTERNAL, fault["retryable"]
    return m.Fault(
        code=m.FaultCode.BACKEND if code is m.FaultCode.INTERNAL else code,
        message=fault["message"] or "the server did not say what went wrong",
        retryable=retryable if retryable is not None else code is m.FaultCode.BACKEND or code.is_retryable,
    )


# -- replies over HTTP ------------------------------------------------------------------------------------------------

def unwrap(body: Any) -> Any:
    """The data of an answer, in its wrapper or without."""
    if not isinstance(body, dict):
        return body
    reply = ZENFLUX.read(ReplyBody.row, body)
    return reply["flat"] if reply["data"] is None else reply["data"]


def read_list(row: str, data: Any) -> list[Bindings]:
    """The bindings of the bodies of a list, which may be bare or under its name; empty for what is no list."""
    found: list[Bindings] | None = ZENFLUX.read(row, data)["items"]
    return found or []


def read_body(row: str, body: Any) -> Bindings:
    """The bindings of a body; what is no object has none of its members."""
    return ZENFLUX.read(row, members(body))
