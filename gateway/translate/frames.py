"""From the text of a socket's frame, or of a line, to what it says: JSON, Socket.IO events and their packets."""

import re
from typing import Any

import orjson

from gateway.model import exact_json
from gateway.upstream import Frame

PACKET = re.compile(r"42(?:/[^,\[]*,)?\d*(?=\[)")
"""How an event of Socket.IO begins on the wire: its kind, perhaps a namespace, perhaps the number of a receipt."""
CONTROL = re.compile(r"[0-6].*", re.DOTALL)
"""Everything else that such a connection carries: openings, pings, receipts, farewells."""
SEPARATOR = "\x1e"
"""Stands between packets that came with one answer."""
ENVELOPE = frozenset(("event", "data", "id"))


class NotAFrame(Exception):
    """This text is nothing that a server of any dialect says."""


def frames_of(text: str) -> list[Frame]:
    """All that one text says; nothing for what only keeps a connection alive."""
    return [frame for packet in text.split(SEPARATOR) if (frame := _frame_of(packet.strip())) is not None]


def _frame_of(text: str) -> Frame | None:
    if not text:
        return None
    packet = PACKET.match(text)
    if packet is not None:
        return frame_of(parsed(text[packet.end():]))
    if text[0] not in "{[" and CONTROL.fullmatch(text):
        return None
    return frame_of(parsed(text))


def frame_of(said: Any) -> Frame:
    """A frame by its name: `["name", body]`, `{"event": name, "data": body}`, or an object that says it inside."""
    if isinstance(said, list) and said and isinstance(said[0], str):
        return Frame(said[0], said[1] if len(said) > 1 else None)
    if not isinstance(said, dict):
        raise NotAFrame("this is no frame: neither an object nor an event of Socket.IO")
    name = said.get("event", said.get("type"))
    if isinstance(name, str) and "data" in said and "event" in said and said.keys() <= ENVELOPE:
        return Frame(name, said["data"], str(said.get("id") or ""))
    return Frame(name if isinstance(name, str) else "", said)


def parsed(text: str | bytes) -> Any:
    try:
        return exact_json(text)
    except orjson.JSONDecodeError as error:
        raise NotAFrame(f"this is not JSON: {error}") from None
