"""Socket.IO on its way through the proxy: one link per Engine.IO session, whether it polls or has a WebSocket."""

import re
from collections.abc import Iterable

import orjson

from conformance.faults.proxy.interceptor import LINK, Interceptor, PassedMessage, StreamInterceptor, parsed

SEPARATOR = "\x1e"
NOTHING = "6"
PACKET = re.compile(r"(?P<head>4[0-46])(?P<space>/[^,]*,)?(?P<ack>\d+)?(?P<rest>[\[{].*)?", re.DOTALL)
KINDS = {"40": "connect", "41": "disconnect", "44": "refused"}


class Link:
    """The packets of one connection."""

    def __init__(self, interceptor: Interceptor) -> None:
        self._interceptor = interceptor
        self._stream: StreamInterceptor = interceptor.stream(LINK)
        self._asked: dict[str, str] = {}

    def received(self, text: str) -> None:
        """The client has sent a packet; what it asks to have acknowledged is remembered by its number."""
        found = PACKET.fullmatch(text)
        json = parsed(found["rest"] or "null") if found else ...
        if found is None or json is ...:
            return
        if found["head"] == "42" and isinstance(json, list) and found["ack"]:
            self._asked[found["ack"]] = str(json[0])
        self._interceptor.asked(json)

    def passed(self, text: str) -> Iterable[str]:
        """The packets that are passed on for this one of the server."""
        message = self._read(text)
        return (text,) if message is None else [packed(item) for item in self._stream.message(message)]

    def payload(self, text: str) -> str:
        """A polling payload; one that would be empty says nothing in due form."""
        packets = [packet for text in text.split(SEPARATOR) for packet in self.passed(text)]
        return SEPARATOR.join(packets) or NOTHING

    def _read(self, text: str) -> PassedMessage | None:
        if text.startswith("0{"):
            return PassedMessage(LINK, "open", parsed(text[1:]), text.encode(), "0")
        found = PACKET.fullmatch(text)
        json = parsed(found["rest"] or "null") if found else ...
        if found is None or json is ...:
            return None
        label = text[: found.start("rest")] if found["rest"] else text
        if found["head"] == "42" and isinstance(json, list) and json:
            return PassedMessage(LINK, str(json[0]), json[1] if len(json) == 2 else json[1:], text.encode(), label)
        if found["head"] == "43" and isinstance(json, list):
            name = f"ack {self._asked.get(found['ack'] or '', '?')}"
            return PassedMessage(LINK, name, json[0] if len(json) == 1 else json, text.encode(), label)
        return PassedMessage(LINK, KINDS.get(found["head"], found["head"]), json, text.encode(), label)


def packed(message: PassedMessage) -> str:
    """The packet; the text it came in if nothing was changed."""
    if message.raw is not None:
        return message.raw.decode()
    match message.label[:2]:
        case "42":
            body = [message.name, message.json]
        case "43":
            body = [message.json]
        case _:
            body = message.json
    return message.label + orjson.dumps(body).decode()
