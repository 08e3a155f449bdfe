"""Several servers as one: leases, calls between servers, and streams of sessions that another server writes.

`session_service.py` shows the parts, and the order in which they are constructed.
"""

from .session_service import ClusterSessionService, cluster_session_service

__all__ = [
    "ClusterSessionService",
    "cluster_session_service",
]
