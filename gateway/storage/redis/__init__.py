"""One Redis server that many of ours share."""

from .address import Address
from .line import Command, Line, Refusal
from .listener import Listener
from .reaching import Unreachable
from .store import LEASE, Redis, Reset
from .tokens import RedisTokens

__all__ = [
    "LEASE", "Address", "Command", "Line", "Listener", "Redis", "RedisTokens", "Refusal", "Reset", "Unreachable",
]
