"""Packets of Socket.IO in a recording: connections put together from polling and WebSockets."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from conformance.kit.socketio import PATH
from conformance.offline.recording import Exchange, Recording

PACKET = re.compile(r"4([0-6])(?:/[^,\[{]*,)?(\d*)(.*)$", re.S)


@dataclass(frozen=True)
class Packet:
    """One event, acknowledgement or handshake that crossed the wire."""

    place: str
    order: int
    at: float
    is_sent: bool
    kind: str
    name: str
    body: Any
    ack: str


@dataclass
class Link:
    """One connection, whatever transports it used."""

    exchange: Exchange
    opened: Any = None
    packets: list[Packet] = field(default_factory=list)

    def sent(self, *names: str) -> list[Packet]:
        return [it for it in self.packets if it.is_sent and it.kind == "2" and it.name in names]

    def heard(self, *names: str) -> list[Packet]:
        found = [it for it in self.packets if not it.is_sent and it.kind == "2"]
        return [it for it in found if not names or it.name in names]

    def acknowledgement(self, sent: Packet) -> Packet | None:
        """What the server acknowledged the event with, if it did."""
        acks = (it for it in self.packets if not it.is_sent and it.kind == "3" and it.ack == sent.ack != "")
        return next(acks, None)


def links(recording: Recording) -> list[Link]:
    """The connections of a recording, each with its packets in order."""
    found: dict[str, Link] = {}
    for item in recording.exchanges:
        if item.path.rstrip("/") != PATH.rstrip("/") or item.status is None:
            continue
        texts = list(_texts(item))
        opened = next((_loaded(text[1:]) for _, _, _, is_sent, text in texts if text[:2] == "0{" and not is_sent), None)
        name = item.param("sid") or (opened or {}).get("sid") or f"exchange {item.number}"
        link = found.setdefault(str(name), Link(item))
        link.opened = link.opened or opened
        link.packets += [packet for packet in map(_packet, texts) if packet is not None]
    for link in found.values():
        link.packets.sort(key=lambda packet: packet.order)
    return list(found.values())


def _texts(item: Exchange) -> Iterator[tuple[str, int, float, bool, str]]:
    for frame in item.frames:
        yield frame.place, frame.order, frame.at, frame.is_sent, frame.text or ""
    if item.is_socket:
        return
    if item.body:
        for text in item.body.decode("utf-8", "replace").split("\x1e"):
            yield item.place, item.order, item.at, True, text
    if item.method == "GET" and item.status == 200:
        for piece in item.pieces[-1:]:
            for text in item.reply.text.split("\x1e"):
                yield piece.place, piece.order, piece.at, False, text


def _packet(told: tuple[str, int, float, bool, str]) -> Packet | None:
    place, order, at, is_sent, text = told
    match = PACKET.match(text)
    if match is None:
        return None
    kind, ack, body = match[1], match[2], _loaded(match[3])
    if kind == "2" and isinstance(body, list) and body:
        return Packet(place, order, at, is_sent, kind, str(body[0]), body[1] if len(body) > 1 else None, ack)
    if kind == "3":
        return Packet(place, order, at, is_sent, kind, "", body[0] if isinstance(body, list) and body else None, ack)
    return Packet(place, order, at, is_sent, kind, "", body, ack) if kind in "014" else None


def _loaded(text: str) -> Any:
    try:
        return orjson.loads(text or "null")
    except orjson.JSONDecodeError:
        return None
