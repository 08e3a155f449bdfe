"""Several servers as one: leases, calls between servers, and streams of sessions that another server writes.

`session_service.py` shows the parts, and the order in which they are constructed.
"""

from .overview import ClusterView, ReplicaView, ask_to_drain, encode_view, find_replica, read_cluster
from .session_service import ClusterSessionService, cluster_session_service

__all__ = [
    "ClusterSessionService",
    "ClusterView",
    "ReplicaView",
    "ask_to_drain",
    "cluster_session_service",
    "encode_view",
    "find_replica",
    "read_cluster",
]
