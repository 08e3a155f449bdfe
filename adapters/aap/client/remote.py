"""AAP spoken as a client: a server of it is opened, spoken to, answered, and hung up on.

What is remembered of the sessions at an AAP server between one turn and the next; never of more than so many.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import structlog

import gateway.model as m
from gateway.client import HttpClient, redact
from gateway.errors import BackendFailed, GatewayError, Unsupported
from gateway.ids import Mint, make_mint, random_id
from gateway.ports import (
    DecodedItem,
    NewRemoteSession,
    ParsedFrame,
    RemoteAddress,
    RemoteAsk,
    RemoteSession,
    RemoteTurnEnd,
)

from .ask_readers import SessionTools, _open_calls, _session_tools, session_tools_of
from .decoder import Decoder
from .readers import (
    CreatedBody,
    HistoryBody,
    MessageBody,
    SessionBody,
    SessionsBody,
    best_stream_mode,
    read_agent_card,
    read_body,
)
from .requests import (
    SentSettings,
    answer_messages,
    changed_settings,
    new_session,
    new_turn,
    settings_to_send,
    turn_messages,
)
from .turn_stream import ReceivedPieces, StreamInterrupted, TurnStream, WasAccepted, missing_frames

log = structlog.get_logger("dragoman.remote")
BUSY = 409
NO_TURN_STATUSES = (404, 405, 409, 501)
"""What a server answers that has no such way, no such session, or no turn that runs or waits."""
MAX_PAGES = 100
"""So many pages of a list are looked through."""
TURN_START = ParsedFrame("turn_start", {})
BUSY_RETRY_DELAYS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""After how many seconds a server is asked once more that may not have noticed yet that we hung up."""


@dataclass(kw_only=True, repr=False)
class RemoteSessionState:
    """One session; what is None is not known, and asked of the server where it is needed."""

    sent_settings: SentSettings | None = None
    tools: SessionTools | None = None
    decoder: Decoder | None = None
    """Of a turn that waits for people."""
    user_messages: int | None = None
    """How many messages of people its history has."""
    was_abandoned: bool = False
    """Whether we hung up while a turn ran, which its server may not have noticed yet."""


