"""Event streams on their way through the proxy."""

from collections.abc import AsyncIterator, Sequence

import pytest

from conformance.faults.proxy.interceptor import Cut, PassedMessage, StreamInterceptor, event_name, parsed
from conformance.faults.proxy.streams import Blocks, passed, read_block, written

STREAM = b': hello\n\nevent: one\ndata: {"a": 1}\n\nevent: two\nid: 7\ndata: {"b": "\xc3\xa4"}\n\n'


async def pieces(stream: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(stream), size):
        yield stream[start : start + size]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
async def test_an_undisturbed_stream_passes_byte_for_byte(size: int, end: bytes) -> None:
    stream = STREAM.replace(b"\n", end) + b"data: unfinished"
    assert b"".join([part async for part in passed(pieces(stream, size), StreamInterceptor())]) == stream


def test_a_block_ends_with_its_blank_line() -> None:
    blocks = Blocks()
    assert blocks.feed(b"data: 1\n") == []
    assert blocks.feed(b"\ndata: 2\n\nda") == [b"data: 1\n\n", b"data: 2\n\n"]
    assert blocks.left() == b"da"


def test_an_event_is_read_with_its_name_id_and_value() -> None:
    message = read_block(b'id: 7\nevent: two\ndata: {"b":1}\n\n')
    assert message is not None
    assert (message.name, message.label, message.id, message.place) == ("two", "two", "7", "sse two")
    assert message.json == {"b": 1}
    assert read_block(b": only a comment\n\n") is None


def test_a_changed_event_is_written_anew() -> None:
    message = read_block(b'id: 7\nevent: two\ndata: {"b":1}\n\n')
    assert message is not None
    assert written(message) == b'id: 7\nevent: two\ndata: {"b":1}\n\n'
    assert written(message.saying({"c": 2})) == b'event: two\nid: 7\ndata: {"c":2}\n\n'


@pytest.mark.parametrize(
    ("label", "json", "name"),
    [
        ("text_delta", {"type": "other"}, "text_delta"),
        ("message", {"type": "session_start"}, "session_start"),
        ("", {"type": "event", "event": "tick"}, "tick"),
        ("", {"type": "res"}, "res"),
        ("message", 7, "message"),
    ],
)
def test_an_event_is_named_by_its_transport_or_by_itself(label: str, json: object, name: str) -> None:
    assert event_name(label, json) == name


def test_what_is_not_json_is_said_to_be_none() -> None:
    assert parsed(b"{") is ...
    assert parsed("null") is None


class Losing(StreamInterceptor):
    """Loses `one`, says it again at the end, and writes in two pieces."""

    def message(self, message: PassedMessage) -> Sequence[PassedMessage]:
        return () if message.name == "one" else (message,)

    def ended(self) -> Sequence[PassedMessage]:
        return (PassedMessage("sse", "one", {"late": True}, label="one"),)

    def framed(self, block: bytes) -> Sequence[bytes]:
        return (block[:3], block[3:])


async def test_a_listener_decides_what_leaves() -> None:
    left = [part async for part in passed(pieces(STREAM, 5), Losing())]
    without = STREAM.replace(b'event: one\ndata: {"a": 1}\n\n', b"")
    assert b"".join(left) == without + b'event: one\ndata: {"late":true}\n\n'
    assert left[0] == b": h"


class Cutting(StreamInterceptor):
    """Breaks off at `two`."""

    def message(self, message: PassedMessage) -> Sequence[PassedMessage]:
        if message.name == "two":
            raise Cut
        return (message,)


async def test_a_cut_comes_before_the_event() -> None:
    left: list[bytes] = []
    leaving = passed(pieces(STREAM, 1000), Cutting())
    with pytest.raises(Cut):
        while True:
            left.append(await anext(leaving))
    assert b"".join(left) == b': hello\n\nevent: one\ndata: {"a": 1}\n\n'
