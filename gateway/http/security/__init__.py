"""Who may connect, from where, as whom, and how often."""

from .allow_list import AllowList
from .auth import (
    CALLER,
    OPEN_REQUEST,
    OWNER,
    REVOKED_MESSAGE,
    Authenticator,
    Handler,
    OpenRequest,
    OpenRequests,
    bearer_token,
    current_caller,
    set_current_caller,
)
from .connection_limits import (
    CONNECTION_LIMITS,
    GetConnectionLimits,
    LimitedAppRunner,
    UnauthenticatedClients,
    client_network_of,
    connection_of,
    mark_authenticated,
)
from .origin_policy import OriginPolicy, add_cors_headers
from .rate_limits import WRONG_KEY_LIMITER, RateLimiter, WrongKeyLimiter, retry_after_seconds
from .route_policy import accepts_any_content_type, admins_only, mark, policy_of, public
from .trusted_proxies import TrustedProxies

__all__ = [
    "CALLER",
    "CONNECTION_LIMITS",
    "OPEN_REQUEST",
    "OWNER",
    "REVOKED_MESSAGE",
    "WRONG_KEY_LIMITER",
    "AllowList",
    "Authenticator",
    "GetConnectionLimits",
    "Handler",
    "LimitedAppRunner",
    "OpenRequest",
    "OpenRequests",
    "OriginPolicy",
    "RateLimiter",
    "TrustedProxies",
    "UnauthenticatedClients",
    "WrongKeyLimiter",
    "accepts_any_content_type",
    "add_cors_headers",
    "admins_only",
    "bearer_token",
    "client_network_of",
    "connection_of",
    "current_caller",
    "mark",
    "mark_authenticated",
    "policy_of",
    "public",
    "retry_after_seconds",
    "set_current_caller",
]
