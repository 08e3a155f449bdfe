"""Blade as a server: messages of clients become commands, records become frames, over Socket.IO and REST."""

from .inbound import MESSAGES, recorded_commands
from .projector import CUES, NAMES, make_projector
from .stream_options import StreamOptions, socket_options

__all__ = [
    "CUES",
    "MESSAGES",
    "NAMES",
    "StreamOptions",
    "make_projector",
    "recorded_commands",
    "socket_options",
]
