"""The operation that imports what another server has, and tells of each session and thing what became of it."""

import asyncio

import msgspec
from aiohttp import web
from pydantic import Field

from gateway.errors import GatewayError, Invalid
from gateway.http import WireModel, read_json
from gateway.migration import PARTS, ImportChoice, ImportLine, ImportNews, ImportOrder, ResourceLine
from gateway.ports import RemoteAddress, Timeouts

from .operations import ConsoleServices, Operation

LINES = 100
"""How many lines wait at most for a client that reads slowly; the import waits for it."""
ATTEMPTS = 2
JSON_LINES = "application/jsonl"
STOPPED = "the server is about to stop; start the import again when it is back"
ADDRESSES = ("http://", "https://")


class ImportToRun(WireModel):
    """The server to import from, and what is imported; times are in seconds since the epoch."""

    dialect: str
    url: str
    key: str = ""
    user: str = ""
    owner: str = ""
    agent: str | None = None
    since: float | None = None
    rate: float | None = Field(None, gt=0)
    dry_run: bool = False
    parts: list[str] = Field(default=[*PARTS], min_length=1)
    timeout: float = Field(300.0, gt=0, le=3600)

    def order(self) -> ImportOrder:
        if not self.url.startswith(ADDRESSES):
            raise Invalid("must be an http or https address", param="url")
        patience = Timeouts(first_byte=self.timeout, idle=self.timeout, attempts=ATTEMPTS)
        return ImportOrder(
            dialect=self.dialect, user=self.user, owner=self.owner, agent=self.agent, parts=tuple(self.parts),
            address=RemoteAddress(url=self.url.rstrip("/"), key=self.key, patience=patience),
            choice=ImportChoice(since=self.since, rate=self.rate, is_dry=self.dry_run),
        )


class ImportRoutes:
    """One method per operation."""

    def __init__(self, services: ConsoleServices) -> None:
        self._services = services

    def operations(self) -> list[Operation]:
        return [
            Operation(method="POST", path="/imports", handler=self.run, body=ImportToRun, for_admins=True,
                      media_type=JSON_LINES, answer=ImportNews,
                      summary="Import what another server has: a line of JSON for each session and each other thing, "
                              "and one at the end. "
                              "The import stops when the client leaves."),
        ]

    async def run(self, request: web.Request) -> web.StreamResponse:
        self._services.check_open()
        order = (await read_json(request, ImportToRun)).order()
        news = asyncio.Queue[ImportNews](LINES)
        response = web.StreamResponse(headers={"Content-Type": JSON_LINES})
        await response.prepare(request)
        running = asyncio.create_task(self._import(order, news), name="import")
        try:
            while True:
                one = await self._next(news)
                if running.done() and news.empty() and one is None:
                    running.result()
                await response.write(b"\n" if one is None else msgspec.json.encode(one) + b"\n")
                if one is not None and (one.done is not None or one.error):
                    break
        finally:
            running.cancel()
            await asyncio.wait([running])
        await response.write_eof()
        return response

    async def _next(self, news: "asyncio.Queue[ImportNews]") -> ImportNews | None:
        """The next line; None if there was none for a while, so that a client that has left is noticed."""
        if self._services.is_stopping():
            return ImportNews(error=STOPPED)
        try:
            async with asyncio.timeout(self._services.heartbeat()):
                return await news.get()
        except TimeoutError:
            return None

    async def _import(self, order: ImportOrder, news: "asyncio.Queue[ImportNews]") -> None:
        async def report(line: ImportLine | ResourceLine) -> None:
            await news.put(ImportNews(line=line) if isinstance(line, ImportLine) else ImportNews(resource=line))

        try:
            end = ImportNews(done=await self._services.imports.run(order, report))
        except GatewayError as error:
            end = ImportNews(error=error.message)
        await news.put(end)
