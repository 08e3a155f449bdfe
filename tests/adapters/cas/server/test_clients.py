"""Published clients of CAS's API work here as they are: nothing but the address is ours."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import anthropic
import pytest
from qca import ConflictError, NotFoundError
from qca import managed as qca

from tests.support.dialects.cas.client import AT, MINE, Client, toolset
from tests.support.dialects.cas.cutting_proxy import cutting_proxy
from tests.support.gateway_server import Served, reachable_from_outside, serving

T = TypeVar("T")


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path, dialects={"cas": {}}, log="memory", limits={"heartbeat_seconds": 0.2}) as served:
        yield served


async def in_thread(served: Served, work: Callable[[str], T]) -> T:
    """Blocking clients run beside the server."""
    async with reachable_from_outside(served) as address, asyncio.timeout(60):
        return await asyncio.to_thread(work, f"{address}{AT}")


async def test_the_qoder_client_talks_and_answers(served: Served) -> None:
    agent_id = await Client(served).agent(toolset(calc="ask"), MINE)

    def work(address: str) -> tuple[list[str], list[str], Any]:
        with qca.Managed(pat="x", base_url=address, _strict_response_validation=True) as client:
            environment = client.environments.create(name="e", config={"type": "cloud"})
            session = client.sessions.create(agent=agent_id, environment_id=environment.id, title="t")
            sent = client.sessions.events.send(
                session.id, events=[{"type": "user.message", "content": [{"type": "text", "text": "/parallel"}]}])
            heard: list[str] = []
            with client.sessions.events.stream(session.id, event_deltas=["agent.message"]) as stream:
                for event in stream:
                    heard.append(event.type)
                    if event.type == "session.status_idle" and event.stop_reason.type == "requires_action":
                        names = {e.id: e for e in client.sessions.events.list(session.id, limit=100)}
                        client.sessions.events.send(session.id, events=[
                            {"type": "user.tool_confirmation", "tool_use_id": one, "result": "allow"}
                            if names[one].type == "agent.tool_use" else
                            {"type": "user.custom_tool_result", "custom_tool_use_id": one,
                             "content": [{"type": "text", "text": "sunny"}]}
                            for one in event.stop_reason.event_ids
                        ])
                    elif event.type == "session.status_idle":
                        break
            listed = [event.type for event in client.sessions.events.list(session.id, limit=5)]
            assert sent.data[0].type == "user.message"
            threads = list(client.sessions.threads.list(session.id))
            client.sessions.archive(session.id)
            assert client.sessions.cancel(session.id).status == "canceling"
            return heard, listed, threads

    heard, listed, threads = await in_thread(served, work)
    kept = [kind for kind in heard if not kind.startswith("event_")]
    assert kept == listed
    assert "event_delta" in heard
    assert kept.count("session.status_idle") == 2
    assert len(threads) == 1


async def test_the_anthropic_client_talks(served: Served) -> None:
    agent_id = await Client(served).agent(toolset(calc="ask"))

    def work(address: str) -> tuple[list[str], str]:
        with anthropic.Anthropic(api_key="x", base_url=address) as client:
            environment = client.beta.environments.create(name="e", config={"type": "cloud"})
            session = client.beta.sessions.create(agent=agent_id, environment_id=environment.id)
            heard: list[str] = []
            with client.beta.sessions.events.stream(session.id) as stream:
                client.beta.sessions.events.send(
                    session.id, events=[{"type": "user.message", "content": [{"type": "text", "text": "/permit hi"}]}])
                for event in stream:
                    heard.append(event.type)
                    if event.type == "session.status_idle":
                        if event.stop_reason.type != "requires_action":
                            break
                        client.beta.sessions.events.send(session.id, events=[
                            {"type": "user.tool_confirmation", "tool_use_id": one, "result": "allow"}
                            for one in event.stop_reason.event_ids
                        ])
            return heard, client.beta.sessions.retrieve(session.id).status

    heard, status = await in_thread(served, work)
    assert heard[0] == "user.message"
    assert heard.count("session.status_idle") == 2
    assert status == "idle"


async def test_the_async_client_does_all_there_is_to_do(served: Served) -> None:
    agent_id = await Client(served).agent(toolset(calc="ask"), MINE)
    async with (
        asyncio.timeout(60),
        qca.AsyncManaged(pat="x", base_url=served.url(AT), _strict_response_validation=True) as client,
    ):
        environment = await client.environments.create(name="e", config={"type": "cloud"})
        session = await client.sessions.create(agent=agent_id, environment_id=environment.id)
        said = {"type": "user.message", "content": [{"type": "text", "text": "/client-tool"}]}
        await client.sessions.events.send(session.id, events=[said])
        heard: list[str] = []
        async with await client.sessions.events.stream(session.id, event_deltas=["agent.message"]) as stream:
            async for event in stream:
                heard.append(event.type)
                if event.type == "session.status_idle" and event.stop_reason.type == "requires_action":
                    await client.sessions.events.send(session.id, events=[
                        {"type": "user.custom_tool_result", "custom_tool_use_id": one,
                         "content": [{"type": "text", "text": "sunny"}]} for one in event.stop_reason.event_ids])
                elif event.type == "session.status_idle":
                    break
        assert "agent.custom_tool_use" in heard
        assert "event_delta" in heard
        assert session.id in [one.id async for one in await client.sessions.list()]
        slow = {"type": "user.message", "content": [{"type": "text", "text": "/slow 10000"}]}
        await client.sessions.events.send(session.id, events=[slow])
        with pytest.raises(ConflictError, match="currently processing a turn"):
            await client.sessions.events.send(session.id, events=[said])
        assert (await client.sessions.cancel(session.id)).status == "canceling"
        await client.sessions.archive(session.id)
        with pytest.raises(ConflictError):
            await client.sessions.events.send(session.id, events=[said])
        await client.sessions.delete(session.id)
        with pytest.raises(NotFoundError, match="was not found"):
            await client.sessions.retrieve(session.id)


async def _heard(opened: Any, sending: Any) -> list[str]:
    """The messages that a reader gets up to idle; it sends, if at all, when its stream is open."""
    heard: list[str] = []
    async with await opened as stream:
        if sending is not None:
            await sending()
        async for event in stream:
            if event.type in ("user.message", "agent.message"):
                heard.append(event.content[0].text)
            if event.type == "session.status_idle":
                return heard
    raise EOFError("the stream has ended")


@pytest.mark.parametrize("opens_first", [True, False])
@pytest.mark.parametrize("published", ["qca", "anthropic"])
async def test_a_reader_that_stops_at_idle_gets_each_answer_once(
    served: Served, published: str, opens_first: bool,
) -> None:
    sdk: Any = qca.AsyncManaged(pat="x", base_url=served.url(AT)) if published == "qca" else (
        anthropic.AsyncAnthropic(auth_token="x", base_url=served.url(AT)))
    session = await Client(served).session()
    async with asyncio.timeout(60), sdk:
        events = (sdk if published == "qca" else sdk.beta).sessions.events
        for words in ("one", "two", "three"):
            async def send(words: str = words) -> None:
                await events.send(session, events=[
                    {"type": "user.message", "content": [{"type": "text", "text": words}]}])

            if not opens_first:
                await send()
            heard = await _heard(events.stream(session), send if opens_first else None)
            assert heard == [words, f"You said: {words}"]
        assert len([one async for one in await _listed(events, session)]) == 3 * 6


async def _listed(events: Any, session: str) -> Any:
    pages = events.list(session, limit=1000)
    return await pages if asyncio.iscoroutine(pages) else pages


@pytest.mark.parametrize("after", [700, 1500, 3000])
async def test_a_resumable_stream_survives_a_line_that_breaks(served: Served, after: int) -> None:
    agent_id = await Client(served).agent(toolset(calc="ask"))
    async with cutting_proxy(served.port, cuts=3, after=after) as (address, line), qca.AsyncManaged(
        pat="x", base_url=f"{address}{AT}", _strict_response_validation=True,
    ) as client:
        environment = await client.environments.create(name="e", config={"type": "cloud"})
        session = await client.sessions.create(agent=agent_id, environment_id=environment.id)
        said = {"type": "user.message", "content": [{"type": "text", "text": "/think /tool clock /slow 10 done"}]}
        await client.sessions.events.send(session.id, events=[said])
        heard: list[str] = []
        async with client.sessions.events.resumable_stream(session.id) as stream:
            async for event in stream:
                heard.append(event.id)
                if event.type == "session.status_idle":
                    break
        listed = [event.id async for event in await client.sessions.events.list(session.id, limit=100)]
    assert line.made >= 1, "the line was to break"
    assert heard == listed, "nothing missed, nothing twice, nothing out of order"
