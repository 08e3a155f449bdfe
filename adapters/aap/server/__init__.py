"""AAP as a server: messages of clients become commands, records become frames, and the routes of both."""

from .inbound import MESSAGES, recorded_commands
from .projector import CUES, make_projector
from .stream_options import StreamOptions

__all__ = [
    "CUES",
    "MESSAGES",
    "StreamOptions",
    "make_projector",
    "recorded_commands",
]
