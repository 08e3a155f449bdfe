"""AAP clients that work a server all day, and those that read a session again."""

import aiohttp

from bench.dialects import Replay, Stream, Visit
from bench.replay_client import ReplayClient
from bench.soak_clients import MESSAGES, TURNS_PER_SESSION, SoakClients
from bench.stored_sessions import StoredSession


async def _talk(clients: SoakClients) -> None:
    """Turns as they come, permissions to give, and a turn read in two pieces."""
    made = await clients.call("POST", "/aap/sessions", {"agent": {"name": "demo", "tools": [{"name": "calc"}]}})
    turns = f"/aap/sessions/{made['sessionId']}/turns"
    for _ in range(TURNS_PER_SESSION):
        await _turn(clients, turns, clients.random.choice(MESSAGES))
    answer = await clients.call("POST", turns, {"messages": [{"role": "user", "content": "/permit"}]})
    call = answer["messages"][-1]["content"][-1]["toolCallId"]
    granted = {"role": "tool_permission", "toolCallId": call, "granted": clients.random.random() < 0.5}
    await clients.call("POST", turns, {"messages": [granted]})
    clients.tally.asks += 1
    await clients.call("GET", f"/aap/sessions/{made['sessionId']}/history?type=full")


async def _turn(clients: SoakClients, turns: str, words: str) -> None:
    body = {"stream": "delta", "messages": [{"role": "user", "content": words}]}
    leaves = clients.random.random() < 0.2
    async with clients.http.post(f"{clients.address}{turns}", json=body) as stream:
        if leaves:
            await stream.content.readany()
        else:
            await stream.read()
    if leaves:
        async with clients.http.get(f"{clients.address}{turns}/current", params={"after": "1"}) as rest:
            await rest.read()
        clients.tally.returns += 1
    clients.tally.turn("aap")


VISITS = {"aap": Visit(_talk, workers=2)}
LISTS = ("/aap/sessions?limit=20",)


async def _stream(client: ReplayClient, session: StoredSession, place: str) -> int:
    had = client.cursor(session, "aap", place)
    body = await client.get(f"/aap/sessions/{session.session_id}/turns/current?after={had}")
    events = body.count(b"event: ")
    if place == "zero":
        client.learn(session, "aap", range(1, events + 1))
    return events


async def _history(client: ReplayClient, session: StoredSession, place: str) -> int:
    return (await client.get(f"/aap/sessions/{session.session_id}/history?type=full")).count(b'"role"')


REPLAYS = (
    Replay("aap SSE", _stream, one_turn=True),
    Replay("aap history", _history, from_zero_only=True),
)


async def _read(http: aiohttp.ClientSession, address: str, message: str) -> int:
    """A turn in stream mode `delta`."""
    async with http.post(f"{address}/aap/sessions", json={"agent": {"name": "demo"}}) as made:
        session = (await made.json())["sessionId"]
    body = {"stream": "delta", "messages": [{"role": "user", "content": message}]}
    async with http.post(f"{address}/aap/sessions/{session}/turns", json=body) as turn:
        return (await turn.read()).count(b"event: text_delta")


STREAM = Stream("AAP", _read)


def watch(session: str, turn: str) -> list[bytes]:
    return [f"GET /aap/sessions/{session}/turns/current?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()]
