"""Turns of a served gateway that send the header `traceparent`."""

from tests.support.gateway_server import Served

TRACE, CLIENT = "ab" * 16, "cd" * 8
HEADER = f"00-{TRACE}-{CLIENT}-01"


async def create_session(served: Served, *tools: str) -> str:
    agent = {"name": "demo", "tools": [{"name": tool, "trust": True} for tool in tools]}
    async with served.http.post(served.url("/aap/sessions"), json={"agent": agent}) as made:
        return str((await made.json())["sessionId"])


async def say(served: Served, session: str, words: str, **headers: str) -> None:
    """Play a turn to its end."""
    said = {"messages": [{"role": "user", "content": words}], "stream": "none"}
    async with served.http.post(served.url(f"/aap/sessions/{session}/turns"), json=said, headers=headers) as response:
        assert response.status == 200
        await response.read()


async def turn(served: Served, words: str, *tools: str, **headers: str) -> str:
    """The session of a turn that was played to its end."""
    session = await create_session(served, *tools)
    await say(served, session, words, **headers)
    return session
