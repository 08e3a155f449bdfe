"""Other people's servers: how they are reached and read, and how what they say becomes lawful events."""

from .address_policy import AddressPolicy, AddressRefused, GuardedResolver
from .complaints import words_of
from .failures import Cut, Unreachable
from .halves import mended, mending
from .http import LARGEST, Upstream
from .patience import LONGEST_WAIT, Patience
from .remote import Asked, Ended, Frame, Heard, Hearing, Opening, Remote, RemoteAddress, RemoteSession, moment
from .secrets import BLOT, SHORTEST, hidden, unmistakable
from .sse import Decoder, SseEvent
from .wire import Wire

__all__ = [
    "BLOT",
    "LARGEST",
    "LONGEST_WAIT",
    "SHORTEST",
    "AddressPolicy",
    "AddressRefused",
    "Asked",
    "Cut",
    "Decoder",
    "Ended",
    "Frame",
    "GuardedResolver",
    "Heard",
    "Hearing",
    "Opening",
    "Patience",
    "Remote",
    "RemoteAddress",
    "RemoteSession",
    "SseEvent",
    "Unreachable",
    "Upstream",
    "Wire",
    "hidden",
    "mended",
    "mending",
    "moment",
    "unmistakable",
    "words_of",
]
