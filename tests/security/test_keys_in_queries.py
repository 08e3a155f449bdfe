"""A key in a query, `?token=`, never reaches the journal, not even that of a request that cannot be read."""

import asyncio
import io
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from gateway import logging as journal
from tests.support.gateway_server import serving

KEY = "k3y-that-nobody-reads"
MALFORMED = (
    f"GET /api/v1/ws/chat?token={KEY} HTTP/9.x\r\n\r\n",
    f"GET /api/v1/ws/chat?token={KEY} and {KEY} HTTP/1.1\r\nHost: localhost\r\n\r\n",
    f"GET /api/v1/ws/chat?to%6ben={KEY}\x01 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    f"G@T /api/v1/ws/chat?token={KEY} HTTP/1.1\r\nHost: localhost\r\n\r\n",
    f"GET http://[/api/v1/ws/chat?token={KEY} HTTP/1.1\r\nHost: localhost\r\n\r\n",
    f"GET / HTTP/1.1\r\nHost: localhost\r\nBad Header?token={KEY}: x\r\n\r\n",
    f"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\x00\r\n\r\n",
    f"GET /{'x' * 9000}?token={KEY} HTTP/1.1\r\nHost: localhost\r\n\r\n",
    f"GET /aap/meta?token={KEY} HTTP/1.1\r\nHost: localhost\r\n\r\nGET ?token={KEY}\r\n\r\n",
    f"POST /aap/sessions?token={KEY} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n{KEY}\r\n",
)


@pytest.fixture
def told() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    yield stream
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.parametrize("format", ["json", "console"])
async def test_a_malformed_request_keeps_its_key(tmp_path: Path, told: io.StringIO, format: str) -> None:
    journal.configure_logging(format, "debug", told)
    logging.getLogger("aiohttp.server").setLevel(logging.DEBUG)
    async with serving(tmp_path, auth="keys", dialects={"aap": {}, "zenflux": {}}) as served:
        for words in MALFORMED:
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
            writer.write(words.encode())
            writer.write_eof()
            await reader.read()
            writer.close()
    logging.getLogger("aiohttp.server").setLevel(logging.NOTSET)
    assert told.getvalue(), "the journal was told of them"
    assert KEY not in told.getvalue()


@pytest.mark.parametrize("format", ["json", "console"])
def test_whoever_writes_an_address_down_its_query_is_masked(told: io.StringIO, format: str) -> None:
    journal.configure_logging(format, "info", told)
    address = f"ws://localhost/api/v1/ws/chat?a=1&to%6ben={KEY}"
    try:
        raise ValueError(f"no answer from {address}")
    except ValueError:
        journal.get_logger().exception("failed", url=address, many=[address])
        logging.getLogger("asyncio").exception("of %s", address)
    assert KEY not in told.getvalue()
    assert told.getvalue().count("/api/v1/ws/chat?***") >= 5
