"""Several servers as one: leases, calls between servers, and streams of sessions that another server holds."""

from .session_service import ClusterSessionService

__all__ = [
    "ClusterSessionService",
]
