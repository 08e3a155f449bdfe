"""Blade's socket: what each client event does and how it is acknowledged, and the result of a headless chat."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import orjson

import gateway.model as m
from adapters.blade.wire import BladeSettings, ChatSend, Subscribe
from gateway.client import replace_lone_surrogates_in_steps
from gateway.errors import Busy, Conflict, GatewayError, Invalid, NotFound, OutcomeUnknown, TooLarge
from gateway.http import Answers, Context, Row, client_name, dumps, validate
from gateway.http.socketio import DeferredAck, SocketIOClient
from gateway.json_values import JsonObject, JsonValue, Steps, read_json_in_steps
from gateway.ports import Receipt, StreamSlot
from gateway.resources import create_file_resource

from . import inbound
from .projector import record_before_sequence
from .session_projection import command_seq, run_id_of
from .stream_options import BARE, StreamOptions

EventHandler = Callable[["ChatSocket", SocketIOClient, JsonObject], Awaitable[object]]


class ChatSocket:
    """Handles the events of clients; a refusal goes only to the client that sent the event."""

    def __init__(self, context: Context[BladeSettings]) -> None:
        self.context = context

    async def on_event(self, peer: SocketIOClient, event: str, data: object) -> object:
        handler = HANDLERS.get(event)
        if handler is None:
            return None
        data = data if isinstance(data, dict) else {}
        try:
            await self.context.count_request(peer.owner, event)
            return await handler(self, peer, data)
        except GatewayError as error:
            return await self.send_error(peer, error, data)

    async def on_disconnect(self, peer: SocketIOClient) -> None:
        """Nothing: chats go on without the client, which may reconnect."""

    # -- one method per event -------------------------------------------------------------------------------------

    async def subscribe(self, peer: SocketIOClient, data: JsonObject) -> object:
        body = validate(Subscribe, data)
        options = StreamOptions(
            is_raw=body.event_format == "raw", is_bare=not self.context.settings.patch_snapshots)
        await self._follow(peer, body.session_id, options, body.after_sequence if body.resume else None)
        return self.context.table.object("ack", session_id=body.session_id)

    async def unsubscribe(self, peer: SocketIOClient, data: JsonObject) -> object:
        peer.unfollow(str(data.get("session_id")))
        return self.context.table.object("ack", session_id=data.get("session_id"))

    async def send(self, peer: SocketIOClient, data: JsonObject) -> JsonValue:
        session_id = _session_id_of(data)
        await self.context.sessions.get(peer.owner, session_id)
        if len(dumps(data)) > self.context.settings.message_bytes:
            raise TooLarge(f"the message is larger than {self.context.settings.message_bytes} bytes")
        body = validate(ChatSend, data)
        if not inbound.has_content(body):
            raise MISSING_MESSAGE
        if peer.followed_options(session_id) is None:
            await self._follow(peer, session_id, StreamOptions(is_bare=not self.context.settings.patch_snapshots))
        receipt = await self.submit(peer.owner, session_id, body)
        return self.context.table.object(
            "ack.chat", session_id=session_id, run_id=run_id_of_receipt(session_id, receipt)
        )

    async def stop(self, peer: SocketIOClient, data: JsonObject) -> object:
        session_id, context = _session_id_of(data), self.context
        view = await context.sessions.get(peer.owner, session_id)
        if view.status is m.SessionStatus.IDLE or not await self._is_under_way(view, data.get("chat_run_id")):
            return context.table.object("ack.idle", session_id=session_id)
        await context.sessions.submit(peer.owner, session_id, [context.table.command("chat.stop")])
        return context.table.object("ack.stopped", session_id=session_id)

    async def _is_under_way(self, view: m.SessionView, run_id: object) -> bool:
        """Whether the chat belongs to the turn that runs or waits; a client that names no chat means that one."""
        if run_id is None:
            return True
        seq = command_seq(view.session_id, run_id)
        records = await self.context.sessions.records(view.owner, view.session_id, seq - 1, 1) if seq else ()
        return any(record.seq == seq and record.turn_id == view.turn_id for record in records)

    async def compact(self, peer: SocketIOClient, data: JsonObject) -> object:
        session_id, place = _session_id_of(data), self.context.sessions.reserve_stream(peer.owner)
        try:
            receipt = await self.context.sessions.submit(
                peer.owner, session_id, [self.context.table.command("chat.compact")],
            )
        except BaseException:
            place.close()
            raise
        return DeferredAck(self._compacted(peer, session_id, receipt, place))

    async def _compacted(self, peer: SocketIOClient, session_id: str, receipt: Receipt, place: StreamSlot) -> object:
        """The acknowledgement comes when the compaction is done; meanwhile the client may send other events."""
        try:
            with place:
                await final_result(self.context, peer.owner, session_id, receipt, place)
        except GatewayError as error:
            return await self.send_error(peer, error, {"session_id": session_id})
        return self.context.table.object("ack", session_id=session_id)

    # -- what they share ------------------------------------------------------------------------------------------

    async def submit(self, owner: str, session_id: str, body: ChatSend) -> Receipt:
        """Submit an answer or a new message."""
        context = self.context
        view = await context.sessions.get(owner, session_id)
        if body.askuser_answer is not None:
            try:
                command = inbound.answer_of(body, view, context.table)
                return await context.sessions.submit(owner, session_id, [command])
            except (Invalid, Conflict) as error:
                raise WrongAnswer(error) from None
        if view.status is m.SessionStatus.RUNNING:
            raise Busy("Session already has an active chat")
        await context.check_message_addresses(inbound.image_addresses(body.message))
        files: list[m.FilePart] = []
        try:
            for upload in inbound.uploads_of(body.message):
                files.append(await self._store(owner, upload))  # noqa: PERF401  # the stored files are known if one fails
            env = view.private(context.dialect).get(m.SECRETS, {})
            message = inbound.message_of(body, files, env, context.agent_of(view), context.table)
            return await context.sessions.submit(owner, session_id, [message])
        except OutcomeUnknown:
            raise
        except GatewayError:  # a refused message keeps no files
            for file in files:
                await context.resources.delete("file", owner, str(file.file_id))
                await context.files.remove(str(file.file_id))
            raise

    async def _store(self, owner: str, upload: inbound.Upload) -> m.FilePart:
        """Store a file; the agent gets its id."""
        context = self.context
        context.files.check_media_type(upload.media_type)
        stored = await context.files.store(_single_chunk(upload.content))
        body = {"name": upload.name, "media_type": upload.media_type}
        await create_file_resource(context.files, context.resources, owner, stored, body)
        return m.FilePart(name=upload.name, file_id=stored.file_id, media_type=upload.media_type, size=stored.size)

    async def _follow(
        self, peer: SocketIOClient, session_id: str, options: StreamOptions, after: int | None = None
    ) -> None:
        """From now on; or from where the client left off, which is a number of an event it has had."""
        view = await self.context.sessions.get(peer.owner, session_id)
        if after is None and peer.followed_options(session_id) == options:
            return
        place = view.head if after is None else record_before_sequence(after)
        subscription = await self.context.sessions.subscribe(
            peer.owner, session_id, self.context.dialect, options, after=min(place, view.head),
        )
        peer.follow(session_id, options, subscription, after)

    async def send_error(self, peer: SocketIOClient, error: GatewayError, data: object = None) -> object:
        """Send a refusal as an event, and return it for the acknowledgement."""
        table, kind = self.context.table, refusal_name(error)
        refusal = table.object(kind, message=error.message, code=error.code, detail=error.details)
        session_id = data.get("session_id") if isinstance(data, dict) and kind not in WITHOUT_SESSION else None
        names = {"session_id": session_id, "stream_sequence": None, "run_id": None, "refusal": refusal}
        await peer.send(table.encoder("socketio").cue("refused" if session_id else "refused.request", None, names))
        return table.object("ack.refused", refusal=refusal)


class WrongAnswer(Invalid):
    """An answer that does not fit its ask, which stays open."""

    def __init__(self, error: GatewayError) -> None:
        super().__init__(error.message, param="askuser_answer")


WITHOUT_SESSION = ("refusal.missing", "refusal.access")
"""Refusals that are about the request, not about a session."""


def refusal_name(error: GatewayError) -> str:
    """Which of Blade's refusals an error is."""
    if error is MISSING_MESSAGE:
        return "refusal.missing"
    named = ((NotFound, "refusal.access"), (Busy, "refusal.busy"), (WrongAnswer, "refusal.answer"))
    return next((refusal for kind, refusal in named if isinstance(error, kind)), "refusal")


