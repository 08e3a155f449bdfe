"""AAP as a server: messages of clients become commands, records become frames, and the routes of both."""

from .inbound import recorded_commands
from .projector import CUES, make_projector
from .stream_options import StreamOptions
from .views import OBJECTS

__all__ = [
    "CUES",
    "OBJECTS",
    "StreamOptions",
    "make_projector",
    "recorded_commands",
]
