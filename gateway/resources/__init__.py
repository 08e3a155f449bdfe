"""What dialects share beside conversations: one store, several projections."""

from .keys import Key, KeyStore
from .memory import MemoryResources

__all__ = ["Key", "KeyStore", "MemoryResources"]
