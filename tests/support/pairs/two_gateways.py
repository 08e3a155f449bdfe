"""Two gateways in a row: the first has the demo agent; the second has the first as its agent, in one dialect."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch
from weakref import WeakKeyDictionary

import gateway.model as m
from gateway.app import Gateway
from gateway.backends.demo import simple_directives
from tests.support.dialect_tables import DIALECTS
from tests.support.gateway_server import Served, serving, until

PLACES: WeakKeyDictionary[Gateway, dict[str, tuple[str, str]]] = WeakKeyDictionary()
"""Where in a gateway something was said: the session, and the turn."""


REFERENCES = {m.AnnotationTopic.MEMORY_REFS: [{"id": "7", "title": "A memory", "content": "Likes tea."}]}
"""What `/annotate` says of memories here, as an agent with memories of its own would."""


@dataclass(frozen=True)
class GatewayChain:
    """Both gateways, and where each serves which dialect."""

    first: Served
    second: Served

    async def original(self, said: str) -> tuple[list[m.Record], str]:
        """What the log of the first gateway has of the conversation in which this was said, and the turn it began."""
        return await _turn(self.first, said)

    async def between(self, said: str) -> tuple[list[m.Record], str]:
        """The same, as the second gateway has heard it."""
        return await _turn(self.second, said)

    async def found(self, said: str) -> tuple[m.SessionView, list[m.Record]]:
        """The session of the first gateway in which this was said, and all its records."""
        view, _ = await _find(self.first, said)
        return view, list(await self.first.gateway.sessions.records("", view.session_id))

    async def knows(self, said: str, tool: str) -> tuple[bool, bool]:
        """Whether the first gateway knows of this tool of the client, and whether the second does."""
        views = [(await _find(served, said))[0] for served in (self.first, self.second)]
        first, second = ([one.name for one in view.settings.client_tools] for view in views)
        return tool in first, tool in second


async def _turn(served: Served, said: str) -> tuple[list[m.Record], str]:
    view, turn_id = await _find(served, said)
    await until(lambda: view.turn_id != turn_id)
    await served.gateway.sessions.get("", view.session_id)  # what has happened is in the log only when it can be shown
    return list(await served.gateway.sessions.records("", view.session_id)), turn_id


async def _find(served: Served, said: str) -> tuple[m.SessionView, str]:
    """What was found once is not searched for again: there are hundreds of records, and four questions about each."""
    sessions, places = served.gateway.sessions, PLACES.setdefault(served.gateway, {})
    if said in places:
        session_id, turn_id = places[said]
        return await sessions.get("", session_id), turn_id
    for head in await sessions.heads("", limit=1000):
        for record in await sessions.records("", head.session_id):
            if isinstance(record.event, m.InputAccepted) and said in repr(record.event):
                assert record.turn_id is not None
                places[said] = head.session_id, record.turn_id
                return await sessions.get("", head.session_id), record.turn_id
    raise AssertionError(f"nobody said {said!r}")


def address(served: Served, dialect: str) -> str:
    """Where a client of the dialect would be pointed."""
    return served.url(served.gateway.contexts[dialect].mount)


@asynccontextmanager
async def gateway_chain(folder: Path, dialect: str) -> AsyncIterator[GatewayChain]:
    """The first gateway is heard by the second in this dialect; the second serves all."""
    dialects: dict[str, dict[str, object]] = {name: {} for name in DIALECTS}
    async with AsyncExitStack() as stack:
        stack.enter_context(patch.dict(simple_directives.ANNOTATIONS, REFERENCES))
        for name in ("first", "second"):
            (folder / name).mkdir()
        common = {"dialects": dialects, "log": "memory"}
        demo = {"backend": "demo", "tools": TOOLS}
        first = await stack.enter_async_context(serving(folder / "first", agents={"demo": demo}, **common))
        remote = {"backend": "remote", "settings": {"dialect": dialect, "url": address(first, dialect)}}
        agents = {"demo": {**remote, "tools": TOOLS}}
        second = await stack.enter_async_context(serving(folder / "second", agents=agents, **common))
        yield GatewayChain(first, second)


TOOLS = [
    {"name": name, "description": name, "parameters": {"type": "object"}, "permission": permission}
    for name, permission in (("clock", "allow"), ("calc", "ask"), ("search", "allow"))
]
"""The demo's tools, and which of them it asks about."""
