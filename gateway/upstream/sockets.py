"""For those who reach a server by a WebSocket: the one thing that aiohttp's client is still used for, in our words."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import aiohttp

from gateway.errors import BackendFailed, GatewayError, TimedOut

from .complaints import reason_of
from .failures import Cut, Unreachable


@contextmanager
def border(name: str, total: float) -> Iterator[None]:
    """What aiohttp raises stops here; `name` is who is complained of, `total` how long it was waited for in all."""
    try:
        yield
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError) as error:
        raise BackendFailed(f"{name}: its certificate does not verify ({reason_of(error)})") from None
    except aiohttp.ServerTimeoutError:
        raise TimedOut(f"{name} took too long: nothing came for a while") from None
    except aiohttp.ClientConnectorError as error:
        raise Unreachable(f"{name} cannot be reached ({reason_of(error)})") from None
    except aiohttp.InvalidURL as error:
        raise BackendFailed(f"{name} is no address: {error}") from None
    except TimeoutError:
        raise TimedOut(f"{name} took longer than {total:g} seconds in all") from None
    except aiohttp.ClientError as error:
        raise Cut(f"the connection to {name} broke ({type(error).__name__})") from None


async def beginning(response: aiohttp.ClientResponse, most: int) -> bytes:
    """So much of an answer that opened no socket, or as much as comes of it."""
    body = bytearray()
    with suppress(GatewayError), border("", 0):
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) >= most:
                break
    return bytes(body[:most])
