"""CAS clients that work a server all day, and those that read a session again."""

import asyncio
import json
import socket

from bench.dialects import Addition, Replay, Visit
from bench.replay_client import ReplayClient
from bench.soak_clients import MESSAGES, TURNS_PER_SESSION, SoakClients
from bench.stored_sessions import StoredSession

SESSIONS = "/api/v1/cloud/sessions"
NEW = {"agent": "agent_demo", "environment": {"config": {"type": "cloud"}}}


async def _talk(clients: SoakClients) -> None:
    """One long stream over several turns, left and resumed; turns that are interrupted."""
    made = (await clients.call("POST", SESSIONS, NEW))["id"]
    last = ""
    for number in range(TURNS_PER_SESSION):
        stops = number % 4 == 3
        words = "/slow 1000" if stops else clients.random.choice(MESSAGES)
        said = {"type": "user.message", "content": words}
        await clients.call("POST", f"{SESSIONS}/{made}/events", {"events": [said]})
        if stops:
            await clients.call("POST", f"{SESSIONS}/{made}/events", {"events": [{"type": "user.interrupt"}]})
            clients.tally.interrupts += 1
        last = await _follow(clients, made, last)
        clients.tally.turn("cas")


async def _follow(clients: SoakClients, session: str, last: str) -> str:
    """Read on until the session is idle; the id of the last event."""
    headers = {"Last-Event-ID": last} if last else {}
    async with clients.http.get(f"{clients.address}{SESSIONS}/{session}/events/stream", headers=headers) as stream:
        async for line in stream.content:
            last = line[4:].decode().strip() if line.startswith(b"id: ") else last
            if line.startswith(b"data: ") and b'"session.status_idle"' in line:
                break
    clients.tally.returns += bool(headers)
    return last


async def _hang(clients: SoakClients) -> None:
    """A client that asks for everything and takes nothing; the server has to cut it."""
    made = (await clients.call("POST", SESSIONS, NEW))["id"]
    with socket.socket() as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        host, _, port = clients.address.rpartition("/")[2].partition(":")
        wire.connect((host, int(port)))
        path = f"{SESSIONS}/{made}/events/stream?event_deltas[]=agent.message"
        wire.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        events = {"events": [{"type": "user.message", "content": "/burst 3000"}]}
        await clients.call("POST", f"{SESSIONS}/{made}/events", events)
        await asyncio.sleep(5)
    clients.tally.turn("cas")
    clients.tally.hangs += 1


VISITS = {"cas": Visit(_talk, workers=2), "hung": Visit(_hang, workers=1)}
LISTS = ("/api/v1/cloud/sessions?limit=20",)
FILTERS = {
    "cas, no such status": f"{SESSIONS}?limit=20&statuses=nothing_like_it",
    "cas, no such agent": f"{SESSIONS}?limit=20&agent_id=nobodys",
    "cas, created later": f"{SESSIONS}?limit=20&created_at[gt]=2100-01-01T00:00:00Z",
}


async def _stream(client: ReplayClient, session: StoredSession, place: str) -> int:
    """With deltas, from the record of a cursor to the end of the last turn."""
    path = f"{SESSIONS}/{session.session_id}/events/stream?event_deltas[]=agent.message&"
    cursor = _cursor(session, place)
    path += f"after_id={cursor}" if cursor else "stream_start=replay"
    return await client.stream(path, f"\nid: {_event_id(session, session.head)}\n".encode())


async def _pages(client: ReplayClient, session: StoredSession, place: str) -> int:
    """Pages of 100 events, one after the other."""
    cursor, count = _cursor(session, place), 0
    while True:
        page = await client.get(page_path(session, cursor))
        count += page.count(b'"processed_at"')
        if page.endswith(b'"has_more":false,"next_page":null}'):
            return count
        cursor = json.loads(page)["last_id"]


def page_path(session: StoredSession, cursor: str) -> str:
    """The page of 100 events after a cursor, or the first one."""
    path = f"{SESSIONS}/{session.session_id}/events?limit=100"
    return f"{path}&after_id={cursor}" if cursor else path


async def _page(client: ReplayClient, session: StoredSession, place: str) -> int:
    """One page of 100 events; the last one is read backwards."""
    path = page_path(session, "" if place == "end" else _cursor(session, place))
    return (await client.get(f"{path}&order=desc" if place == "end" else path)).count(b'"processed_at"')


def _cursor(session: StoredSession, place: str) -> str:
    """The id of the last event of a turn."""
    if place == "zero":
        return ""
    turn = session.turns[len(session.turns) // 2 if place == "middle" else -1]
    return _event_id(session, turn[1] - 2)


def _event_id(session: StoredSession, seq: int) -> str:
    return f"evt_{session.session_id.removeprefix('sess_')}_{seq}"


def _file(number: int) -> bytes:
    """A small file as a form."""
    head = f'Content-Disposition: form-data; name="file"; filename="note-{number}.txt"\r\nContent-Type: text/plain'
    return f"--bench\r\n{head}\r\n\r\nNote {number}\r\n--bench--\r\n".encode()


REPLAYS = (Replay("cas SSE", _stream), Replay("cas pages", _pages))
PAGES = {"cas events": _page}
ADDITIONS = (
    Addition("agents", "/api/v1/cloud/agents", lambda number: {"name": f"Agent {number}", "model": "demo"}, 800),
    Addition("files", "/api/v1/cloud/files", _file, 10_000, "multipart/form-data; boundary=bench"),
)


def watch(session: str, turn: str) -> list[bytes]:
    path = f"{SESSIONS}/{session}/events/stream?event_deltas[]=agent.message&stream_start=replay"
    return [f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()]


IDLE_WATCH = watch
