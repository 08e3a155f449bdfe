"""Quill clients that work a server all day."""

from bench.dialects import Visit
from bench.soak_clients import MESSAGES, TURNS_PER_SESSION, SoakClients


async def _talk(clients: SoakClients) -> None:
    """Lines, each read to the end of its answer."""
    talk = (await clients.call("POST", "/quill/talks"))["talk"]
    for _ in range(TURNS_PER_SESSION):
        body = {"text": clients.random.choice(MESSAGES)}
        async with clients.http.post(f"{clients.address}/quill/talks/{talk}/lines", json=body) as stream:
            await stream.read()
        clients.tally.turn("quill")


VISITS = {"quill": Visit(_talk, workers=1)}