class Remote:
    """A server of AAP's, as `gateway.ports.remote.Remote`.

    Of what the house knows, AAP can be told the tools and their permissions, the client's tools, options and secrets,
    a system prompt and a history; not a title, a model, a schema for the answer, or to compact. Settings that have
    changed go with the next message; a system prompt cannot change any more.

    How a stream that was cut is taken up again, `TurnStream` tells. AAP has no interruption, and servers of this house
    have one all the same: `DELETE …/turns/current`. Whoever has none is hung up on, and what becomes of the turn is
    the server's to say; one that waits for people is left waiting there until the next message abandons it. Closing a
    generator early hangs up, too. The server's capabilities decide how it is heard: by deltas, in whole parts, or at
    the end.
    """

    supports_permissions = True

    def __init__(self, address: RemoteAddress, mint: Mint | None = None) -> None:
        headers = {"Authorization": f"Bearer {address.key}"} if address.key else {}
        self._secrets = (address.key,) if address.key else ()
        self._upstream = HttpClient(address.url, headers=headers, secrets=self._secrets, timeouts=address.patience)
        self._agent, self._is_strict = address.agent, address.is_strict
        self._mint = mint or make_mint()
        self._card: m.AgentCard | None = None
        self._memory = SessionMemory()
        self._streams: dict[str, TurnStream] = {}

    async def about(self) -> m.AgentCard:
        self._card = read_agent_card(await self._upstream.json("GET", "/meta"), self._upstream.name, self._agent)
        return self._card

    async def open(self, opening: NewRemoteSession) -> str:
        card = await self._known_card()
        with redacted_errors(opening.settings.secrets.values()):
            body = new_session(card, opening)
            session_id = read_body(CreatedBody, await self._create(body), "the answer to a new session").session_id
        known = self._memory.of(session_id)
        known.sent_settings, known.tools = (
            settings_to_send(card, opening.settings),
            session_tools_of(card, opening.settings),
        )
        known.user_messages = sum(message.role is m.Role.USER for message in opening.history)
        return session_id

    async def sessions(self, most: int) -> Sequence[RemoteSession]:
        found: list[RemoteSession] = []
        query: dict[str, str] | None = None
        for _ in range(MAX_PAGES):
            page = read_body(SessionsBody, await self._upstream.json("GET", "/sessions", query=query), "the sessions")
            found += (RemoteSession(session_id=one.session_id, agent=one.agent.name) for one in page.sessions)
            if page.next is None or len(found) >= most:
                break
            query = {"after": page.next}
        return found[:most]

    async def join(self, session_id: str) -> RemoteSession:
        """The session keeps its agent, which need not be the server's first."""
        body = await self._upstream.json("GET", f"/sessions/{quote(session_id, safe='')}")
        session = read_body(SessionBody, body, "the session")
        self._agent, self._card = session.agent.name, None
        self._memory.of(session_id).tools = _session_tools(await self._known_card(), session)
        return RemoteSession(session_id=session_id, agent=session.agent.name)

    async def start_turn(
        self, session_id: str, command: m.SendMessage | m.Compact, settings: m.Settings | None = None,
    ) -> AsyncGenerator[DecodedItem, None]:
        if isinstance(command, m.Compact):
            raise Unsupported("AAP has no way to ask for a compaction")
        card, known = await self._known_card(), self._memory.of(session_id)
        now = known.sent_settings
        said = {}
        if settings is not None:
            now = settings_to_send(card, settings)
            said, known.tools = changed_settings(card, known.sent_settings, now), session_tools_of(card, settings)
        body = new_turn(turn_messages(card, command), best_stream_mode(card), said)
        hearing = Decoder(self._mint, await self._toolbox(card, session_id, known))
        before, known.user_messages = known.user_messages, None
        with redacted_errors(settings.secrets.values() if settings else ()):
            counted = None if command.results else before
            async with aclosing(self._patiently(session_id, body, hearing, counted)) as turn:
                async for heard in turn:  # so it was taken
                    known.sent_settings, known.user_messages = (
                        now,
                        None if before is None else before + (not command.results),
                    )
                    yield heard

    async def answer(
        self, session_id: str, answers: Sequence[tuple[RemoteAsk, m.Answer]],
    ) -> AsyncGenerator[DecodedItem, None]:
        card, known = await self._known_card(), self._memory.of(session_id)
        hearing = known.decoder or await self._returning(card, session_id, known)
        for asked, answer in answers:
            hearing.on_answer(asked, answer)
        body = new_turn(answer_messages(card, answers), best_stream_mode(card), {})
        stream = await self._stream(session_id)
        async with aclosing(self._hear(session_id, stream, body, hearing)) as turn:
            async for heard in turn:
                yield heard

    async def interrupt(self, session_id: str) -> None:
        stream = self._streams.get(session_id)
        if stream is not None:
            stream.hang_up()
        self._memory.of(session_id).decoder = None
        try:
            await self._upstream.json("DELETE", f"/sessions/{session_id}/turns/current")
        except GatewayError as error:
            if (error.details or {}).get("upstream_status") not in NO_TURN_STATUSES:
                raise

    async def close(self) -> None:
        for stream in list(self._streams.values()):
            stream.hang_up()
        await self._upstream.close()

    # -- one turn -------------------------------------------------------------------------------------------------

    async def _patiently(
        self, session_id: str, body: dict[str, object], hearing: Decoder, before: int | None,
    ) -> AsyncGenerator[DecodedItem, None]:
        """A server that we hung up on may need a moment to notice; whoever else is busy is left alone."""
        waits = BUSY_RETRY_DELAYS if self._memory.of(session_id).was_abandoned else ()
        for wait in (*waits, None):
            try:
                stream = await self._stream(session_id, lambda: self._was_taken(session_id, before))
                async with aclosing(self._hear(session_id, stream, body, hearing, before)) as turn:
                    async for heard in turn:
                        yield heard
                return
            except BackendFailed as error:
                if wait is None or (error.details or {}).get("upstream_status") != BUSY:
                    raise
                await asyncio.sleep(wait)

    async def _stream(self, session_id: str, taken: WasAccepted | None = None) -> TurnStream:
        mode = best_stream_mode(await self._known_card())
        return TurnStream(self._upstream, session_id, mode, taken=taken, secrets=self._secrets)

    async def _hear(
        self, session_id: str, stream: TurnStream, body: dict[str, Any], hearing: Decoder, before: int | None = None,
    ) -> AsyncGenerator[DecodedItem, None]:
        known, is_over = self._memory.of(session_id), False
        known.decoder, self._streams[session_id] = None, stream
        try:
            async with aclosing(self._frames(session_id, stream, body, before)) as frames:
                first = await anext(frames)
                said = [*hearing.feed(TURN_START), *hearing.feed(first)]  # not every server says that a turn starts
                while True:
                    is_over = hearing.paused or any(isinstance(heard, RemoteTurnEnd) for heard in said)
                    for heard in said:
                        yield heard
                    if is_over:
                        break
                    said = hearing.feed(await anext(frames))
        except StreamInterrupted:
            for heard in hearing.end(m.StopReason.INTERRUPTED, m.Outcome.INTERRUPTED):
                yield heard
            yield RemoteTurnEnd(stop_reason=m.StopReason.INTERRUPTED, outcome=m.Outcome.INTERRUPTED)
        finally:
            known.was_abandoned = not is_over
            known.decoder = hearing if hearing.paused else None
            if self._streams.get(session_id) is stream:
                del self._streams[session_id]

    async def _frames(
        self, session_id: str, stream: TurnStream, body: dict[str, Any], before: int | None,
    ) -> AsyncGenerator[ParsedFrame, None]:
        """The frames of the turn; a stream that ends without `turn_stop` is completed from the server's history."""
        transcript, rest = ReceivedPieces(), list[ParsedFrame]()
        async with aclosing(stream.frames(body)) as frames:
            while not rest:
                try:
                    frame = await stream.next(frames)
                except GatewayError as error:
                    rest = await self._completed(session_id, stream, body["messages"], transcript, before)
                    if not rest:
                        raise
                    log.warning(
                        "turn_stop_missing", server=self._upstream.name, upstream_session=session_id,
                        reason=error.message, note="the server's history has the finished turn",
                    )
                else:
                    transcript.add(frame)
                    yield frame
        for frame in rest:
            yield frame

    async def _completed(
        self, session_id: str, stream: TurnStream, sent: Sequence[Any], heard: ReceivedPieces, before: int | None,
    ) -> list[ParsedFrame]:
        """What the stream has kept back, if the history has the whole turn and is known to be about this one."""
        if self._is_strict or not stream.has_begun:
            return []
        try:
            history = await self._history(session_id, "full", "compacted")
        except GatewayError:
            return []
        answered = [message["toolCallId"] for message in sent if "toolCallId" in message]
        if history is None or not (answered or self._has_message(history, sent[-1], heard, before)):
            return []
        return missing_frames(history, heard, answered) or []

    def _has_message(
        self, history: Sequence[MessageBody], sent: Any, heard: ReceivedPieces, before: int | None,
    ) -> bool:
        """Whether the last message of a person is the one that was sent now, not the same words of an earlier turn."""
        people = [message for message in history if message.role == m.Role.USER]
        is_counted = bool(heard.pieces) if before is None else len(people) == before + 1
        return is_counted and bool(people) and people[-1].content == sent["content"]

    async def _create(self, body: dict[str, object]) -> object:
        """A session that is made twice harms nobody; with a server that heeds the key it is made once."""
        headers = {"Idempotency-Key": random_id("open")}
        for _ in range(self._upstream.timeouts.attempts - 1):
            try:
                return await self._upstream.json("POST", "/sessions", body, headers=headers)
            except BackendFailed as error:
                if not error.retryable:
                    raise
        return await self._upstream.json("POST", "/sessions", body, headers=headers)

    # -- what is known --------------------------------------------------------------------------------------------

    async def _known_card(self) -> m.AgentCard:
        return self._card or await self.about()

    async def _toolbox(self, card: m.AgentCard, session_id: str, known: RemoteSessionState) -> SessionTools:
        """The tools of the session, as the server has them where nobody here remembers."""
        if known.tools is None:
            session = read_body(SessionBody, await self._upstream.json("GET", f"/sessions/{session_id}"), "the session")
            known.tools = _session_tools(card, session)
        return known.tools

    async def _returning(self, card: m.AgentCard, session_id: str, known: RemoteSessionState) -> Decoder:
        """A hearing for a turn that waited before we were there: the history tells which calls have not come back."""
        toolbox = await self._toolbox(card, session_id, known)
        hearing = Decoder(self._mint, toolbox)
        calls = _open_calls(await self._history(session_id) or ())
        hearing.recall(call for call in calls if not toolbox.is_ask(call))
        return hearing

    async def _was_taken(self, session_id: str, before: int | None) -> bool | None:
        """Whether the history has one more message of a person than it had; with any other number nobody can tell."""
        history = None if before is None else await self._history(session_id)
        if before is None or history is None:
            return None
        more = sum(message.role == m.Role.USER for message in history) - before
        return bool(more) if more in (0, 1) else None

    async def _history(self, session_id: str, *kinds: str) -> Sequence[MessageBody] | None:
        """What was said, in the first of these kinds that the agent keeps; all of it if no kind is given."""
        kept = (await self._known_card()).capabilities.history
        kind = next((kind for kind in kinds or ("full",) if kind in kept), None)
        if kind is None:
            return None
        body = await self._upstream.json("GET", f"/sessions/{session_id}/history", query={"type": kind})
        histories = read_body(HistoryBody, body, "the history").history
        return (histories.full if kind == "full" else histories.compacted) or ()


@contextmanager
def redacted_errors(secrets: Iterable[str]) -> Iterator[None]:
    """A server that repeats a secret in its complaints is quoted without it."""
    try:
        yield
    except GatewayError as error:
        error.message = redact(error.message, secrets)
        error.args = (error.message,)
        raise


MAX_SESSIONS = 4096


class SessionMemory:
    """The sessions that were spoken to last; those before them are forgotten."""

    def __init__(self, most: int = MAX_SESSIONS) -> None:
        self._known: OrderedDict[str, RemoteSessionState] = OrderedDict()
        self._most = most

    def __len__(self) -> int:
        return len(self._known)

    def of(self, session_id: str) -> RemoteSessionState:
        known = self._known.setdefault(session_id, RemoteSessionState())
        self._known.move_to_end(session_id)
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        return known