MISSING_MESSAGE = Invalid("Missing session_id or message")


def _session_id_of(data: Mapping[str, object]) -> str:
    session_id = data.get("session_id")
    if not isinstance(session_id, str) or not session_id:
        raise MISSING_MESSAGE
    return session_id


def run_id_of_receipt(session_id: str, receipt: Receipt) -> str:
    return run_id_of(session_id, receipt.records[-1].seq)


def decode_packet(packet: str) -> Steps[Any]:
    """The JSON of a packet; half of a surrogate pair, where a page has cut a text, is replaced."""
    try:
        return (yield from read_json_in_steps(packet))
    except orjson.JSONDecodeError:
        return (yield from read_json_in_steps((yield from replace_lone_surrogates_in_steps(packet))))


async def _single_chunk(content: bytes) -> AsyncIterator[bytes]:
    yield content


HANDLERS: dict[str, EventHandler] = {
    "session:subscribe": ChatSocket.subscribe,
    "session:unsubscribe": ChatSocket.unsubscribe,
    "chat:send": ChatSocket.send,
    "chat:stop": ChatSocket.stop,
    "chat:compact": ChatSocket.compact,
}


NAMED_SESSION = {"session_id": str}
REFUSED = Row("ack.refused", refusal=("refusal", "refusal.missing", "refusal.access", "refusal.busy", "refusal.answer"))
SOCKET = Answers(
    messages={
        "session:subscribe": Subscribe, "session:unsubscribe": NAMED_SESSION,
        "chat:send": {**NAMED_SESSION, "...": ChatSend}, "chat:stop": {**NAMED_SESSION, "chat_run_id?": str | None},
        "chat:compact": NAMED_SESSION,
    },
    replies={
        "session:subscribe": ("ack", REFUSED), "session:unsubscribe": ("ack", REFUSED),
        "chat:send": ("ack.chat", REFUSED), "chat:stop": ("ack.stopped", "ack.idle", REFUSED),
        "chat:compact": ("ack", REFUSED),
    },
)
"""What clients may send over a socket, and how it is acknowledged."""


async def final_result(
    context: Context[BladeSettings], owner: str, session_id: str, receipt: Receipt, place: StreamSlot
) -> bytes:
    """The payload of the `chat:end` that the commands of a receipt lead to, as JSON."""
    if not receipt.begun:  # an answer was accepted, and others are awaited: its chat is over already
        with context.committed():
            chunks = await context.sessions.read(owner, session_id, context.dialect, BARE, after=receipt.after)
            return [frame async for chunk in chunks for frame in chunk.frames][-1].body
    async with context.follow_turn(owner, session_id, receipt, BARE, place) as subscription:
        while ready := await subscription.chunks():
            for chunk in ready:
                if chunk.yields:
                    return chunk.frames[-1].body
        raise context.lost_turn_error(session_id, subscription)


def software_of(auth: object) -> str:
    """The SDK of a client and its version, as newer clients send them with their token."""
    words = [auth.get(name) for name in ("sdk", "sdk_version")] if isinstance(auth, dict) else []
    return client_name({"User-Agent": "/".join(word for word in words if isinstance(word, str))}) if any(words) else ""
