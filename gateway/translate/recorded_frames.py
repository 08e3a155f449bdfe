"""The items of a recording, and the parsing of socket frames: JSON, and packets of Socket.IO."""

import re

import orjson
from msgspec import Struct

import gateway.model as m
from gateway.errors import Invalid
from gateway.json_values import read_exact_json
from gateway.ports import ParsedFrame

PACKET = re.compile(r"42(?:/[^,\[]*,)?\d*(?=\[)")
"""The beginning of a Socket.IO event: its kind, an optional namespace, and an optional number for the ack."""
CONTROL_PACKET = re.compile(r"[0-6].*", re.DOTALL)
"""The other packets of such a connection: connects, pings, acks, disconnects."""
SEPARATOR = "\x1e"
"""The separator of packets in one response."""
ENVELOPE_FIELDS = frozenset(("event", "data", "id"))


class InvalidFrame(Exception):
    """The text is no frame of any dialect."""


def parse_frames(text: str) -> list[ParsedFrame]:
    """The frames in one text; empty for packets that only keep a connection open."""
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


def to_frame(value: object) -> ParsedFrame:
    """A frame with its name: `["name", body]`, `{"event": name, "data": body}`, or an object that contains its name."""
    if isinstance(value, list) and value and isinstance(value[0], str):
        return ParsedFrame(value[0], value[1] if len(value) > 1 else None)
    if not isinstance(value, dict):
        raise InvalidFrame("this is no frame: neither an object nor an event of Socket.IO")
    name = value.get("event", value.get("type"))
    if isinstance(name, str) and "data" in value and "event" in value and value.keys() <= ENVELOPE_FIELDS:
        return ParsedFrame(name, value["data"], str(value.get("id") or ""))
    return ParsedFrame(name if isinstance(name, str) else "", value)


def parse_json(text: str | bytes) -> object:
    try:
        return read_exact_json(text)
    except orjson.JSONDecodeError as error:
        raise InvalidFrame(f"this is not JSON: {error}") from None


class RecordedItem(Struct, frozen=True, kw_only=True):
    """An item of a recording: its line, its time if known, and its stream."""

    line: int
    at: float | None = None
    stream: str = ""


class ServerFrame(RecordedItem, frozen=True, kw_only=True):
    """A frame of the server."""

    frame: ParsedFrame
    connection: str = ""
    """The name of the connection that begins here; it may repeat frames of an earlier connection of that name."""


class ClientFrame(RecordedItem, frozen=True, kw_only=True):
    """A frame of the client on a socket, or the body of a request, which is named `METHOD /path`."""

    frame: ParsedFrame


class ResponseBody(RecordedItem, frozen=True, kw_only=True):
    """The body of a response that is no stream; it shows at least which session the stream belongs to."""

    frame: ParsedFrame


class RejectedRequest(RecordedItem, frozen=True, kw_only=True):
    """The server has rejected the client's last frame of this stream."""


class StoredRecord(RecordedItem, frozen=True, kw_only=True):
    """A record of a log."""

    record: m.Record


AnyRecordedItem = ServerFrame | ClientFrame | ResponseBody | RejectedRequest | StoredRecord


class UnreadableRecording(Invalid):
    """The recording cannot be read from this line on."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
