"""What agents do while several servers are tried, and what is asked of any of those servers."""

import asyncio
from collections.abc import AsyncGenerator

import gateway.model as m
from gateway.ports import BackendEvent, Turn
from tests.support.cluster.replicas import LEASE, Replica

HELLO = m.SendMessage(content="hello")


async def quick(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    yield m.NoticePosted(topic="t", title="done")


async def endless(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    while True:
        yield m.NoticePosted(topic="t", title="tick")
        await asyncio.sleep(LEASE / 20)


async def asking(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    question = m.Question(question="which?", options=(m.Choice(label="a"), m.Choice(label="b")))
    answers = await turn.ask(m.QuestionAsk(questions=(question,)))
    yield m.NoticePosted(topic="t", title=type(answers[0]).__name__)


async def made(one: Replica) -> str:
    return (await one.sessions.create("ann", "agent")).session_id


async def ended(one: Replica, session_id: str) -> None:
    """Ask this server, again and again in simulated time, until no turn runs or waits."""
    async with asyncio.timeout(10 * LEASE):
        while (await one.sessions.get("ann", session_id)).status is not m.SessionStatus.IDLE:  # noqa: ASYNC110
            await asyncio.sleep(LEASE / 20)
