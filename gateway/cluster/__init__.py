"""Many servers as one: sessions are held by leases, and whatever only their holder can do is passed on to it."""

from .sessions import ClusterSessions

__all__ = ["ClusterSessions"]
