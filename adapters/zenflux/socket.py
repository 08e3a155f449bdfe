"""The chat socket: requests in, responses and the frames of runs out; one run at a time, one after the other."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import orjson

from gateway.errors import Busy, GatewayError, Invalid
from gateway.upstream import mended
from gateway.web import Rest, Socket, checked, dumps, loads

from .chat import Begun, Chats, NoAgent, NoConversation
from .manner import on_socket
from .wire import ChatAbort, ChatSend, SessionResume

CODES: dict[type[GatewayError], str] = {NoAgent: "AGENT_NOT_FOUND", NoConversation: "CONVERSATION_NOT_FOUND"}


class ChatSocket:
    """One client. What cannot be understood is passed over; what can be, and is wrong, is refused; nothing hangs up."""

    def __init__(self, chats: Chats, owner: str, socket: Socket) -> None:
        self._chats = chats
        self._house = chats.house
        self._owner = owner
        self._socket = socket
        self._run: Begun | None = None
        self._task: asyncio.Task[None] | None = None
        self._methods: dict[str, Callable[[str, Any], Awaitable[None]]] = {
            "chat.send": self._send, "chat.abort": self._abort, "session.resume": self._resume,
        }

    async def hear(self, frame: bytes) -> None:
        try:
            said = read(frame)
        except ValueError:
            return
        kind = said.get("type") if isinstance(said, dict) else None
        if kind == "ping":
            await self._say("pong", at=self._house.clock())
        elif kind == "req":
            await self._answer(said)

    async def quiet(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])

    async def gone(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    # -- requests -------------------------------------------------------------------------------------------------

    async def _answer(self, said: dict[str, Any]) -> None:
        request_id = said.get("id")
        if not isinstance(request_id, str | int) or request_id == "":
            request_id = str(uuid4())
        method, params = said.get("method"), said.get("params", {})
        act = self._methods.get(method) if isinstance(method, str) else None
        if act is None:
            await self._say("refused", id=request_id, code="METHOD_NOT_FOUND", message=f"unknown method: {method}")
            return
        try:
            if not isinstance(params, dict):
                raise Invalid("params: an object is wanted", param="params")
            await act(request_id, params)  # type: ignore[arg-type]  # an id that is a number is given back as one
        except GatewayError as error:
            code = CODES.get(type(error)) or self._house.table.word("fault@code", error.code)
            await self._say("refused", id=request_id, code=code, message=error.message)

    async def _send(self, request_id: str, params: dict[str, Any]) -> None:
        """Whoever speaks while the agent does interrupts it; the response comes before the first frame of the run."""
        body = checked(ChatSend, params)
        wish = await self._chats.check(self._owner, body)
        await self._interrupt()
        async with self._socket.speaking() as send:
            run = self._run = await self._chats.begin(wish)
            manner = on_socket(self._house.settings, run.before, stream=body.stream)
            await send((dumps(self._house.table.object(
                "accepted", id=request_id, run_id=run.run_id, session_id=run.view.session_id,
                message_id=run.message_id,
            )),))
        self._task = asyncio.create_task(self._follow(run, manner), name=f"socket of {run.run_id}")

    async def _abort(self, request_id: str, params: dict[str, Any]) -> None:
        run_id = checked(ChatAbort, params).session_id
        async with self._socket.speaking() as send:
            await self._chats.stop(self._owner, run_id)
            payload = self._house.table.object("stop", run_id=run_id, at=self._house.clock())
            await send((dumps(self._house.table.object("stopped", id=request_id, payload=payload)),))

    async def _resume(self, request_id: str, params: dict[str, Any]) -> None:
        """Go on with a run that goes on, or is over, after an event that the client has had."""
        body = checked(SessionResume, params)
        self._house.check_open()
        if self._is_telling:
            raise Busy("this connection tells a session already; wait for its end, or open another one")
        run = await self._chats.begun(self._owner, body.session_id)
        manner = on_socket(self._house.settings, run.before, stream=body.stream)
        await self._check(run, manner, body.after_seq)
        self._run = run
        await self._say(
            "resumed", id=request_id, run_id=run.run_id, session_id=run.view.session_id, message_id=run.message_id,
            after_seq=body.after_seq,
        )
        self._task = asyncio.create_task(self._follow(run, manner, body.after_seq), name=f"socket of {run.run_id}")

    async def _check(self, run: Begun, manner: str, after_seq: int) -> None:
        """Nobody can have had more than was said, and the words that are held back just now."""
        told = 1
        async for chunk in self._house.sessions.read(
            self._owner, run.view.session_id, self._house.dialect, manner, after=run.receipt.after,
        ):
            told += len(chunk.frames)
            if told >= after_seq or chunk.ends:
                break
        if after_seq > told:
            raise Invalid(f"after_seq: session '{run.run_id}' has not come to event {after_seq} yet", param="after_seq")

    # -- runs -----------------------------------------------------------------------------------------------------

    async def _interrupt(self) -> None:
        """End the run that is being told, and let its last frames be said."""
        if self._task is not None and self._run is not None and self._is_telling:
            await self._chats.stop(self._owner, self._run.run_id)
            await asyncio.wait([self._task], timeout=self._house.patience)

    @property
    def _is_telling(self) -> bool:
        return self._task is not None and not self._task.done()

    async def _follow(self, run: Begun, manner: str, had: int = 0) -> None:
        try:
            async with self._house.following(self._owner, run.view.session_id, run.receipt, manner) as subscription:
                if not await self._socket.follow(Rest(subscription, had)):
                    await self._socket.part(subscription)
        except ConnectionResetError:
            pass  # the client has left, and the reading end knows it too

    async def _say(self, name: str, **names: Any) -> None:
        await self._socket.send((dumps(self._house.table.object(name, **names)),))


def read(frame: bytes) -> Any:
    """The JSON of a frame; pages cut texts anywhere, and half of a character is none."""
    try:
        return loads(frame)
    except orjson.JSONDecodeError:
        return loads(mended(frame.decode()))
