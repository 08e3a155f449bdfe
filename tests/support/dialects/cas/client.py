"""A plain CAS client for tests, over real HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any

import orjson
from aiohttp import ClientResponse

from tests.support.dialects.cas.reader import Frame, read_stream
from tests.support.gateway_server import Served

AT = "/api/v1/cloud"
MINE = {"type": "custom", "name": "mine", "description": "A tool of the client.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}


def toolset(**policies: str) -> dict[str, Any]:
    """The server's tools, each with what the agent may do with it."""
    return {"type": "agent_toolset_20260401", "enabled_tools": [*policies], "configs": [
        {"name": name, "permission_policy": {"type": f"always_{policy}"}} for name, policy in policies.items()
    ]}


class EventStream:
    """An open stream, read as it comes."""

    def __init__(self, response: ClientResponse) -> None:
        self.response = response
        self.rest = b""
        self.comments = 0
        self.frames: list[Frame] = []

    async def until(self, *types: str, times: int = 1, **also: Any) -> list[Frame]:
        """Everything up to the event that is waited for."""
        heard: list[Frame] = []
        async with asyncio.timeout(40):
            while True:
                frame = await self.next()
                heard.append(frame)
                if frame.type in types and all(frame.body.get(key) == value for key, value in also.items()):
                    times -= 1
                    if not times:
                        return heard

    async def next(self) -> Frame:
        while b"\n\n" not in self.rest or self._comment():
            if b"\n\n" not in self.rest:
                some = await self.response.content.readany()
                if not some:
                    raise EOFError("the stream has ended")
                self.rest += some
        block, _, self.rest = self.rest.partition(b"\n\n")
        [frame] = read_stream(block + b"\n\n")
        self.frames.append(frame)
        return frame

    def _comment(self) -> bool:
        if not self.rest.startswith(b":"):
            return False
        self.comments += 1
        self.rest = self.rest.partition(b"\n\n")[2]
        return True

    async def over(self) -> bool:
        try:
            while True:
                await self.next()
        except EOFError:
            return True


class Client:
    """What a script would do."""

    def __init__(self, served: Served, key: str | None = None, at: str = AT) -> None:
        self.served = served
        self.at = at
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}

    async def call(
        self, method: str, path: str, body: Any = None, *, raw: BytesIO | None = None, **headers: str,
    ) -> tuple[int, Any]:
        content = raw if raw is not None else orjson.dumps(body) if body is not None else None
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.served.http.request(
            method, self.served.url(f"{self.at}{path}"), data=content, headers={**self.headers, **sent},
        ) as response:
            assert response.headers["x-request-id"]
            text = await response.read()
            return response.status, orjson.loads(text) if text else None

    async def ok(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = await self.call(method, path, body)
        assert status in (200, 201, 202), answer
        return answer

    async def agent(self, *tools: dict[str, Any], **more: Any) -> str:
        body = {"name": "made", "model": "demo-1", "tools": list(tools), **more}
        return str((await self.ok("POST", "/agents", body))["id"])

    async def new(self, **body: Any) -> dict[str, Any]:
        body = {"agent": "agent_demo", "environment": {"config": {"type": "cloud"}}, **body}
        status, made = await self.call("POST", "/sessions", body)
        assert status == 201, made
        return dict(made)

    async def session(self, *tools: dict[str, Any], **body: Any) -> str:
        agent = {"agent": await self.agent(*tools)} if tools else {}
        return str((await self.new(**agent, **body))["id"])

    async def send(self, session: str, *events: dict[str, Any] | str) -> tuple[int, Any]:
        said = [{"type": "user.message", "content": one} if isinstance(one, str) else one for one in events]
        return await self.call("POST", f"/sessions/{session}/events", {"events": said})

    async def sent(self, session: str, *events: dict[str, Any] | str) -> list[dict[str, Any]]:
        status, answer = await self.send(session, *events)
        assert status == 202, answer
        assert list(answer) == ["data"]
        return list(answer["data"])

    async def events(self, session: str, query: str = "limit=100") -> list[dict[str, Any]]:
        return list((await self.ok("GET", f"/sessions/{session}/events?{query}"))["data"])

    @asynccontextmanager
    async def listening(
        self, session: str, query: str = "", *, path: str = "events/stream", **headers: str,
    ) -> AsyncIterator[EventStream]:
        url = self.served.url(f"{self.at}/sessions/{session}/{path}?{query}")
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.served.http.get(url, headers={**self.headers, **sent}) as response:
            assert response.status == 200, await response.read()
            assert response.content_type == "text/event-stream"
            yield EventStream(response)

    async def turn(self, session: str, *events: dict[str, Any] | str) -> list[dict[str, Any]]:
        """Send, and wait for the turn to yield: the events of the turn since then."""
        before = len(await self.every(session))
        sent = await self.sent(session, *events)
        async with self.listening(session, f"after_id={sent[-1]['id']}") as stream:
            await stream.until("session.status_idle", turn_id=sent[-1]["turn_id"])
        return (await self.every(session))[before:]

    async def every(self, session: str) -> list[dict[str, Any]]:
        """All the events, page by page."""
        found, query = list[dict[str, Any]](), "limit=100"
        while True:
            page = await self.ok("GET", f"/sessions/{session}/events?{query}")
            found += page["data"]
            if not page["has_more"]:
                return found
            query = f"limit=100&page={page['next_page']}"


def types(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def confirm(event_id: str, result: str = "allow", **more: Any) -> dict[str, Any]:
    return {"type": "user.tool_confirmation", "tool_use_id": event_id, "result": result, **more}


def result(event_id: str, content: Any = None, **more: Any) -> dict[str, Any]:
    return {"type": "user.custom_tool_result", "custom_tool_use_id": event_id, "content": content, **more}
