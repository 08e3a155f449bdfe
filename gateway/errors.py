"""The errors of the gateway: one tree, each class with its FaultCode; the tables map codes to responses."""

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar

import gateway.model as m
from gateway.json_values import JsonObject


class GatewayError(Exception):
    """An error that a client or an operator sees; its message is written for both."""

    code: ClassVar[m.FaultCode] = m.FaultCode.INTERNAL
    retryable: ClassVar[bool] = False
    usual_reason: ClassVar[m.FaultReason | None] = None
    """The reason of this class of errors, if it is more exact than the code."""

    def __init__(
        self, message: str, *, param: str | None = None, details: JsonObject | None = None,
        retry_after: float | None = None, reason: m.FaultReason | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.details = details
        self.retry_after = retry_after
        """Seconds until a retry may succeed, if they are known."""
        self._reason = reason
        self.request_id: str | None = None
        """The id of the request, set where the error becomes a response."""

    @property
    def reason(self) -> m.FaultReason:
        """The most exact word for what went wrong."""
        return self._reason or self.usual_reason or m.FaultReason(self.code)

    @property
    def fault(self) -> m.Fault:
        return m.Fault(code=self.code, message=self.message, retryable=self.retryable, details=self.details)


class BackendFailed(GatewayError):
    """The agent failed."""

    code = m.FaultCode.BACKEND


class ServerUnreachable(BackendFailed):
    """The server cannot be reached, or cannot be trusted."""

    retryable = True


class ConnectionLost(BackendFailed):
    """The connection was lost before the end of the response."""

    retryable = True


class Invalid(GatewayError):
    """The request cannot be understood, or is not allowed."""

    code = m.FaultCode.INVALID


class Unauthenticated(GatewayError):
    """The client is not known."""

    code = m.FaultCode.UNAUTHENTICATED


class Forbidden(GatewayError):
    """The client is known, and has no permission."""

    code = m.FaultCode.FORBIDDEN


class NotFound(GatewayError):
    """The client named something that does not exist, or that belongs to another user."""

    code = m.FaultCode.NOT_FOUND


class Conflict(GatewayError):
    """The request does not fit the current state."""

    code = m.FaultCode.CONFLICT


class Busy(Conflict):
    """A turn is running; a session runs one turn at a time."""


class NotPending(Conflict):
    """An answer came for an ask that does not exist or is settled."""


class TooLarge(GatewayError):
    """The request is larger than the limits allow."""

    code = m.FaultCode.TOO_LARGE


class Unsupported(GatewayError):
    """The agent or the dialect does not support the request."""

    code = m.FaultCode.UNSUPPORTED


class RateLimited(GatewayError):
    """The client sends too many requests, or has too much."""

    code = m.FaultCode.RATE_LIMITED
    retryable = True


class Overloaded(GatewayError):
    """The server has no capacity for the request at the moment."""

    code = m.FaultCode.OVERLOADED
    retryable = True
    nothing_stored: ClassVar[bool] = False
    """Whether nothing of the request was stored, or will be: the client may send the request again."""


class FilesUnavailable(Overloaded):
    """The store of files refuses, cannot be reached, or does not do what it says; nothing was stored."""


class TimedOut(GatewayError):
    """Something took longer than its limit."""

    code = m.FaultCode.TIMEOUT
    retryable = True


class FilesTimedOut(TimedOut):
    """The store of files did not answer in time; nothing was stored that anybody can find."""


class OutcomeUnknown(TimedOut):
    """Nobody knows whether the request was executed: a retry may execute it twice, so look first."""

    retryable = False


class Interrupted(GatewayError):
    """The server stopped while it worked on this."""

    code = m.FaultCode.INTERRUPTED
    retryable = True


DISK_FULL = "nothing can be stored just now: the disk is full"


def is_disk_full(error: BaseException) -> bool:
    """Say whether the disk or the quota of the user is full."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def translate_exceptions(names: Mapping[type[BaseException], type[GatewayError]]) -> Iterator[None]:
    """Raise foreign exceptions as errors of the gateway, so that no room sees exceptions of a library."""
    try:
        yield
    except tuple(names) as error:
        ours = next(ours for foreign, ours in names.items() if isinstance(error, foreign))
        raise ours(str(error) or type(error).__name__) from error
