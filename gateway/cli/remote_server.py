"""The server that a command talks to as a client: its dialect, its URL, and what its errors mean."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from .options import DIALECT_NAMES, fail, is_address
from .translate import discard_output

if TYPE_CHECKING:
    from gateway.errors import GatewayError
    from gateway.ports import PastSessions, Remote, RemoteAddress

DEFAULT_TIMEOUT = 300.0
"""Seconds to wait for a response of the server."""
CONNECT_SECONDS = 10.0
EXIT_INTERRUPTED = 130
"""The exit code of a program that Ctrl-C stopped."""
MAX_TURN_SECONDS = 24 * 3600.0
UNAUTHENTICATED, FORBIDDEN, NOT_FOUND = 401, 403, 404
WRONG_ADDRESS_STATUSES = (400, NOT_FOUND, 405, 415, 422, 501)
"""Statuses that a server of another kind, or at another path, may answer."""

DialectName = Annotated[str | None, typer.Option(
    "--dialect", "-d", metavar="NAME",
    help=f"The dialect of the server: {DIALECT_NAMES}. By default the dialect whose default path is in the URL.",
)]
Key = Annotated[str | None, typer.Option(envvar="DRAGOMAN_KEY", help="The key for the server.")]
Timeout = Annotated[float, typer.Option(
    min=0.1, metavar="SECONDS", help="Seconds to wait for the server each time.",
)]


@dataclass(frozen=True, kw_only=True)
class RemoteServer:
    """The URL of a server, its dialect, and the key, timeout and agent to use."""

    url: str
    dialect: str
    key: str = ""
    agent: str | None = None
    timeout: float = DEFAULT_TIMEOUT

    @property
    def default_url(self) -> str:
        """The URL at which a gateway with default settings serves this dialect."""
        return _default_url(self.url, self.dialect)

    def connect(self) -> "Remote":
        from gateway.backends.remote import open_remote

        return open_remote(self.dialect, self.address)

    def past_sessions(self, user: str) -> "PastSessions":
        """The sessions that the server has."""
        from gateway.backends.remote import find_dialect

        make = find_dialect(self.dialect).past_sessions
        if make is None:
            fail(f"sessions of {self.dialect} servers cannot be read: the dialect does not say how")
        return make(self.address, user)

    @property
    def address(self) -> "RemoteAddress":
        from gateway.ports import RemoteAddress, Timeouts

        patience = Timeouts(
            connect=min(CONNECT_SECONDS, self.timeout),
            first_byte=self.timeout,
            idle=self.timeout,
            total=MAX_TURN_SECONDS,
            attempts=2,
        )
        return RemoteAddress(url=self.url, key=self.key, agent=self.agent, patience=patience)


def resolve_server(
    url: str, dialect: str | None, key: str | None, timeout: float = DEFAULT_TIMEOUT, agent: str | None = None,
) -> RemoteServer:
    """Return the server with the dialect that was named, or with the dialect that gateways serve at this path."""
    from gateway.backends.remote import client_dialects

    if not is_address(url):
        fail(f"'{url}' is not an http or https address; write it as http://HOST:PORT/PATH")
    usual = [name for name in client_dialects() if _default_url(url, name) == url.rstrip("/")]
    name = dialect or next(iter(usual), None)
    if name not in client_dialects():
        what = f"there is no dialect '{name}'" if name else "name the dialect of the server with --dialect"
        fail(f"{what}; there are: {', '.join(client_dialects())}")
    return RemoteServer(url=url.rstrip("/"), dialect=name, key=key or "", timeout=timeout, agent=agent)


@contextmanager
def explain_errors(server: RemoteServer) -> Iterator[None]:
    """Report errors of the server together with a hint."""
    from gateway.chat import InterruptPressed
    from gateway.errors import GatewayError

    try:
        yield
    except GatewayError as error:
        hint = _hint(error, server)
        fail(f"{error.message.removesuffix('.')}; {hint}" if hint else error.message)
    except InterruptPressed:
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except BrokenPipeError:
        discard_output()


def _hint(error: "GatewayError", server: RemoteServer) -> str:
    from gateway.client import upstream_status
    from gateway.errors import ServerUnreachable, TimedOut

    status, agent = upstream_status(error), server.agent
    if isinstance(error, ServerUnreachable):
        return "is it running, and is that its address?"
    if isinstance(error, TimedOut):
        return "is that its address? --timeout waits longer"
    if status == NOT_FOUND and agent and f"'{agent}'" in error.message:
        return f"is '{agent}' what the agent is called there? Without --agent the server chooses"
    if status == UNAUTHENTICATED and server.key:
        return "the key is wrong: give one that the server knows with --key or in DRAGOMAN_KEY"
    if status == UNAUTHENTICATED:
        return "give a key that the server knows with --key or in DRAGOMAN_KEY"
    if status == FORBIDDEN:
        return "this key has no access there"
    if status in WRONG_ADDRESS_STATUSES and server.url != server.default_url:
        return f"is {server.dialect} at this address? Dragoman has it at {server.default_url}"
    return ""


def _default_url(url: str, name: str) -> str:
    from urllib.parse import urlsplit

    from gateway.backends.remote import find_dialect

    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{find_dialect(name).mount}"
