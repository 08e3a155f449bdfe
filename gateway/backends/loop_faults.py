"""What a model service complains of in the middle of its answer, as a fault of ours."""

from typing import Any

from gateway.errors import BackendFailed, GatewayError, Overloaded, RateLimited, TimedOut
from gateway.upstream import Upstream, words_of

KINDS: dict[str, type[GatewayError]] = {
    "rate_limit_error": RateLimited, "rate_limit_exceeded": RateLimited, "insufficient_quota": RateLimited,
    "429": RateLimited,
    "overloaded_error": Overloaded, "overloaded": Overloaded, "server_error": Overloaded, "api_error": Overloaded,
    "service_unavailable": Overloaded, "500": Overloaded, "502": Overloaded, "503": Overloaded, "529": Overloaded,
    "timeout_error": TimedOut, "timeout": TimedOut, "504": TimedOut, "408": TimedOut,
}


def fault_of(error: Any, upstream: Upstream) -> GatewayError:
    """The error that a service's own error stands for, by its type or its code; quoted without our secrets."""
    marks = [str(error.get(field)) for field in ("type", "code", "status")] if isinstance(error, dict) else []
    kind = next((KINDS[mark] for mark in marks if mark in KINDS), BackendFailed)
    words = upstream.quoted(words_of({"error": error}).encode(errors="replace")) or "no reason was given"
    return kind(f"{upstream.name} broke off: {words}")
