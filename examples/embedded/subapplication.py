"""The gateway as a part of an aiohttp application: `python examples/embedded/subapplication.py`."""

from aiohttp import web

from gateway import Dragoman


async def reply(text):
    yield f"You said: {text}"


async def front(request):
    return web.Response(text="My own page. The agent is below /agents.\n")


def application():
    app = web.Application(client_max_size=32 * 1024**2)
    app.router.add_get("/", front)
    app.add_subapp("/agents", Dragoman(agents={"echo": reply}).application())
    return app


if __name__ == "__main__":
    web.run_app(application(), host="127.0.0.1", port=8080)
