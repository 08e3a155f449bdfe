"""An HTTP client for one upstream server: JSON bodies, event streams, retries, and errors as `GatewayError`."""

import ssl as tls
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any

import aiohttp
import orjson
from yarl import URL

from gateway.client.redaction import MAX_QUOTED, Redactor
from gateway.client.retry import retry, wait_before_retry
from gateway.errors import BackendFailed, ConnectionLost, GatewayError, ServerUnreachable, TimedOut
from gateway.json_values import JsonValue, read_exact_json
from gateway.ports import RemoteAddress, Timeouts
from gateway.trace_context import TRACEPARENT, trace_headers

from .connection_pool import ConnectionPool
from .error_messages import UpstreamErrors, os_reason
from .http1_connection import Http1Connection
from .proxy import CREDENTIALS_WANTED, SECURE_SCHEMES, Proxy, proxy_for
from .sse_decoder import SseDecoder, SseEvent

MAX_ERROR_BODY_BYTES = 16 * MAX_QUOTED
"""At most so many bytes of an error response are read."""
MAX_BODY_BYTES = 32 * 1024 * 1024
"""A body that is read as a whole has at most so many bytes."""
EVENT_STREAM = "text/event-stream"
IDEMPOTENT_METHODS = frozenset(("GET", "HEAD", "PUT", "DELETE"))
"""Sending one of these requests twice has the same effect as sending it once."""


