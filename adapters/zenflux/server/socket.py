"""The chat socket: requests in, responses and the frames of runs out; one run at a time, one after the other."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import uuid4

import orjson

import gateway.model as m
from adapters.zenflux.bodies import AcceptedFrame, PongFrame, RefusedFrame, ResumedFrame, StopBody, StoppedFrame, spell
from adapters.zenflux.wire import ChatAbort, ChatSend, SessionResume
from gateway.client import replace_lone_surrogates_in_steps
from gateway.errors import Busy, GatewayError, Invalid
from gateway.field_errors import quote_value
from gateway.http import ResumedSubscription, WebSocketWriter, dumps, validate
from gateway.json_values import JsonLimitExceeded, Steps, read_json_in_steps
from gateway.ports import FramePlace, StreamSlot
from gateway.time_slices import run_in_slices
from mappings.language import Body

from .agents import AgentNotFound
from .chat_service import ChatService, ConversationNotFound, FileNotFound, StartedRun
from .projector import WAITING_STOP_REASONS
from .stream_options import StreamOptions, socket_options

Method = Callable[[str, Any], Awaitable[None]]
NEXT_MESSAGE_WAIT = 20.0
"""Seconds that a message waits for a run that has sent message_stop; clients wait 30 for the response."""
ID_SEARCH_BYTES = 4096
"""So many bytes of a frame that cannot be read are searched for its id."""
TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s"\[\]{}:,]+')
PUNCTUATION = (":", ",")
BRACKETS = {"{": 1, "[": 1, "}": -1, "]": -1}
ERROR_CODES: dict[type[GatewayError], str] = {
    AgentNotFound: "AGENT_NOT_FOUND", ConversationNotFound: "CONVERSATION_NOT_FOUND", FileNotFound: "VALIDATION_ERROR",
}


class ChatSocket:
    """One client. A frame that is no request is ignored, a wrong request is refused; neither closes the connection."""

    def __init__(self, chats: ChatService, owner: str, socket: WebSocketWriter) -> None:
        self._chats = chats
        self._context = chats.context
        self._owner = owner
        self._socket = socket
        self._run: StartedRun | None = None
        self._task: asyncio.Task[None] | None = None
        self._order = asyncio.Lock()
        self._waiting: set[asyncio.Task[None]] = set()
        self._methods: dict[str, Method] = {
            "chat.send": self._send, "chat.abort": self._abort, "session.resume": self._resume,
        }

    async def on_frame(self, frame: bytes) -> None:
        try:
            message = await run_in_slices(decode_frame(frame))
        except ValueError as error:
            if (request_id := find_request_id(frame)) is not None:
                code = self._context.table.word("fault@code", m.FaultCode.INVALID)
                words = str(error) if isinstance(error, JsonLimitExceeded) else f"the frame is not JSON: {error}"
                await self._say(RefusedFrame(id=request_id, code=code, message=words))
            return
        kind = message.get("type") if isinstance(message, dict) else None
        if kind == "ping":
            await self._say(PongFrame(at=self._context.clock()))
        elif kind == "req":
            await self._answer(message)

    async def wait_until_idle(self) -> None:
        while running := self._running:
            await asyncio.wait(running)

    async def on_disconnect(self) -> None:
        while running := self._running:
            for task in running:
                task.cancel()
            await asyncio.wait(running)

    @property
    def _running(self) -> set[asyncio.Task[None]]:
        return {*self._waiting, *([self._task] if self._task is not None and self._is_telling else [])}

    # -- requests -------------------------------------------------------------------------------------------------

    async def _answer(self, message: dict[str, object]) -> None:
        request_id = message.get("id")
        if not isinstance(request_id, str | int) or request_id == "":
            request_id = str(uuid4())
        method, params = message.get("method"), message.get("params", {})
        act = self._methods.get(method) if isinstance(method, str) else None
        if act is None:
            await self._say(RefusedFrame(
                id=request_id, code="METHOD_NOT_FOUND", message=f"unknown method: {method}"))
            return
        await self._do(request_id, str(method), act, params)

    async def _do(self, request_id: Any, method: str, act: Method, params: object) -> None:
        try:
            await self._context.count_request(self._owner, method)
            if not isinstance(params, dict):
                raise Invalid(f"params: must be an object, not {quote_value(params)}", param="params")
            await act(request_id, params)  # an id that is a number is given back as one
        except GatewayError as error:
            code = ERROR_CODES.get(type(error)) or self._context.table.word("fault@code", error.code)
            await self._say(RefusedFrame(id=request_id, code=code, message=error.message))

    async def _send(self, request_id: str, params: dict[str, object]) -> None:
        """A message during a run interrupts the run, unless the run may be taken to have finished."""
        validate(ChatSend, params)
        if not self._order.locked() and not await self._seems_over():
            await self._begin(request_id, params)
            return
        waiting = asyncio.create_task(self._send_later(request_id, params), name=f"socket, {request_id} waits")
        self._waiting.add(waiting)
        waiting.add_done_callback(self._waiting.discard)

    async def _send_later(self, request_id: str, params: dict[str, object]) -> None:
        """Wait for the end of the run, and stop it after a while; other requests are handled meanwhile."""
        with suppress(ConnectionResetError):
            async with self._order:
                if self._task is not None and await self._seems_over():
                    await asyncio.wait([self._task], timeout=NEXT_MESSAGE_WAIT)
                await self._do(request_id, "chat.send", self._begin, params)

    async def _seems_over(self) -> bool:
        """Whether a message of the run has ended, which is the run's end for many clients, and no ask is open."""
        run = self._run
        if run is None or not self._is_telling or not self._context.settings.multi_message:
            return False
        view = await self._context.sessions.get(self._owner, run.view.session_id)
        reasons = {entry.message_id: entry.stop_reason for entry in (*view.entries, *view.speaking.values())
                   if entry.turn_id == run.run_id and entry.scope_id == m.ROOT and entry.role is m.Role.ASSISTANT}
        stopped = len(reasons) > 1 or any(reason not in (None, *WAITING_STOP_REASONS) for reason in reasons.values())
        return stopped and not view.asks

    async def _begin(self, request_id: str, params: dict[str, object]) -> None:
        """Start a run; the client gets the response before the first frame of the run."""
        body = validate(ChatSend, params)
        wish = await self._chats.check(self._owner, body)
        place = self._context.sessions.reserve_stream(self._owner)
        try:
            await self._interrupt()
            async with self._socket.exclusive() as send:
                run = self._run = await self._chats.begin(wish)
                options = socket_options(self._context.settings, run.before, run.named, stream=body.stream)
                accepted = spell(self._context.table, AcceptedFrame(
                    id=request_id, run_id=run.run_id, session_id=run.view.session_id,
                    message_id=run.message_id,
                ))
                async with self._context.report_disconnect(self._owner, run.view.session_id, run.receipt):
                    await send((dumps(accepted),))
        except BaseException:
            place.close()
            raise
        self._tell(run, options, place)

    async def _abort(self, request_id: str, params: dict[str, object]) -> None:
        run_id = validate(ChatAbort, params).session_id
        async with self._socket.exclusive() as send:
            over = await self._chats.stop(self._owner, run_id)
            stopped = StoppedFrame(id=request_id, payload=StopBody(**over._asdict()))
            await send((dumps(spell(self._context.table, stopped)),))

    async def _resume(self, request_id: str, params: dict[str, object]) -> None:
        """Go on with a run that goes on, or is over, after an event that the client has had."""
        body = validate(SessionResume, params)
        self._context.check_open()
        if self._is_telling:
            raise Busy("this connection tells a session already; wait for its end, or open another one")
        run = await self._chats.begun(self._owner, body.session_id)
        options = socket_options(self._context.settings, run.before, run.named, stream=body.stream)
        await self._check(run, options, body.after_seq)
        place = self._context.sessions.reserve_stream(self._owner)
        self._run = run
        try:
            await self._say(ResumedFrame(
                id=request_id, run_id=run.run_id, session_id=run.view.session_id, message_id=run.message_id,
                after_seq=body.after_seq,
            ))
        except BaseException:
            place.close()
            raise
        self._tell(run, options, place, body.after_seq)

    async def _check(self, run: StartedRun, options: StreamOptions, after_seq: int) -> None:
        """Refuse an `after_seq` beyond the frames that were sent and one more for text that is held back now."""
        place = self._resume_place(run, options, after_seq)
        sent = 1 + after_seq - place.had
        async for chunk in await self._context.sessions.read(
            self._owner, run.view.session_id, self._context.dialect, options, after=place.after,
        ):
            sent += len(chunk.frames)
            if sent >= after_seq or chunk.ends:
                break
        if after_seq > sent:
            raise Invalid(f"after_seq: session '{run.run_id}' has not come to event {after_seq} yet", param="after_seq")

    def _resume_place(self, run: StartedRun, options: StreamOptions, had: int) -> FramePlace:
        return self._context.sessions.resume_place(
            run.view.session_id, self._context.dialect, options, run.receipt.after, had)

    # -- runs -----------------------------------------------------------------------------------------------------

    async def _interrupt(self) -> None:
        """Stop the run, and send its last frames."""
        if self._task is not None and self._run is not None and self._is_telling:
            await self._chats.stop(self._owner, self._run.run_id)
            await asyncio.wait([self._task], timeout=self._context.send_timeout)

    @property
    def _is_telling(self) -> bool:
        return self._task is not None and not self._task.done()

    def _tell(self, run: StartedRun, options: StreamOptions, place: StreamSlot, had: int = 0) -> None:
        self._task = asyncio.create_task(self._follow(run, options, place, had), name=f"socket of {run.run_id}")
        self._task.add_done_callback(lambda done: place.close())

    async def _follow(self, run: StartedRun, options: StreamOptions, place: StreamSlot, had: int) -> None:
        session_id, receipt = run.view.session_id, run.receipt
        if had:
            begin, had = self._resume_place(run, options, had)
            receipt = replace(receipt, after=begin)
        try:
            async with self._context.follow_turn(self._owner, session_id, receipt, options, place) as subscription:
                if not await self._socket.follow(ResumedSubscription(subscription, had)):
                    await self._socket.close_unfinished(subscription)
        except ConnectionResetError:
            pass  # the client has left, and the reading side notices it too
        except GatewayError as error:  # the run goes on; a client that reconnects can resume it
            await self._socket.close_try_again(error.message)

    async def _say(self, frame: Body) -> None:
        await self._socket.send((dumps(spell(self._context.table, frame)),))


def decode_frame(frame: bytes) -> Steps[Any]:
    """The JSON of a frame; half of a surrogate pair, where a page has cut a text, is replaced."""
    try:
        return (yield from read_json_in_steps(frame))
    except orjson.JSONDecodeError:
        return (yield from read_json_in_steps((yield from replace_lone_surrogates_in_steps(frame.decode()))))


def find_request_id(frame: bytes) -> str | int | None:
    """The id of a request whose frame cannot be read as a whole, if the id is near the frame's beginning."""
    depth, name, before = 0, "", ""
    found: dict[str, str] = {}
    for token in TOKENS.findall(frame[:ID_SEARCH_BYTES].decode(errors="replace")):
        if token in BRACKETS:
            depth += BRACKETS[token]
        elif depth == 1 and before == ":":
            found.setdefault(name, token)
        elif depth == 1 and token not in PUNCTUATION:
            name = token
        before = token
    try:
        request_id = orjson.loads(found.get('"id"', "null"))
    except orjson.JSONDecodeError:
        return None
    if found.get('"type"') != '"req"':
        return None
    if isinstance(request_id, float):  # an integer that is too large cannot be given back
        return str(uuid4())
    return request_id if type(request_id) in (str, int) else None
