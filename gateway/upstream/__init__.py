"""Other people's servers: how they are reached and read, and how what they say becomes lawful events."""

from .http import Cut, Patience, Unreachable, Upstream
from .remote import Asked, Ended, Frame, Heard, Hearing, Opening, Remote, RemoteAddress
from .secrets import hidden
from .sse import Decoder, SseEvent

__all__ = [
    "Asked",
    "Cut",
    "Decoder",
    "Ended",
    "Frame",
    "Heard",
    "Hearing",
    "Opening",
    "Patience",
    "Remote",
    "RemoteAddress",
    "SseEvent",
    "Unreachable",
    "Upstream",
    "hidden",
]
