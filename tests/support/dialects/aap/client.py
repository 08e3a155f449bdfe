"""A plain AAP client for tests, over HTTP."""

from io import BytesIO
from typing import Any

import orjson

from tests.support.dialects.aap.reader import TurnText, read, read_stream
from tests.support.gateway_server import Served

MINE = {"name": "mine", "description": "A tool of the client.", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
}}


class Client:
    """A plain AAP client."""

    def __init__(self, served: Served, key: str | None = None) -> None:
        self.served = served
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}

    async def call(
        self, method: str, path: str, body: Any = None, *, raw: bytes | BytesIO | None = None,
    ) -> tuple[int, Any]:
        content = raw if raw is not None else orjson.dumps(body) if body is not None else None
        async with self.served.http.request(
            method, self.served.url(f"/aap{path}"), data=content, headers=self.headers,
        ) as response:
            text = await response.read()
            return response.status, orjson.loads(text) if text else None

    async def session(self, **body: Any) -> str:
        agent = {"name": "demo", **body.pop("agent", {})}
        status, made = await self.call("POST", "/sessions", {"agent": agent, **body})
        assert status == 201, made
        return str(made["sessionId"])

    async def turn(self, session: str, *messages: Any, stream: str = "delta", **more: Any) -> TurnText:
        said = [{"role": "user", "content": m} if isinstance(m, str) else m for m in messages]
        body = {"messages": said, "stream": stream, **more}
        async with self.served.http.post(
            self.served.url(f"/aap/sessions/{session}/turns"), json=body, headers=self.headers,
        ) as response:
            content = await response.read()
            assert response.status == 200, content
            if stream == "none":
                assert response.content_type == "application/json"
                return read(orjson.loads(content))
            assert response.content_type == "text/event-stream"
            [heard] = read_stream(content)
            return heard

    async def history(self, session: str, kind: str = "full") -> list[Any]:
        status, body = await self.call("GET", f"/sessions/{session}/history?type={kind}")
        assert status == 200, body
        assert list(body["history"]) == [kind]
        return list(body["history"][kind])
