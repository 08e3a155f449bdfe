"""An old server with conversations, and what a client of a dialect reads there of one."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import gateway.model as m
from gateway.ports import SessionService
from tests.support.dialect_tables import DIALECTS
from tests.support.gateway_server import Served, serving

TOOLS = [
    {"name": name, "description": name, "parameters": {"type": "object"}, "permission": permission}
    for name, permission in (("clock", "allow"), ("calc", "ask"), ("search", "allow"))
]
ANSWERS: Mapping[str, Any] = {
    "question": lambda ask: m.AnswerQuestion(request_id=ask.request_id, selections={"0": (0,), "1": (0,)}),
    "permission": lambda ask: m.DecidePermission(request_id=ask.request_id, granted=True),
    "client_tool": lambda ask: m.ReturnResult(request_id=ask.request_id, content="done"),
    "continuation": lambda ask: m.ContinueTurn(request_id=ask.request_id),
    "rollback": lambda ask: m.RollBack(request_id=ask.request_id, option="0"),
}


@asynccontextmanager
async def gateway(folder: Path, **settings: Any) -> AsyncIterator[Served]:
    """A gateway with the demo agent that serves every dialect."""
    folder.mkdir(exist_ok=True)  # noqa: ASYNC240  # nothing else runs yet
    common = {"dialects": {name: {} for name in DIALECTS}, "agents": {"demo": {"backend": "demo", "tools": TOOLS}}}
    async with serving(folder, **{**common, **settings}) as served:
        yield served


async def converse(served: Served, *said: str, title: str | None = None, owner: str = "") -> str:
    """A conversation in which this is said, one after the other, and every ask is answered; its id."""
    sessions = served.gateway.sessions
    session_id = (await sessions.create(owner, "demo", title=title)).session_id
    for text in said:
        await say(served, session_id, text, owner)
    return session_id


async def say(
    served: Served, session_id: str, text: str, owner: str = "", sessions: SessionService | None = None,
) -> None:
    sessions = sessions or served.gateway.sessions
    await sessions.submit(owner, session_id, [m.SendMessage(content=text)])
    while (view := await sessions.get(owner, session_id)).turn_id is not None:
        if view.asks:
            await sessions.submit(owner, session_id, [ANSWERS[ask.ask.kind](ask) for ask in view.asks.values()])
        await asyncio.sleep(1)


async def read(served: Served, paths: Sequence[str]) -> list[Any]:
    """What a client reads at these paths."""
    bodies = []
    for path in paths:
        async with served.http.get(served.url(path)) as response:
            assert response.status == 200, f"{path}: {await response.text()}"
            bodies.append(await response.json())
    return bodies


def differences(first: Any, second: Any, place: str = "") -> Iterator[str]:
    """The places at which two bodies differ, so that a failure can be read."""
    if isinstance(first, dict) and isinstance(second, dict):
        for name in sorted(first.keys() | second.keys()):
            yield from differences(first.get(name, MISSING), second.get(name, MISSING), f"{place}.{name}")
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for number, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from differences(one, other, f"{place}[{number}]")
    elif first != second:
        yield f"{place}: {first!r:.300} != {second!r:.300}"


MISSING = "(nothing)"