class HttpClient:
    """A client of the server at one address; many turns share it, and `close` ends it."""

    def __init__(
        self, url: str, *, headers: Mapping[str, str] | None = None, secrets: tuple[str, ...] = (),
        timeouts: Timeouts | None = None, ssl: tls.SSLContext | None = None,
    ) -> None:
        self.url, self.headers = URL(url), dict(headers or {})
        self.timeouts = timeouts or Timeouts()
        self.redactor = Redactor(secrets)
        self.proxy = proxy_for(self.url)
        self._errors = UpstreamErrors(self._responder, self.redactor)
        self._pool = ConnectionPool(
            self.url, self.name, self.headers, connect_seconds=self.timeouts.connect, ssl=ssl, proxy=self.proxy
        )

    @classmethod
    def at(
        cls, address: RemoteAddress, *, url: str | None = None, headers: Mapping[str, str] | None = None,
    ) -> "HttpClient":
        """A client of the server at an address, with its key; `url` is another place at that server."""
        key = {"Authorization": f"Bearer {address.key}"} if address.key else {}
        secrets = (address.key,) if address.key else ()
        return cls(url or address.url, headers={**key, **(headers or {})}, secrets=secrets, timeouts=address.patience)

    @property
    def name(self) -> str:
        """The server's name in messages: scheme, host and port, without keys, paths or user names."""
        return str(self.url.origin())

    @property
    def _responder(self) -> str:
        """Who may have answered: without TLS it may be the proxy itself."""
        is_alone = self.proxy is None or self.url.scheme in SECURE_SCHEMES
        return self.name if is_alone else f"{self.name} (through the proxy {self.proxy})"

    async def close(self) -> None:
        self._pool.close()

    def url_for(self, path: str) -> URL:
        """The URL of a path below the server's address."""
        return self.url.with_path(self.url.path.rstrip("/") + path, keep_query=True) if path else self.url

    # -- requests -------------------------------------------------------------------------------------------------

    async def json(
        self, method: str, path: str, body: object = None, *, query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> JsonValue:
        """The parsed body of one response; None if the body is empty. Only a GET is retried."""
        async def request() -> Any:
            async with self.open(method, path, body, query=query, headers=headers) as connection:
                return self._parsed(await self.read_whole(connection), connection.content_type)

        return await retry(request, self.timeouts.attempts if method == "GET" else 1)

    def stream(
        self, method: str, path: str, body: JsonValue = None, *, headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None, attempts: int | None = None,
    ) -> "EventStream":
        """The server-sent events of one response; the request is sent at the first read."""
        accepting = {"Accept": EVENT_STREAM, **(headers or {})}
        return EventStream(self, method, path, body, accepting, query, attempts or self.timeouts.attempts)

    @asynccontextmanager
    async def open(
        self, method: str, path: str | URL, body: object = None, *, headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None, again: bool = False,
    ) -> AsyncIterator[Http1Connection]:
        """One attempt: a connection whose response has a status below 300 and a body that was not read yet.

        A URL in place of a path below the server's address is used as it is.
        `again` says that the server may receive the request twice; with idempotent methods it always may.
        """
        url = path if isinstance(path, URL) else self.url_for(path)
        url = url.update_query(query) if query else url
        timeouts = self.timeouts
        if TRACEPARENT.get():
            headers = {**trace_headers(), **(headers or {})}
        async with self._pool.request(
            method, url, body, headers or {}, again=again or method in IDEMPOTENT_METHODS,
            first=timeouts.first_byte, idle=timeouts.idle, total=timeouts.total,
        ) as connection:
            if connection.status >= 300:
                beginning = await self._read_beginning(connection) if connection.status >= 400 else b""
                raise self._error_of_status(connection.status, connection.headers, beginning)
            yield connection

    async def check_event_stream(self, connection: Http1Connection) -> None:
        """Raise `BackendFailed`, with the beginning of the body, unless the response is an event stream."""
        if connection.content_type != EVENT_STREAM:
            beginning = await self._read_beginning(connection)
            raise self._errors.not_events(connection.content_type, beginning)

    # -- responses ------------------------------------------------------------------------------------------------

    async def _read_beginning(self, connection: Http1Connection) -> bytes:
        """The first bytes of an error response, or as many as arrive before the connection fails."""
        body = bytearray()
        with suppress(GatewayError):
            while len(body) < MAX_ERROR_BODY_BYTES and (chunk := await connection.read_body()):
                body += chunk
        return bytes(body[:MAX_ERROR_BODY_BYTES])

    async def read_whole(self, connection: Http1Connection) -> bytes:
        """The body, if it is not too large for memory."""
        body = bytearray()
        while chunk := await connection.read_body():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                raise BackendFailed(f"{self.name} answered with more than {MAX_BODY_BYTES} bytes")
        return bytes(body)

    def _parsed(self, body: bytes, content_type: str) -> Any:
        if not body.strip():
            return None
        if any(secret.encode() in body for secret in self.redactor.long_secrets):
            body = self.redactor.body(body.decode(errors="replace")).encode()
        try:
            return read_exact_json(body)
        except orjson.JSONDecodeError:
            raise self._errors.not_json(content_type) from None

    def redact_events(self, events: list[SseEvent]) -> list[SseEvent]:
        """The events without our long secrets."""
        if not (secrets := self.redactor.long_secrets):
            return events
        whole = events[0].data if len(events) == 1 else "\0".join([event.data for event in events])
        for secret in secrets:
            if secret in whole:
                events = [SseEvent(event.name, self.redactor.body(event.data), event.id) for event in events]
        return events

    def quote(self, body: bytes) -> str:
        """The upstream's error message in one line, without our secrets."""
        return self._errors.quote(body)

    def _error_of_status(self, status: int, headers: Mapping[str, str], beginning: bytes) -> GatewayError:
        if status == CREDENTIALS_WANTED and self.proxy is not None:
            return self.proxy.refusal(status, self.name)
        return self._errors.from_status(status, headers, beginning)

    # -- for clients that use a WebSocket -------------------------------------------------------------------------

    def aiohttp_session(
        self, middleware: aiohttp.ClientMiddlewareType, headers: Mapping[str, str] | None = None,
    ) -> aiohttp.ClientSession:
        """A session for connections to this server, through the same proxy and with the same certificates."""
        patience = self.timeouts
        is_secure = self.url.scheme in SECURE_SCHEMES
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._pool.context() if is_secure else True),
            proxy=self.proxy.url if self.proxy is not None else None, headers=headers,
            middlewares=(add_trace_headers, middleware),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=patience.connect, sock_read=patience.first_byte),
        )

    def aiohttp_errors(self) -> AbstractContextManager[None]:
        """Turn what aiohttp raises into a `GatewayError`."""
        return aiohttp_errors(self.name, self.timeouts.total, self.proxy)

    async def error_of(self, response: aiohttp.ClientResponse) -> GatewayError:
        """The error that a response of status 300 or above stands for."""
        beginning = await read_beginning(response, MAX_ERROR_BODY_BYTES) if response.status >= 400 else b""
        return self._error_of_status(response.status, response.headers, beginning)


