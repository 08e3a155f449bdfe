"""A folder with dialects that are tables alone, and servers of them."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from gateway.cli.starter_files import skeleton_files
from tests.support.gateway_server import Served, serving

NAME = "nova"
Change = Callable[[dict[str, Any]], None]


class PlainFolder:
    """A folder that settings may name under `dialect_folders`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        (folder / "mappings").mkdir(parents=True)

    def write(self, change: Change | None = None, name: str = NAME) -> Path:
        """The table of the skeleton, as `dragoman new-dialect` writes it, with a change."""
        text = dict(skeleton_files(name))[Path("mappings", f"{name}.yaml")]
        table = yaml.safe_load(text)
        if change is not None:
            change(table)
        file = self.path / "mappings" / f"{name}.yaml"
        file.write_text(yaml.safe_dump(table, sort_keys=False), "utf-8")
        return file

    @asynccontextmanager
    async def serving(self, change: Change | None = None, **settings: Any) -> AsyncIterator["PlainClient"]:
        """The table of the skeleton, with a change, served with the demo agent."""
        self.write(change)
        given = {"dialects": {NAME: {}}, "dialect_folders": [str(self.path)], "log": "memory", **settings}
        async with serving(self.path, **given) as served:
            yield PlainClient(served)


class PlainClient:
    """Talks to the skeleton's dialect."""

    def __init__(self, served: Served) -> None:
        self.served, self.http = served, served.http

    def url(self, path: str) -> str:
        return self.served.url(f"/{NAME}{path}")

    def ask(
        self, method: str, path: str, body: Any = None, **more: Any
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        return self.http.request(method, self.url(path), json=body, **more)

    async def json(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        async with self.ask(method, path, body, **more) as response:
            text = await response.read()
            return response.status, await response.json(content_type=None) if text else None

    async def session(self) -> str:
        _, made = await self.json("POST", "/sessions", {})
        return str(made["id"])

    async def events(
        self, method: str, path: str, body: Any = None, count: int | None = None, **more: Any
    ) -> list[str]:
        """The events of a stream, each as its text; all until it ends, or so many."""
        found: list[str] = []
        async with self.ask(method, path, body, **more) as response:
            assert response.content_type == "text/event-stream", await response.text()
            text = ""
            async for piece in response.content.iter_any():
                text += piece.decode()
                *whole, text = text.split("\n\n")
                found += [event for event in whole if not event.startswith(":")]
                if count is not None and len(found) >= count:
                    return found
        return found


def event_id(event: str) -> str:
    return next(line.removeprefix("id: ") for line in event.splitlines() if line.startswith("id: "))
