"""Blade's socket: what each client event brings about, and what it is acknowledged with."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson

from gateway.errors import Busy, Conflict, GatewayError, Invalid, NotFound, TooLarge, Uncertain
from gateway.model import SECRETS, FilePart, SessionStatus, SessionView, Steps, reading
from gateway.ports import Place, Receipt
from gateway.upstream import mending
from gateway.web import Context, Later, Peer, checked, dumps

from . import inbound
from .ending import ending
from .ledger import run_id_of, seq_of
from .outbound import RAW, number_of, place_of
from .wire import ChatSend, Subscribe

Handler = Callable[["Chat", Peer, dict[str, Any]], Awaitable[Any]]


class Chat:
    """Hears clients and does what they want; a refusal is told to the one who asked, and to nobody else."""

    def __init__(self, context: Context) -> None:
        self.house = context

    async def hear(self, peer: Peer, event: str, said: Any) -> Any:
        handler = HANDLERS.get(event)
        if handler is None:
            return None
        said = said if isinstance(said, dict) else {}
        try:
            await self.house.admit(peer.owner)
            return await handler(self, peer, said)
        except GatewayError as error:
            return await self.refuse(peer, error, said)

    async def gone(self, peer: Peer) -> None:
        """Chats go on without the client, which may come back."""

    # -- one method per event -------------------------------------------------------------------------------------

    async def subscribe(self, peer: Peer, said: dict[str, Any]) -> Any:
        body = checked(Subscribe, said)
        manner = " ".join(filter(None, (self.house.settings.manner, RAW if body.event_format == "raw" else "")))
        await self._follow(peer, body.session_id, manner, body.after_sequence if body.resume else None)
        return self.house.table.object("ack", session_id=body.session_id)

    async def unsubscribe(self, peer: Peer, said: dict[str, Any]) -> Any:
        peer.unfollow(str(said.get("session_id")))
        return self.house.table.object("ack", session_id=said.get("session_id"))

    async def send(self, peer: Peer, said: dict[str, Any]) -> Any:
        session_id = _session_of(said)
        await self.house.sessions.get(peer.owner, session_id)
        if len(dumps(said)) > self.house.settings.message_bytes:
            raise TooLarge(f"the message is larger than {self.house.settings.message_bytes} bytes")
        body = checked(ChatSend, said)
        if not inbound.is_said(body):
            raise Unsaid
        if peer.follows(session_id) is None:
            await self._follow(peer, session_id, self.house.settings.manner)
        receipt = await self.submit(peer.owner, session_id, body)
        return self.house.table.object("ack.chat", session_id=session_id, run_id=run_of(session_id, receipt))

    async def stop(self, peer: Peer, said: dict[str, Any]) -> Any:
        session_id, house = _session_of(said), self.house
        view = await house.sessions.get(peer.owner, session_id)
        if view.status is SessionStatus.IDLE or not await self._is_under_way(view, said.get("chat_run_id")):
            return house.table.object("ack.idle", session_id=session_id)
        await house.sessions.submit(peer.owner, session_id, [house.table.command("chat.stop")])
        return house.table.object("ack.stopped", session_id=session_id)

    async def _is_under_way(self, view: SessionView, run_id: Any) -> bool:
        """Whether a client means a chat of the turn that runs or waits; one that names none does."""
        if run_id is None:
            return True
        seq = seq_of(view.session_id, run_id)
        records = await self.house.sessions.records(view.owner, view.session_id, seq - 1, 1) if seq else ()
        return any(record.seq == seq and record.turn_id == view.turn_id for record in records)

    async def compact(self, peer: Peer, said: dict[str, Any]) -> Any:
        session_id, place = _session_of(said), self.house.sessions.place(peer.owner)
        try:
            receipt = await self.house.sessions.submit(
                peer.owner, session_id, [self.house.table.command("chat.compact")],
            )
        except BaseException:
            place.close()
            raise
        return Later(self._compacted(peer, session_id, receipt, place))

    async def _compacted(self, peer: Peer, session_id: str, receipt: Receipt, place: Place) -> Any:
        """Acknowledged when it is done; meanwhile the client may say other things."""
        try:
            with place:
                await ending(self.house, peer.owner, session_id, receipt, place)
        except GatewayError as error:
            return await self.refuse(peer, error, {"session_id": session_id})
        return self.house.table.object("ack", session_id=session_id)

    # -- what they share ------------------------------------------------------------------------------------------

    async def submit(self, owner: str, session_id: str, body: ChatSend) -> Receipt:
        """Answer what is asked, or say something new."""
        house = self.house
        view = await house.sessions.get(owner, session_id)
        if body.askuser_answer is not None:
            try:
                command = inbound.answer_of(body, view, house.table)
                return await house.sessions.submit(owner, session_id, [command])
            except (Invalid, Conflict) as error:
                raise WrongAnswer(error) from None
        if view.status is SessionStatus.RUNNING:
            raise Busy("Session already has an active chat")
        await house.check_message_addresses(inbound.addresses_of(body.message))
        files: list[FilePart] = []
        try:
            for upload in inbound.uploads_of(body.message):
                files.append(await self._store(owner, upload))  # noqa: PERF401  # what is stored is known if one fails
            content = inbound.content_of(body.message, files, house.agent_of(view))
            env = view.private(house.dialect).get(SECRETS, {})
            return await house.sessions.submit(owner, session_id, [inbound.message_of(body, content, env, house.table)])
        except Uncertain:
            raise
        except GatewayError:  # the files of a message that is not taken are nobody's
            for file in files:
                await house.resources.delete("file", owner, str(file.file_id))
                await house.files.remove(str(file.file_id))
            raise

    async def _store(self, owner: str, upload: inbound.Upload) -> FilePart:
        """A file is kept by the house and passed on by its id."""
        house = self.house
        house.files.admit(upload.media_type)
        stored = await house.files.store(_once(upload.content))
        body = {"name": upload.name, "media_type": upload.media_type, "size": stored.size, "sha256": stored.sha256,
                "metadata": {}}
        try:
            await house.resources.create("file", owner, body, resource_id=stored.file_id)
        except BaseException:
            await house.files.remove(stored.file_id)
            raise
        return FilePart(name=upload.name, file_id=stored.file_id, media_type=upload.media_type, size=stored.size)

    async def _follow(self, peer: Peer, session_id: str, manner: str, after: int | None = None) -> None:
        """From now on; or from where the client left off, which is a number of an event it has had."""
        view = await self.house.sessions.get(peer.owner, session_id)
        if after is None and peer.follows(session_id) == manner:
            return
        place = view.head if after is None else place_of(after)
        subscription = await self.house.sessions.watch(
            peer.owner, session_id, self.house.dialect, manner, after=min(place, view.head),
        )
        peer.follow(session_id, manner, subscription, None if after is None else lambda frame: number_of(frame) > after)

    async def refuse(self, peer: Peer, error: GatewayError, said: Any = None) -> Any:
        """Say what cannot be done, in an event and in the acknowledgement; both name it alike."""
        table, kind = self.house.table, refusal_of(error)
        refusal = table.object(kind, message=error.message, code=error.code, detail=error.details)
        session_id = said.get("session_id") if isinstance(said, dict) and kind not in UNNAMED else None
        names = {"session_id": session_id, "stream_sequence": None, "run_id": None, "refusal": refusal}
        await peer.send(table.speaker("json").cue("refused" if session_id else "refused.request", None, names))
        return table.object("ack.refused", refusal=refusal)


class WrongAnswer(Invalid):
    """An answer that does not fit what was asked; the question stays open."""

    def __init__(self, error: GatewayError) -> None:
        super().__init__(error.message, param="askuser_answer")


UNNAMED = ("refusal.missing", "refusal.access")
"""Refusals that are about the request, not about a session."""


def refusal_of(error: GatewayError) -> str:
    """Which of Blade's refusals an error is."""
    if error is Unsaid:
        return "refusal.missing"
    named = ((NotFound, "refusal.access"), (Busy, "refusal.busy"), (WrongAnswer, "refusal.answer"))
    return next((refusal for kind, refusal in named if isinstance(error, kind)), "refusal")


Unsaid = Invalid("Missing session_id or message")


def _session_of(said: dict[str, Any]) -> str:
    session_id = said.get("session_id")
    if not isinstance(session_id, str) or not session_id:
        raise Unsaid
    return session_id


def run_of(session_id: str, receipt: Receipt) -> str:
    return run_id_of(session_id, receipt.records[-1].seq)


def read(packet: str) -> Steps[Any]:
    """The JSON of a packet; pages cut texts anywhere, and half of a character is none."""
    try:
        return (yield from reading(packet))
    except orjson.JSONDecodeError:
        return (yield from reading((yield from mending(packet))))


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


HANDLERS: dict[str, Handler] = {
    "session:subscribe": Chat.subscribe,
    "session:unsubscribe": Chat.unsubscribe,
    "chat:send": Chat.send,
    "chat:stop": Chat.stop,
    "chat:compact": Chat.compact,
}
