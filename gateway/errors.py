"""What can be refused or go wrong: one tree, each class carrying its FaultCode; tables know how each looks."""

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import gateway.model as m


class GatewayError(Exception):
    """Something a client or operator is told about; the message is fit for both."""

    code: ClassVar[m.FaultCode] = m.FaultCode.INTERNAL
    retryable: ClassVar[bool] = False

    def __init__(
        self, message: str, *, param: str | None = None, details: dict[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.details = details
        self.retry_after = retry_after
        """After how many seconds it may go well, where that is known."""
        self.request_id: str | None = None
        """Set where the error becomes an answer, for those who want to ask about it later."""

    @property
    def fault(self) -> m.Fault:
        return m.Fault(code=self.code, message=self.message, retryable=self.retryable, details=self.details)


class BackendFailed(GatewayError):
    """The agent broke."""

    code = m.FaultCode.BACKEND


class ServerUnreachable(BackendFailed):
    """Nobody is there, or nobody we may trust."""

    retryable = True


class ConnectionLost(BackendFailed):
    """The connection broke before all was said."""

    retryable = True


class Invalid(GatewayError):
    """The client said something that cannot be understood or is not allowed."""

    code = m.FaultCode.INVALID


class Unauthenticated(GatewayError):
    """Nobody knows who is asking."""

    code = m.FaultCode.UNAUTHENTICATED


class Forbidden(GatewayError):
    """It is known who is asking, and they may not."""

    code = m.FaultCode.FORBIDDEN


class NotFound(GatewayError):
    """The client named something that does not exist, or not for them."""

    code = m.FaultCode.NOT_FOUND


class Conflict(GatewayError):
    """The request makes sense, but not in the state things are in."""

    code = m.FaultCode.CONFLICT


class Busy(Conflict):
    """A turn is running, and there is one at a time."""


class NotPending(Conflict):
    """An answer came for something that nobody asks, or that is settled already."""


class TooLarge(GatewayError):
    """The request is larger than the limits allow."""

    code = m.FaultCode.TOO_LARGE


class Unsupported(GatewayError):
    """The agent or the dialect does not have what was asked for."""

    code = m.FaultCode.UNSUPPORTED


class RateLimited(GatewayError):
    """Too much, too fast."""

    code = m.FaultCode.RATE_LIMITED
    retryable = True


class Overloaded(GatewayError):
    """There is no room for this just now."""

    code = m.FaultCode.OVERLOADED
    retryable = True
    nothing_stored: ClassVar[bool] = False
    """Whether nothing of the request was stored, or will be: the client may send the request again."""


class TimedOut(GatewayError):
    """It took longer than it may."""

    code = m.FaultCode.TIMEOUT
    retryable = True


class OutcomeUnknown(TimedOut):
    """Nobody can tell whether it was done, or will be: whoever tries again may do it twice, and should look first."""

    retryable = False


class Interrupted(GatewayError):
    """The server stopped while it was at work on this."""

    code = m.FaultCode.INTERRUPTED
    retryable = True


DISK_FULL = "nothing can be stored just now: the disk is full"


def is_disk_full(error: BaseException) -> bool:
    """Whether there is no room on the disk, or not for this user."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def translate_exceptions(names: Mapping[type[BaseException], type[GatewayError]]) -> Iterator[None]:
    """Foreign exceptions stop at the border: each is raised again as the error of ours it stands for."""
    try:
        yield
    except tuple(names) as error:
        ours = next(ours for foreign, ours in names.items() if isinstance(error, foreign))
        raise ours(str(error) or type(error).__name__) from error
