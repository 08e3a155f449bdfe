"""Socket.IO on top of python-socketio: connected clients, handshakes, and what the library must not do."""

from .client import SocketIOClient
from .server import DeferredAck, SocketIOServer

__all__ = [
    "DeferredAck",
    "SocketIOClient",
    "SocketIOServer",
]
