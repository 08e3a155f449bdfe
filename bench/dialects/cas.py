"""CAS clients that work a server all day."""

import asyncio
import socket

from bench.dialects import Visit
from bench.soak_clients import MESSAGES, TURNS_PER_SESSION, SoakClients

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
