"""How reaching somebody else's server fails, beside what it says itself."""

from gateway.errors import BackendFailed


class Unreachable(BackendFailed):
    """Nobody is there, or nobody we may trust."""

    retryable = True


class Cut(BackendFailed):
    """The connection broke before all was said."""

    retryable = True
