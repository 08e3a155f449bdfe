"""The server to compare with: a bare aiohttp handler that writes prepared events, one per write."""

import asyncio
import gc
import sys

import uvloop
from aiohttp import web

HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}

Script = list[tuple[float, bytes]]
"""Events in order, each with the pause before it."""


class BaselineServer:
    """Answers a message with the script that it was taught for it."""

    def __init__(self) -> None:
        self.scripts: dict[str, Script] = {}

    async def ready(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ready"})

    async def learn(self, request: web.Request) -> web.Response:
        taught = await request.json()
        self.scripts[taught["message"]] = [(pause, event.encode()) for pause, event in taught["script"]]
        return web.json_response({})

    async def create(self, request: web.Request) -> web.Response:
        await request.json()
        return web.json_response({"sessionId": "sess_000000000000000000000000"}, status=201)

    async def turn(self, request: web.Request) -> web.StreamResponse:
        script = self.scripts[(await request.json())["messages"][0]["content"]]
        response = web.StreamResponse(headers=HEADERS)
        response.enable_chunked_encoding()
        await response.prepare(request)
        for pause, event in script:
            if pause:
                await asyncio.sleep(pause)
            await response.write(event)
        return response


async def serve(port: int) -> None:
    player = BaselineServer()
    app = web.Application(client_max_size=1 << 30)
    app.add_routes([
        web.get("/readyz", player.ready),
        web.post("/script", player.learn),
        web.post("/aap/sessions", player.create),
        web.post("/aap/sessions/{id}/turns", player.turn),
    ])
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    gc.collect()
    gc.freeze()
    await asyncio.Event().wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(int(sys.argv[1])))
