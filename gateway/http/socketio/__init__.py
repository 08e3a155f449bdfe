"""Socket.IO on top of python-socketio: connected clients, handshakes, and what the library must not do.

Dialects that use it import it; a server of other dialects does not load the library.
"""

from gateway.hidden_modules import hidden_modules

with hidden_modules("redis", "valkey", "kafka", "kombu", "aio_pika", "zmq"):
    import socketio as _library  # type: ignore[import-untyped]  # noqa: F401  # its brokers are not used

from .client import SocketIOClient
from .server import DeferredAck, SocketIOServer

__all__ = [
    "DeferredAck",
    "SocketIOClient",
    "SocketIOServer",
]
