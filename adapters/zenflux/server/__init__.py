"""ZenFlux as a server: frames and requests of clients become commands, records become frames."""

from .inbound import MESSAGES, recorded_commands
from .projector import CUES, NAME_TYPES, NAMES, make_projector
from .stream_options import StreamOptions, socket_options

__all__ = [
    "CUES",
    "MESSAGES",
    "NAMES",
    "NAME_TYPES",
    "StreamOptions",
    "make_projector",
    "recorded_commands",
    "socket_options",
]
