"""What dialects share beside conversations."""

from .keys import Key, KeyStore

__all__ = ["Key", "KeyStore"]
