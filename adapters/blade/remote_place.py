"""A server's socket: where it is, as whom we come, how patient we are, and what its refusals mean."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from yarl import URL

from gateway.errors import BackendFailed, GatewayError, Overloaded, RateLimited, TimedOut
from gateway.upstream import Cut, Patience, Unreachable, hidden

MOST = 32 * 1024 * 1024
"""A packet may have so many bytes."""
GOODBYE = 2.0
"""How long a server may take to say goodbye."""
_BUSY = frozenset((500, 502, 503, 504))


@dataclass(slots=True)
class Way:
    """What was found out about the way to a server."""

    is_polled: bool = False
    """It takes no websockets, and was reached by asking again and again."""


@dataclass(frozen=True)
class Place:
    """Where the socket is, as whom we come, and how patient we are."""

    url: URL
    key: str
    patience: Patience
    secrets: tuple[str, ...] = ()
    """What else must not come back from there."""
    way: Way = field(default_factory=Way)

    @property
    def name(self) -> str:
        return f"{self.url.scheme}://{self.url.authority.rpartition('@')[2]}"

    def told(self, words: Any) -> str:
        """A server's words, without our secrets and not too many of them."""
        return self.without_secrets(" ".join(str(words).split()))[:500]

    def without_secrets(self, words: str) -> str:
        return hidden(words, (self.key, *self.secrets))


def socket_session(patience: Patience) -> aiohttp.ClientSession:
    """For all the sockets of one server."""
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=patience.connect, sock_read=patience.first_byte)
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), middlewares=(stay,), timeout=timeout)


async def stay(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """A server that points elsewhere is not followed: the key is meant for this one."""
    response = await handler(request)
    if 300 <= response.status < 400:
        response.close()
        raise BackendFailed(f"{request.url.origin()} answered {response.status} and points elsewhere; "
                            "that is not followed")
    return response


@contextmanager
def border(name: str) -> Iterator[None]:
    """What aiohttp raises stops here."""
    try:
        yield
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError) as error:
        raise BackendFailed(f"{name}: its certificate does not verify ({type(error).__name__})") from None
    except (TimeoutError, aiohttp.ServerTimeoutError):
        raise TimedOut(f"{name} took too long to answer") from None
    except aiohttp.ClientConnectorError as error:
        raise Unreachable(f"{name} cannot be reached ({error.os_error.strerror or 'no connection'})") from None
    except (aiohttp.ClientError, ConnectionError) as error:
        raise Cut(f"the connection to {name} broke ({type(error).__name__})") from None


def refusal(name: str, status: int, what: str) -> GatewayError:
    """What a status means that is an answer to `what`."""
    kind = RateLimited if status == 429 else Overloaded if status in _BUSY else BackendFailed
    return kind(f"{name} answered {status} to {what}", details={"upstream_status": status})
