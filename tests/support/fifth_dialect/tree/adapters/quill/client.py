"""Quill as a client: frames become events, and how a server is called."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import orjson

import gateway.model as m
from gateway.client import HttpClient, SseEvent, StreamAssembler, generator_turn
from gateway.errors import BackendFailed, Conflict
from gateway.ids import Mint, make_mint
from gateway.ports import DecodedItem, NewRemoteSession, ParsedFrame, RemoteAddress, RemoteAsk, RemoteTurnEnd
from gateway.ports.remote import RemoteSession, SessionPlaces

REASONS = {"end": m.StopReason.END_TURN, "stopped": m.StopReason.INTERRUPTED}


class Decoder:
    """One talk's stream: words, and the end of the turn."""

    def __init__(self, mint: Mint) -> None:
        self._assembler = StreamAssembler(mint)

    @property
    def paused(self) -> bool:
        return False

    def feed(self, frame: ParsedFrame) -> Sequence[DecodedItem]:
        body: dict[str, Any] = frame.body if isinstance(frame.body, dict) else {}
        if frame.name == "words":
            return self._assembler.text_delta("words", str(body.get("text", "")))
        return self._closed(str(body.get("why"))) if frame.name == "closed" else []

    def _closed(self, why: str) -> list[DecodedItem]:
        if why == "waiting":  # the turn is not over; Quill has no words for what the server waits for
            return [*self._assembler.finish(m.StopReason.NEEDS_INPUT)]
        reason = REASONS.get(why, m.StopReason.ERROR)
        outcome = {m.StopReason.END_TURN: m.Outcome.COMPLETED, m.StopReason.INTERRUPTED: m.Outcome.INTERRUPTED}.get(
            reason, m.Outcome.FAILED)
        fault = m.Fault(code=m.FaultCode.BACKEND, message=f"The server closed the turn: {why[:40]}.")
        return [*self._assembler.finish(reason, outcome=outcome), RemoteTurnEnd(
            stop_reason=reason, outcome=outcome, fault=fault if outcome is m.Outcome.FAILED else None)]

    def end(self) -> Sequence[DecodedItem]:
        return [*self._assembler.finish(m.StopReason.ERROR, outcome=m.Outcome.FAILED)]

    def on_answer(self, asked: RemoteAsk, answer: m.Answer) -> None:
        """Quill has no asks."""

    def configure(self, settings: m.Settings) -> None:
        """Quill has no settings."""

    def on_reconnect(self) -> None:
        """A stream of Quill cannot be resumed."""


def _frame(event: SseEvent) -> ParsedFrame:
    return ParsedFrame(event.name, orjson.loads(event.data))


class Remote:
    """A Quill server."""

    supports_permissions = False

    def __init__(self, address: RemoteAddress, mint: Mint | None = None) -> None:
        headers = {"Authorization": f"Bearer {address.key}"} if address.key else {}
        secrets = (address.key,) if address.key else ()
        self._http = HttpClient(address.url, headers=headers, secrets=secrets, timeouts=address.patience)
        self._mint = mint or make_mint()

    async def places(self) -> SessionPlaces:
        return SessionPlaces()

    async def about(self) -> m.AgentCard:
        await self._http.json("GET", "/talks")
        return m.AgentCard(name="quill")

    async def open(self, opening: NewRemoteSession) -> str:
        return str((await self._http.json("POST", "/talks"))["talk"])

    async def sessions(self, most: int) -> Sequence[RemoteSession]:
        talks = (await self._http.json("GET", "/talks"))["talks"]
        return [RemoteSession(session_id=str(talk["talk"])) for talk in talks[:most]]

    async def join(self, session_id: str) -> RemoteSession:
        return RemoteSession(session_id=str((await self._http.json("GET", f"/talks/{session_id}"))["talk"]))

    @generator_turn
    async def start_turn(
        self, session_id: str, command: m.SendMessage | m.Compact, settings: m.Settings | None = None,
    ) -> AsyncGenerator[DecodedItem, None]:
        text = m.text_of(command.content) if isinstance(command, m.SendMessage) else ""
        decoder = Decoder(self._mint)
        async with self._http.stream("POST", f"/talks/{session_id}/lines", {"text": text}) as stream:
            while events := await stream.read():
                for item in (item for event in events for item in decoder.feed(_frame(event))):
                    yield item
                    if isinstance(item, RemoteTurnEnd):
                        return
        raise BackendFailed("the stream ended before the turn was closed")

    @generator_turn
    async def answer(
        self, session_id: str, answers: Sequence[tuple[RemoteAsk, m.Answer]],
    ) -> AsyncGenerator[DecodedItem, None]:
        raise BackendFailed("a Quill server asks nothing")
        yield  # an empty generator, as the port has it

    async def interrupt(self, session_id: str) -> None:
        try:
            await self._http.json("DELETE", f"/talks/{session_id}/lines")
        except Conflict:
            return

    async def close(self) -> None:
        await self._http.close()
