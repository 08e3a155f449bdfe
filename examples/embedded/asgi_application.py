"""The gateway and an ASGI application in one process: `uvicorn --app-dir examples/embedded asgi_application:app`."""

from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from gateway import Dragoman


async def reply(text):
    yield f"You said: {text}"


@asynccontextmanager
async def lifespan(app):
    async with Dragoman(agents={"echo": reply}).listening(port=0) as url:
        app.state.agents = url
        yield


async def where(request):
    return JSONResponse({"agents": request.app.state.agents})


app = Starlette(routes=[Route("/", where)], lifespan=lifespan)
