"""A connection that breaks, hangs, or is left: what came before is heard, and nothing is taken for more than it was."""

import asyncio

import pytest

from gateway.client.transport.http1_connection import MAX_RESPONSE_HEAD_BYTES, MAX_UNREAD_BYTES
from gateway.errors import BackendFailed, ConnectionLost, GatewayError, TimedOut
from tests.support.client.byte_server import chunk, head
from tests.support.client.open_connection import CHUNKED, COUNTED, TALK, ManualLoop, OpenConnection
from tests.support.gateway_server import until


async def failure(*pieces: bytes, loses: bool = False) -> GatewayError:
    ends = OpenConnection()
    for piece in pieces:
        ends.wire.data_received(piece)
    if loses:
        ends.wire.connection_lost(ConnectionResetError())
    with pytest.raises(GatewayError) as caught:
        await ends.heard()
    ends.wire.finish()
    assert not ends.rested and not ends.wire.is_open
    return caught.value


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH_9.2\r\n", head() + b"not a length\r\n", b"\0" * 100])
async def test_what_is_no_http(answer: bytes) -> None:
    error = await failure(answer)
    assert isinstance(error, ConnectionLost) and "not HTTP" in error.message


@pytest.mark.parametrize("before", [b"", CHUNKED[:20], CHUNKED[:-5], COUNTED[:-3], b"HTTP/1.1 200 OK\r\n\r\nda"])
async def test_a_connection_that_breaks(before: bytes) -> None:
    assert isinstance(await failure(*([before] if before else []), loses=True), ConnectionLost)


async def test_what_came_before_a_break_is_heard() -> None:
    ends = OpenConnection()
    ends.wire.data_received(CHUNKED[:-5])
    ends.wire.connection_lost(None)
    await ends.wire.read_head()
    assert await ends.wire.read_body() == TALK
    with pytest.raises(ConnectionLost):
        await ends.wire.read_body()


