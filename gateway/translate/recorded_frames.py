"""From the text of a socket's frame, or of a line, to what it says: JSON, Socket.IO events and their packets.

What can be read out of recorded streams, piece by piece, each with the place it stands at.
"""

import re
from typing import Any

import orjson
from msgspec import Struct

import gateway.model as m
from gateway.errors import Invalid
from gateway.json_values import read_exact_json
from gateway.ports import ParsedFrame

PACKET = re.compile(r"42(?:/[^,\[]*,)?\d*(?=\[)")
"""How an event of Socket.IO begins on the wire: its kind, perhaps a namespace, perhaps the number of a receipt."""
CONTROL_PACKET = re.compile(r"[0-6].*", re.DOTALL)
"""Everything else that such a connection carries: openings, pings, receipts, farewells."""
SEPARATOR = "\x1e"
"""Stands between packets that came with one answer."""
ENVELOPE_FIELDS = frozenset(("event", "data", "id"))


class InvalidFrame(Exception):
    """This text is nothing that a server of any dialect says."""


def parse_frames(text: str) -> list[ParsedFrame]:
    """All that one text says; nothing for what only keeps a connection alive."""
    return [frame for packet in text.split(SEPARATOR) if (frame := _parse_packet(packet.strip())) is not None]


def _parse_packet(text: str) -> ParsedFrame | None:
    if not text:
        return None
    packet = PACKET.match(text)
    if packet is not None:
        return to_frame(parse_json(text[packet.end():]))
    if text[0] not in "{[" and CONTROL_PACKET.fullmatch(text):
        return None
    return to_frame(parse_json(text))


def to_frame(said: Any) -> ParsedFrame:
    """A frame by its name: `["name", body]`, `{"event": name, "data": body}`, or an object that says it inside."""
    if isinstance(said, list) and said and isinstance(said[0], str):
        return ParsedFrame(said[0], said[1] if len(said) > 1 else None)
    if not isinstance(said, dict):
        raise InvalidFrame("this is no frame: neither an object nor an event of Socket.IO")
    name = said.get("event", said.get("type"))
    if isinstance(name, str) and "data" in said and "event" in said and said.keys() <= ENVELOPE_FIELDS:
        return ParsedFrame(name, said["data"], str(said.get("id") or ""))
    return ParsedFrame(name if isinstance(name, str) else "", said)


def parse_json(text: str | bytes) -> Any:
    try:
        return read_exact_json(text)
    except orjson.JSONDecodeError as error:
        raise InvalidFrame(f"this is not JSON: {error}") from None


class RecordedItem(Struct, frozen=True, kw_only=True):
    """Something that was recorded: in which line, when (if that is known), and on which stream."""

    line: int
    at: float | None = None
    stream: str = ""


class ServerFrame(RecordedItem, frozen=True, kw_only=True):
    """The server said this."""

    frame: ParsedFrame
    connection: str = ""
    """The name of the connection that begins here: what follows may have been told before on another of this name."""


class ClientFrame(RecordedItem, frozen=True, kw_only=True):
    """The client said this: a frame on a socket, or the body of a request, which is named `METHOD /path`."""

    frame: ParsedFrame


class ResponseBody(RecordedItem, frozen=True, kw_only=True):
    """The server answered a request, not on a stream; what it says tells at least which session it is about."""

    frame: ParsedFrame


class RejectedRequest(RecordedItem, frozen=True, kw_only=True):
    """What the client sent last on this stream was not taken."""


class StoredRecord(RecordedItem, frozen=True, kw_only=True):
    """A record, as a log keeps it."""

    record: m.Record


AnyRecordedItem = ServerFrame | ClientFrame | ResponseBody | RejectedRequest | StoredRecord


class UnreadableRecording(Invalid):
    """What was recorded cannot be read from this line on."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
