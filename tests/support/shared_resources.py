"""The resources that dialects share, in the hands of clients: made, seen, changed and deleted over HTTP."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import aiohttp

from gateway.ports import SharedKind
from tests.support.dialect_parts import has_part, part
from tests.support.dialect_tables import DIALECTS

PART = "shared_resources"
NUMBERS = count(1)


@dataclass(frozen=True)
class Caller:
    """Calls one server in any dialect."""

    http: aiohttp.ClientSession
    address: str

    async def call(
        self, method: str, path: str, body: Any = None, *, status: int = 200, data: aiohttp.FormData | None = None,
    ) -> Any:
        async with self.http.request(method, f"{self.address}{path}", json=body, data=data) as answer:
            said = await answer.json() if answer.content_type == "application/json" else await answer.text()
            assert answer.status == status, (method, path, said)
            return said

    async def find(self, path: str) -> Any:
        """What is there; None if it is not found."""
        async with self.http.get(f"{self.address}{path}") as answer:
            if answer.status == 404:
                return None
            assert answer.status == 200, (path, await answer.text())
            return await answer.json() if answer.content_type == "application/json" else await answer.text()


See = Callable[[Caller, str], Awaitable[str | None]]
Make = Callable[[Caller, str], Awaitable[str]]
Change = Callable[[Caller, str, str], Awaitable[object]]
Delete = Callable[[Caller, str], Awaitable[object]]


@dataclass(frozen=True, kw_only=True)
class Hands:
    """What the clients of a dialect can do with resources of a kind; what they cannot do is None.

    `make` makes one that shows this value, and returns the name under which every dialect knows it. `see` returns the
    value that it shows, or None if it is not there.
    """

    see: See
    make: Make | None = None
    change: Change | None = None
    delete: Delete | None = None


VALUES: Mapping[SharedKind, tuple[str, str]] = {
    SharedKind.AGENT: ("Tutor", "Coach"),
    SharedKind.SKILL: ("Cleans tables.", "Cleans lists."),
    SharedKind.MCP_SERVER: ("https://one.example.com/mcp", "https://two.example.com/mcp"),
    SharedKind.TOOL: ("off", "on"),
    SharedKind.SCHEDULE: ("on", "off"),
    SharedKind.SETTINGS: ("Good day:", "Hello:"),
    SharedKind.FILE: ("a file", "a file"),
}
"""What a resource of each kind shows when it is made, and after a change."""
ELSEWHERE = {SharedKind.MEMORY: "tests/resources/test_memory_crossing.py"}
"""Kinds that another file has tests of."""


def all_hands() -> dict[SharedKind, dict[str, Hands]]:
    """The hands of every kind, by dialect, found by looking."""
    found: dict[SharedKind, dict[str, Hands]] = {}
    for dialect in DIALECTS:
        if has_part(dialect, PART):
            for kind, hands in part(dialect, "shared_resources").HANDS.items():
                found.setdefault(kind, {})[dialect] = hands
    return found


def unique_name(kind: str) -> str:
    return f"{kind}-{next(NUMBERS)}"


async def greeting_of_session(caller: Caller, session_id: str) -> str | None:
    """The greeting that a session has: AAP shows the options of a session, whatever the dialect that it began in."""
    shown = await caller.call("GET", f"/aap/sessions/{session_id}")
    return str(shown["agent"]["options"]["greeting"]) or None
