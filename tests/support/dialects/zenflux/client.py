"""A small ZenFlux client for tests: a chat socket, and calls that unwrap the wrapper."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from gateway.reload import ReloadRequests
from tests.support.dialects.zenflux.reader import Run, read_stream
from tests.support.gateway_server import Served, reloadable, serving, write_settings

API = "/api/v1"


class Chat:
    """One socket; responses and events are kept apart."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self.ws = ws
        self.events: list[dict[str, Any]] = []
        self.responses: list[dict[str, Any]] = []
        self.frames: list[dict[str, Any]] = []
        self._count = 0

    async def next(self) -> dict[str, Any]:
        frame: dict[str, Any] = await self.ws.receive_json(timeout=30)
        self.frames.append(frame)
        if frame["type"] == "event" and frame["seq"]:
            assert frame["event"] == frame["payload"]["type"]
            assert frame["seq"] == frame["payload"]["seq"]
            self.events.append(frame["payload"])
        elif frame["type"] == "res":
            self.responses.append(frame)
        return frame

    async def ask(self, method: Any, **params: Any) -> dict[str, Any]:
        """The response to a request."""
        self._count += 1
        request_id = f"req-{self._count}"
        await self.ws.send_json({"type": "req", "id": request_id, "method": method, "params": params})
        while not any(res["id"] == request_id for res in self.responses):
            await self.next()
        return next(res for res in self.responses if res["id"] == request_id)

    async def send(self, message: str, **params: Any) -> dict[str, Any]:
        """The payload of an accepted message."""
        response = await self.ask("chat.send", message=message, **{"user_id": "local", **params})
        assert response["ok"], response
        return response["payload"]

    async def until(self, event: str, session_id: str | None = None) -> dict[str, Any]:
        """The data of the next event of that name, heard already or not."""
        while True:
            for envelope in self.events:
                if envelope["type"] == event and session_id in (None, envelope["session_id"]):
                    return envelope["data"]
            await self.next()

    async def asked(self) -> dict[str, Any]:
        """The confirmation that is requested next."""
        while True:
            for envelope in self.events:
                if envelope["type"] == "message_delta" and envelope["data"]["type"] == "confirmation_request":
                    return envelope["data"]["delta"]["content"]
            await self.next()

    async def run(self, message: str, **params: Any) -> Run:
        """A whole run."""
        begun = await self.send(message, **params)
        return await self.over(begun["session_id"])

    async def over(self, session_id: str) -> Run:
        await self.until("session_end", session_id)
        mine = [envelope for envelope in self.events if envelope["session_id"] == session_id]
        return read_stream(mine)[0]


class Client:
    """A served gateway, spoken to in ZenFlux."""

    def __init__(self, served: Served, key: str | None = None) -> None:
        self.served = served
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}

    @asynccontextmanager
    async def chat(self) -> AsyncIterator[Chat]:
        url = self.served.url(f"{API}/ws/chat")
        async with self.served.http.ws_connect(url, headers=self.headers, max_msg_size=0) as ws:
            yield Chat(ws)

    async def call(self, method: str, path: str, *, status: int = 200, at: str = API, **options: Any) -> Any:
        """The data of a wrapped answer."""
        url = self.served.url(f"{at}{path}")
        async with self.served.http.request(method, url, headers=self.headers, **options) as answer:
            body = await answer.json()
            assert answer.status == status, body
            assert body["code"] == status
            assert isinstance(body["message"], str)
            assert (body["message"] == "success") is (status == 200)
            if status != 200:
                assert body["data"] is None
                assert body["detail"]["message"] == body["message"]
                assert body["detail"]["code"].isupper()
            return body["data"] if status == 200 else body["message"]

    async def stream(self, **body: Any) -> bytes:
        async with self.served.http.post(self.served.url(f"{API}/chat"), json=body, headers=self.headers) as answer:
            assert answer.status == 200, await answer.text()
            assert answer.headers["Content-Type"].startswith("text/event-stream")
            return await answer.read()


async def keyed(client: Client, name: str) -> Client:
    """The client of another user, with a key of its own."""
    return Client(client.served, await client.served.gateway.keys.add(name))


DIALECTS: dict[str, Any] = {"aap": {}, "zenflux": {}}


@asynccontextmanager
async def talking(folder: Path, *, zenflux: dict[str, Any] | None = None, **settings: Any) -> AsyncIterator[Client]:
    """A gateway that serves ZenFlux and AAP."""
    dialects = {**DIALECTS, "zenflux": zenflux or {}}
    async with serving(folder, dialects=dialects, **{"log": "memory", **settings}) as served:
        yield Client(served)


class ReloadableClient(Client):
    """A client of a server that admins can let read its settings again."""

    def write_settings(self, **settings: Any) -> None:
        file = self.served.gateway.components.config.file
        assert file is not None
        write_settings(file.parent, dialects=DIALECTS, **{"log": "memory", **settings})


@asynccontextmanager
async def talking_reloadable(folder: Path, **settings: Any) -> AsyncIterator[ReloadableClient]:
    """A gateway as of `talking`, which reads `config.yaml` again if an admin asks for it."""
    requests = ReloadRequests()
    async with (
        serving(folder, dialects=DIALECTS, reloads=requests, **{"log": "memory", **settings}) as served,
        reloadable(served.gateway, requests),
    ):
        yield ReloadableClient(served)
