"""Frames that nobody expects, for both kinds of sockets, and bytes that are no HTTP."""

import re
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import adapters

from .values import KnownIds, ValueMaker

METHOD = re.compile(r'"((?:chat|session|turn|tool|agent|terminal|user|fork|answer)[.:][a-z_.:]+)"')


def methods_of(dialect: str) -> list[str]:
    """Words such as chat.send or chat:send that stand in quotes in a dialect's code."""
    files = Path(adapters.__path__[0], dialect).rglob("*.py")
    return sorted({word for file in files for word in METHOD.findall(file.read_text())})


class FrameMaker:
    """Makes the frame of each number: JSON with a method, or a packet of Socket.IO with an event."""

    def __init__(self, schemas: Sequence[dict[str, Any]], known: KnownIds, methods: Sequence[str]) -> None:
        self._schemas = schemas
        self._known = known
        self._methods = methods

    def request(self, chance: Random) -> bytes:
        """A frame of a socket that takes JSON."""
        values = ValueMaker(chance, self._known)
        frame: Any = {"type": "req", "id": values.word()[:50], "method": chance.choice(self._methods),
                      "params": self._params(values)}
        if chance.random() < 0.3:
            frame = values.spoiled(frame)
        return values.encoded(frame)

    def packet(self, chance: Random) -> str | bytes:
        """A packet of Engine.IO, most of them events."""
        values, kind = ValueMaker(chance, self._known), chance.random()
        if kind < 0.75:
            number = chance.choice(("", "", "7", "9" * 120, "²"))
            place = chance.choice(("", "", "", "/other,", "/,", "/?a=b,"))
            event: Any = [chance.choice(self._methods), self._params(values)]
            if chance.random() < 0.3:
                event = values.spoiled(event)
            return f"42{place}{number}" + values.encoded(event).decode(errors="replace")
        if kind < 0.9:
            return chance.choice((
                "", "4", "40", "41", "42", "43", "44", "451-[]", "461-", "49", "2", "3", "2probe", "5", "6", "7", "8",
                "9", "0", "b", "b4AA==", "bé", "٣", "²", "x", "40{", '40{"token":1}', "40/other,", "4" + "2" * 5000,
                "429{}", '43[]', '431', '42["connect"]', '42["disconnect",1]', '42[null]', '42{"0":1}', '42"a"',
                "421", "1",
            ))
        return chance.randbytes(chance.randrange(200))

    def _params(self, values: ValueMaker) -> Any:
        made = values.of(values.chance.choice(self._schemas))
        return values.spoiled(made) if values.chance.random() < 0.4 else made


def raw(chance: Random, port: int) -> bytes:
    """Bytes that a server of HTTP may be sent by anybody."""
    host = f"Host: 127.0.0.1:{port}\r\n".encode()
    whole = chance.choice((
        b"GET / HTTP/1.1\r\n" + host + b"\r\n",
        b"POST /aap/sessions HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"POST /aap/sessions HTTP/1.1\r\n" + host + b"Content-Length: 2\r\n\r\n{}",
        b"POST /aap/sessions HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /api/v1/ws/chat HTTP/1.1\r\n" + host + b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        b"\x81\x85maskhello\x88\x80mask",
        b"GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\n" + host + b"Upgrade: websocket\r\n"
        b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        b"\x81\x82mask\x59\x51\xff\xfe\x8a\x80mask",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\r\n" * 20, b"\x00" * 50,
        b"GET " + b"/" * 9000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n",
        b"GET http://[/ HTTP/1.1\r\n" + host + b"\r\n", b"GET //[::1 HTTP/1.1\r\n" + host + b"\r\n",
        b"CONNECT a:1 HTTP/1.1\r\n\r\n", b"OPTIONS * HTTP/1.1\r\n" + host + b"\r\n",
    ))
    for _ in range(chance.randrange(3)):
        at = chance.randrange(len(whole) + 1)
        whole = whole[:at] + chance.randbytes(chance.randrange(4)) + whole[at + chance.randrange(6):]
    return whole
