"""ZenFlux as a client: frames of a server become events, and the server is called over a socket and REST."""

from .decoder import Decoder
from .past_resources import PastResources
from .past_sessions import PastSessions
from .remote import Remote

__all__ = [
    "Decoder",
    "PastResources",
    "PastSessions",
    "Remote",
]
