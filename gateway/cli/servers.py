"""A server that a command speaks to as a client: its dialect, its address, and what its refusals mean."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from .common import DIALECTS, fail, is_address
from .translate import hang_up

if TYPE_CHECKING:
    from gateway.errors import GatewayError
    from gateway.upstream import Remote

PATIENCE = 300.0
"""Seconds to wait for the server to say something."""
CONNECTING = 10.0
STOPPED = 130
"""The exit code of a program that was stopped by Ctrl-C."""
LONGEST_TURN = 24 * 3600.0
UNAUTHENTICATED, FORBIDDEN, NOT_FOUND = 401, 403, 404
ELSEWHERE = (400, NOT_FOUND, 405, 415, 422, 501)
"""What a server that is something else, or somewhere else, may say."""

DialectName = Annotated[str | None, typer.Option(
    "--dialect", "-d", metavar="NAME",
    help=f"What it speaks: {DIALECTS}. Left out, it is the one whose usual path this is.",
)]
Key = Annotated[str | None, typer.Option(envvar="DRAGOMAN_KEY", help="The key to be let in with.")]
Timeout = Annotated[float, typer.Option(
    min=0.1, metavar="SECONDS", help="Seconds to wait for each word of the server.",
)]


@dataclass(frozen=True, kw_only=True)
class Server:
    """Where a server is, what it speaks, and how we come."""

    url: str
    dialect: str
    key: str = ""
    agent: str | None = None
    timeout: float = PATIENCE

    @property
    def usual(self) -> str:
        """Where a gateway that has not been told otherwise serves this dialect."""
        return _usual(self.url, self.dialect)

    def dialled(self) -> "Remote":
        from gateway.backends.remote import dialled
        from gateway.upstream import Patience, RemoteAddress

        patience = Patience(
            connect=min(CONNECTING, self.timeout), first_byte=self.timeout, idle=self.timeout, total=LONGEST_TURN,
            attempts=2,
        )
        return dialled(self.dialect, RemoteAddress(url=self.url, key=self.key, agent=self.agent, patience=patience))


def server_at(
    url: str, dialect: str | None, key: str | None, timeout: float = PATIENCE, agent: str | None = None,
) -> Server:
    """The dialect is the one that was named, or the one that gateways have at this path."""
    from gateway.backends.remote import speakers

    if not is_address(url):
        fail(f"'{url}' is not an http or https address; write it as http://HOST:PORT/PATH")
    usual = [name for name in speakers() if _usual(url, name) == url.rstrip("/")]
    name = dialect or next(iter(usual), None)
    if name not in speakers():
        what = f"nobody speaks '{name}' here" if name else "say which dialect the server speaks, with --dialect"
        fail(f"{what}; there are: {', '.join(speakers())}")
    return Server(url=url.rstrip("/"), dialect=name, key=key or "", timeout=timeout, agent=agent)


@contextmanager
def explaining(server: Server) -> Iterator[None]:
    """What keeps us from talking is told with what can be done about it."""
    from gateway.chat import Rung
    from gateway.errors import GatewayError

    try:
        yield
    except GatewayError as error:
        hint = _hint(error, server)
        fail(f"{error.message.removesuffix('.')}; {hint}" if hint else error.message)
    except Rung:
        raise typer.Exit(STOPPED) from None
    except BrokenPipeError:
        hang_up()


def status_of(error: "GatewayError") -> int | None:
    """The status with which a server refused."""
    found = (error.details or {}).get("upstream_status")
    return found if isinstance(found, int) else None


def _hint(error: "GatewayError", server: Server) -> str:
    from gateway.errors import TimedOut
    from gateway.upstream import Unreachable

    status, agent = status_of(error), server.agent
    if isinstance(error, Unreachable):
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
        return "this key may not talk there"
    if status in ELSEWHERE and server.url != server.usual:
        return f"is {server.dialect} at this address? Dragoman has it at {server.usual}"
    return ""


def _usual(url: str, name: str) -> str:
    from urllib.parse import urlsplit

    from gateway.backends.remote import dialect

    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{dialect(name).mount}"
