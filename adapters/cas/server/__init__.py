"""CAS as a server: events of clients become commands, records become events of streams and lists."""

from .inbound import MESSAGES, recorded_commands
from .projector import CUES, NAMES, make_projector
from .stream_options import StreamOptions, usual_stream_options

__all__ = [
    "CUES",
    "MESSAGES",
    "NAMES",
    "StreamOptions",
    "make_projector",
    "recorded_commands",
    "usual_stream_options",
]
