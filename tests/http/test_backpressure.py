"""How clients are parted with: in words and codes that say whether to come again, and without much in the system."""

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.http.backpressure import (
    BATCH_FRAMES,
    KERNEL_TIMEOUT_FACTOR,
    MAX_UNSENT_BYTES,
    frame_batches,
    limit_send_buffers,
    sse_farewell,
    websocket_close_reason,
)


def over(cut_at: int | None = None, *, leaving: bool = False) -> Any:
    return SimpleNamespace(cut_at=cut_at, is_draining=leaving)


@pytest.mark.parametrize(("subscription", "code", "words"), [
    (over(leaving=True), 1012, "reconnect"), (over(7), 1013, "reconnect"), (over(), 1011, "deleted"),
])
def test_a_socket_is_closed_with_a_code_that_tells_why(subscription: Any, code: int, words: str) -> None:
    told = websocket_close_reason(subscription)
    assert told[0] == code
    assert words in told[1].decode()
    assert len(told[1]) <= 123, "more does not fit into a close frame"


def test_a_stream_ends_with_when_to_come_again() -> None:
    for subscription in (over(leaving=True), over(7)):
        first, second, *rest = sse_farewell(subscription).split(b"\n")
        assert first == b"retry: 1000"
        assert second.startswith(b": ")
        assert rest == [b"", b""], "no event comes of it"
    assert sse_farewell(over()) == b""


@pytest.mark.parametrize("count", [0, 1, BATCH_FRAMES, BATCH_FRAMES + 1, 3 * BATCH_FRAMES])
def test_much_is_told_in_portions(count: int) -> None:
    frames = [b"%d" % number for number in range(count)]
    parts = list(frame_batches(frames))
    assert [frame for part in parts for frame in part] == frames
    assert all(len(part) <= BATCH_FRAMES for part in parts)
    assert parts, "there is always a last one"


def test_whoever_comes_in_has_what_the_door_was_given() -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        limit_send_buffers([door], 1.5)
        with socket.create_connection(door.getsockname()), door.accept()[0] as wire:
            assert wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT) == MAX_UNSENT_BYTES
            assert wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == KERNEL_TIMEOUT_FACTOR * 1500