class EventStream:
    """The events of one response, as an async context manager whose exit closes the connection.

    `read` connects, and connects again after a failure as long as no event has arrived.
    """

    def __init__(
        self, client: HttpClient, method: str, path: str, body: JsonValue, headers: Mapping[str, str],
        query: Mapping[str, str] | None, attempts: int,
    ) -> None:
        self._client, self._method, self._path, self._body = client, method, path, body
        self._headers, self._query, self._attempts = headers, query, attempts
        self._decoder: SseDecoder
        self._connection: Http1Connection | None = None
        self._open = AsyncExitStack()
        self._attempt = 0
        self._has_events = self._is_over = False

    async def __aenter__(self) -> "EventStream":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._open.aclose()

    async def read(self) -> list[SseEvent]:
        """All events that have arrived, at least one; an empty list at the end of the stream."""
        while not self._is_over:
            try:
                connection = self._connection or await self._connect()
                while chunk := await connection.read_body():
                    if events := self._decoder.feed(chunk):
                        self._has_events = True
                        return self._client.redact_events(events)
                self._is_over = True
                await self._open.aclose()
            except GatewayError as error:
                await self._open.aclose()
                if self._has_events:
                    raise
                self._connection = None
                await wait_before_retry(error, self._attempt, self._attempts)
        return []

    async def _connect(self) -> Http1Connection:
        self._attempt += 1
        connection = await self._open.enter_async_context(self._client.open(
            self._method, self._path, self._body, headers=self._headers, query=self._query,
            again=self._attempts > 1,
        ))
        await self._client.check_event_stream(connection)
        self._connection, self._decoder = connection, SseDecoder(name=self._client.name)
        return connection


@contextmanager
def aiohttp_errors(name: str, total: float, proxy: Proxy | None = None) -> Iterator[None]:
    """Turn what aiohttp raises into a `GatewayError`; `name` is the server, `total` its timeout in seconds."""
    try:
        yield
    except aiohttp.ClientHttpProxyError as error:
        assert proxy is not None, "no other proxy is used"
        raise proxy.refusal(error.status, name) from None
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError) as error:
        raise BackendFailed(f"{name}: its certificate does not verify ({os_reason(error)})") from None
    except aiohttp.ServerTimeoutError:
        raise TimedOut(f"{name} sent nothing in time") from None
    except aiohttp.ClientConnectorError as error:
        through = f" through the proxy {proxy.name}" if proxy is not None else ""
        raise ServerUnreachable(f"{name} cannot be reached{through} ({os_reason(error)})") from None
    except aiohttp.InvalidURL as error:
        raise BackendFailed(f"{name} is not an address: {error}") from None
    except TimeoutError:
        raise TimedOut(f"{name} took longer than {total:g} seconds in all") from None
    except (aiohttp.ClientError, ConnectionError) as error:
        raise ConnectionLost(f"the connection to {name} broke ({type(error).__name__})") from None


async def add_trace_headers(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType,
) -> aiohttp.ClientResponse:
    """A request that a turn causes belongs to the trace of the turn."""
    request.headers.update(trace_headers())
    return await handler(request)


async def read_beginning(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The first bytes of a response that opened no WebSocket, or as many as arrive."""
    body = bytearray()
    with suppress(GatewayError), aiohttp_errors("", 0):
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) >= most:
                break
    return bytes(body[:most])
