"""WebSockets of the load client as bytes: the request that opens one, and the frames of a client."""

import base64
import json
import os
import struct


def upgrade(path: str) -> bytes:
    """The request that opens a WebSocket."""
    key = base64.b64encode(os.urandom(16)).decode()
    return (f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n").encode()


def text_frame(text: str) -> bytes:
    """A frame of a client; its mask is zero."""
    body = text.encode()
    if len(body) > 65535:
        raise ValueError("a frame of a watcher is short")
    size = struct.pack("!BB", 0x81, 0x80 | len(body)) if len(body) < 126 else struct.pack("!BBH", 0x81, 0xFE, len(body))
    return size + b"\0\0\0\0" + body


def json_frame(value: object) -> bytes:
    return text_frame(json.dumps(value))
