"""An AG-UI server on loopback, saying what it is told to in the protocol's own encoding, and turns to play with it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from ag_ui.core import RunAgentInput
from ag_ui.core import events as agui
from ag_ui.encoder import EventEncoder
from aiohttp import web

import gateway.model as m
from gateway.backends.agui import KIND, AguiBackend, AguiSettings
from tests.support.backends.turn_driver import FakeTurn, play

START = agui.RunStartedEvent(thread_id="t", run_id="r")
END = agui.RunFinishedEvent(thread_id="t", run_id="r")


def encoded(*events: Any) -> bytes:
    encode = EventEncoder().encode
    return "".join(event if isinstance(event, str) else encode(event) for event in events).encode()


def text(words: str, message_id: str = "m1", *, cuts: int = 1) -> list[Any]:
    size = max(1, -(-len(words) // cuts))
    return [
        agui.TextMessageStartEvent(message_id=message_id, role="assistant"),
        *(agui.TextMessageContentEvent(message_id=message_id, delta=words[at:at + size])
          for at in range(0, len(words), size)),
        agui.TextMessageEndEvent(message_id=message_id),
    ]


def call(call_id: str, name: str, *fragments: str, parent: str | None = None) -> list[Any]:
    return [
        agui.ToolCallStartEvent(tool_call_id=call_id, tool_call_name=name, parent_message_id=parent),
        *(agui.ToolCallArgsEvent(tool_call_id=call_id, delta=fragment) for fragment in fragments),
        agui.ToolCallEndEvent(tool_call_id=call_id),
    ]


def result(call_id: str, content: Any) -> Any:
    return agui.ToolCallResultEvent(message_id=f"result of {call_id}", tool_call_id=call_id, content=content)


class Server:
    """Plays one run after the other; remembers what it was asked, which must be what the protocol says."""

    def __init__(self) -> None:
        self.runs: list[Any] = []
        """What to do with each request: events, bytes in pieces, or a status and a body."""
        self.asked: list[RunAgentInput] = []
        self.bodies: list[bytes] = []
        self.headers: list[Any] = []
        self.left = asyncio.Event()
        self.url = ""

    def play(self, *runs: Any) -> None:
        self.runs = list(runs)

    def _placed(self, event: Any) -> Any:
        """An event of the run, in the thread it was asked for in."""
        ours = getattr(event, "thread_id", None) == "t"
        return event.model_copy(update={"thread_id": self.asked[-1].thread_id}) if ours else event

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.read())
        self.asked.append(RunAgentInput.model_validate_json(self.bodies[-1]))
        self.headers.append(request.headers)
        run = self.runs.pop(0)
        if isinstance(run, web.Response):
            return run
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            for piece in [encoded(*map(self._placed, run))] if isinstance(run, list) else run:
                if piece is None:
                    await asyncio.Event().wait()
                await response.write(piece)
        except asyncio.CancelledError:
            self.left.set()
            raise
        return response


@asynccontextmanager
async def server() -> AsyncIterator[Server]:
    made, app = Server(), web.Application()
    app.router.add_post("/agent", made.answer)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    made.url = f"http://{host}:{port}/agent"
    try:
        yield made
    finally:
        await runner.cleanup()


@asynccontextmanager
async def backend(url: str, **given: Any) -> AsyncIterator[AguiBackend]:
    made = AguiBackend(AguiSettings.model_validate({"url": url, "attempts": 1, **given}))
    try:
        yield made
    finally:
        await made.close()


class Turn(FakeTurn):
    """A turn of a session that remembers its metadata from turn to turn."""

    asked: Sequence[Any] = ()

    def __init__(self, message: Any = "hello", *, metadata: dict[str, Any] | None = None, **given: Any) -> None:
        self.metadata: dict[str, Any] = metadata if metadata is not None else {}
        command = message if isinstance(message, m.SendMessage) else m.SendMessage(content=message)
        super().__init__(command, agent=KIND.card, **given)

    def record(self, event: Any, scope_id: str = "root") -> None:
        super().record(event, scope_id)
        if isinstance(event, m.SessionUpdated) and event.metadata is not None:
            self.metadata.update(event.metadata)


async def played(made: AguiBackend, message: Any = "hello", **given: Any) -> Turn:
    turn = Turn(message, **given)
    await play(made, turn)
    return turn