async def test_a_head_without_end() -> None:
    error = await failure(
        b"HTTP/1.1 200 OK\r\n", *[b"X-More: " + b"x" * 4000 + b"\r\n"] * (MAX_RESPONSE_HEAD_BYTES // 4000 + 1)
    )
    assert isinstance(error, BackendFailed) and "head of more than" in error.message


async def test_an_encoding_that_nobody_asked_for() -> None:
    error = await failure(head(Content_Encoding="br") + chunk(b"\x0b\x02\x80"))
    assert "'br'" in error.message
    assert "malformed" in (await failure(head(Content_Encoding="gzip") + chunk(b"this is no gzip at all"))).message


@pytest.mark.parametrize(("patience", "before", "words"), [
    ({"first": 0.02}, b"", "sent nothing for"),
    ({"first": 0.02}, head(), "sent nothing for"),
    ({"idle": 0.02}, head() + chunk(TALK), "sent nothing for"),
    ({"total": 0.02}, head() + chunk(TALK), "longer than 0.02 seconds in all"),
], ids=["head", "body", "pause", "total"])
async def test_every_wait_has_an_end(patience: dict[str, float], before: bytes, words: str) -> None:
    ends = OpenConnection(**patience)
    if before:
        ends.wire.data_received(before)
    with pytest.raises(TimedOut, match=words):
        await asyncio.wait_for(ends.heard(), 30)
    assert ends.line.is_cut


async def test_who_takes_nothing_is_sent_nothing_more() -> None:
    ends = OpenConnection()
    ends.wire.data_received(head())
    sent = 0
    while not ends.line.is_paused:
        ends.wire.data_received(chunk(b"x" * 10_000))
        sent += 10_000
        assert sent < 2 * MAX_UNREAD_BYTES
    assert len(await ends.wire.read_body()) == sent
    assert not ends.line.is_paused


async def test_who_sends_much_that_is_no_body_is_not_listened_to() -> None:
    """Else a trailer, or what is written beside the length of a chunk, could go on without end."""
    for endless in (b"1;" + b"x" * 2 * MAX_UNREAD_BYTES, b"0\r\n" + b"X-More: x\r\n" * MAX_UNREAD_BYTES):
        error = await failure(head(), *(endless[at:at + 65536] for at in range(0, len(endless), 65536)))
        assert isinstance(error, BackendFailed) and "outside of a body" in error.message


async def test_what_a_timeout_has_cut_is_never_whole() -> None:
    """Also where only the end of the connection tells that an answer is whole, and nobody waits when time is up."""
    ends = OpenConnection(total=0.02)
    ends.wire.data_received(b"HTTP/1.1 200 OK\r\n\r\nhalf of it")
    await until(lambda: ends.line.is_cut)
    ends.wire.connection_lost(None)
    await ends.wire.read_head()
    assert await ends.wire.read_body() == b"half of it"
    with pytest.raises(TimedOut):
        await ends.wire.read_body()


@pytest.mark.parametrize("before", [b"", head(), head() + chunk(TALK), b"HTTP/1.1 200 OK\r\n\r\nhalf of it"])
async def test_a_wire_that_is_closed_under_somebody_who_waits(before: bytes) -> None:
    ends = OpenConnection()
    hearing = asyncio.ensure_future(ends.heard())
    if before:
        ends.wire.data_received(before)
    await asyncio.sleep(0)
    ends.wire.close()
    ends.wire.connection_lost(None)
    with pytest.raises(ConnectionLost, match="was closed before the end of the response"):
        await asyncio.wait_for(hearing, 30)
    ends.wire.finish()
    assert ends.lost == {ends.wire} and not ends.rested


async def test_who_has_nothing_more_to_say_has_left() -> None:
    """It may still listen; we have nothing more to tell it."""
    ends = OpenConnection()
    ends.wire.eof_received()
    with pytest.raises(ConnectionLost):
        await ends.heard()
    ends = OpenConnection()
    ends.wire.data_received(b"HTTP/1.1 200 OK\r\n\r\n" + TALK)
    ends.wire.eof_received()
    assert await ends.heard() == TALK
    ends.wire.finish()
    assert ends.line.is_cut and not ends.rested and ends.lost == {ends.wire}


# -- requests that take their time ------------------------------------------------------------------------------------

async def test_an_answer_that_comes_before_all_was_asked() -> None:
    """The rest of the request would be the beginning of the next."""
    ends = OpenConnection()
    ends.wire.pause_writing()
    ends.wire.data_received(b"HTTP/1.1 413 Too Much\r\nContent-Length: 2\r\n\r\nno")
    assert (await ends.heard(), ends.wire.status) == (b"no", 413)
    ends.wire.finish()
    assert ends.line.is_cut and not ends.rested


def slowly(clock: ManualLoop, **patience: float) -> OpenConnection:
    """A request of which nine bytes cannot be sent at once."""
    ends = OpenConnection(clock)
    ends.line.unsent = 9
    ends.ask(**patience)
    return ends


async def test_a_request_that_gets_on_is_waited_for() -> None:
    clock = ManualLoop()
    ends = slowly(clock, first=5.0, total=100.0)
    hearing = asyncio.ensure_future(ends.heard())
    for left in range(8, 0, -1):
        ends.line.unsent = left
        await clock.pass_by(5.0)
        assert not hearing.done()
    ends.line.unsent = 0
    await clock.pass_by(4.0)
    ends.wire.resume_writing()
    await clock.pass_by(4.0)
    assert not hearing.done(), "only now the answer is waited for"
    ends.wire.data_received(COUNTED)
    assert await hearing == TALK


async def test_once_a_request_is_sent_its_answer_is_waited_for_no_longer_than_any() -> None:
    clock = ManualLoop()
    ends = slowly(clock, first=5.0, total=100.0)
    hearing = asyncio.ensure_future(ends.heard())
    await clock.pass_by(1.0)
    ends.line.unsent = 0
    ends.wire.resume_writing()
    await clock.pass_by(4.0)
    assert not hearing.done()
    await clock.pass_by(1.0)
    with pytest.raises(TimedOut, match="sent nothing for 5 seconds"):
        await asyncio.wait_for(hearing, 30)


async def test_a_request_is_not_waited_for_without_end() -> None:
    clock = ManualLoop()
    ends = slowly(clock, first=5.0, total=11.0)
    hearing = asyncio.ensure_future(ends.heard())
    for left in (8, 7, 6):
        ends.line.unsent = left
        await clock.pass_by(5.0)
    with pytest.raises(TimedOut, match="longer than 11 seconds in all"):
        await asyncio.wait_for(hearing, 30)


@pytest.mark.parametrize("unsent", [0, 9])
async def test_a_request_that_does_not_get_on_is_not_waited_for(unsent: int) -> None:
    ends = OpenConnection()
    ends.line.unsent = unsent
    ends.ask(first=0.02)
    with pytest.raises(TimedOut, match="sent nothing for"):
        await asyncio.wait_for(ends.heard(), 30)
