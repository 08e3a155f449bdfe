"""CAS as a server: events of clients become commands, records become events of streams and lists."""

from .inbound import recorded_commands
from .projector import CUES, NAMES, make_projector

__all__ = [
    "CUES",
    "NAMES",
    "make_projector",
    "recorded_commands",
]
