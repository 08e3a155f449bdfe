"""Which network addresses clients may name: asked by the rooms that hear clients, and by those that connect."""

import socket
from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Addresses(Protocol):
    """What clients may name: public addresses, and what the operator has allowed."""

    def check(self, url: str, field: str) -> None:
        """Raise `Invalid`, with the name of the field, if a client may not name this address."""
    def problem(self, url: str) -> str | None:
        """Why a client may not name this address; None if nothing speaks against its text."""
    async def check_resolved(self, named: Sequence[tuple[str, str]]) -> None:
        """As `check` for several addresses, each with its field, after their host names were looked up."""
    async def problem_resolved(self, url: str) -> str | None:
        """As `problem`, after the host name was looked up."""
    async def looked_up(self, host: str, port: int | None = None) -> list[tuple[Any, Any, int, str, Any]]:
        """What DNS answers for this host, as `getaddrinfo` gives it; raises `OSError`."""
    def allows_name(self, host: str) -> bool:
        """Whether the operator has listed this host name; then it may lead anywhere."""
    def socket_factory(self, host: str) -> Callable[[tuple[Any, Any, int, str, Any]], socket.socket]:
        """The hook that opens sockets to this host, and refuses addresses that clients may not name."""
