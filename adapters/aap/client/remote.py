"""The client role of AAP: sessions and turns at an AAP server, and what is remembered of its sessions."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

import structlog

import gateway.model as m
from adapters.aap.bodies import CreatedBody, HistoryBody, MessageBody, SessionBody, SessionsBody
from gateway.client import (
    GeneratorTurn,
    HttpClient,
    ItemGenerator,
    Redactor,
    SessionMemory,
    read_pages,
    retry,
    suppress_statuses,
)
from gateway.errors import GatewayError, Unsupported
from gateway.ids import Mint, make_mint, random_id
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import (
    DecodedItem,
    NewRemoteSession,
    RemoteAddress,
    RemoteAsk,
    RemoteSession,
    RemoteTurn,
    RemoteTurnEnd,
    SessionPlaces,
)
from mappings.language import DecodedFrame

from .decoder import Decoder, TurnFrame
from .missing_frames import missing_frames
from .readers import AAP, SessionTools, _open_calls, _session_tools, best_stream_mode, read_agent_card, session_tools_of
from .requests import (
    SentSettings,
    answer_messages,
    changed_settings,
    new_session,
    new_turn,
    settings_to_send,
    turn_messages,
)
from .turn_stream import StreamInterrupted, TurnPost, TurnStream

log = structlog.get_logger("dragoman.remote")
NO_TURN_STATUSES = (404, 405, 409, 501)
"""The statuses of a server that has no such route, no such session, or no open turn."""
TURN_START = DecodedFrame("turn.started", {})
BUSY_RETRY_DELAYS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds until a request is repeated to a server that may not have noticed the closed connection."""


@dataclass(kw_only=True, repr=False)
class RemoteSessionState:
    """One session; a field that is None is unknown, and fetched from the server when it is needed."""

    sent_settings: SentSettings | None = None
    tools: SessionTools | None = None
    decoder: Decoder | None = None
    """The decoder of a turn that waits for people."""
    user_messages: int | None = None
    """How many messages of people the history has."""
    was_abandoned: bool = False
    """Whether this client closed the connection during a turn, which the server may not have noticed yet."""


class Remote:
    """An AAP server, as `gateway.ports.remote.Remote`.

    AAP has the tools and their permissions, the client's tools, options and secrets, a system prompt and a history; it
    has no title, no model, no output schema and no compaction. Changed settings go with the next message; a system
    prompt cannot be changed.

    `TurnStream` resumes a stream whose connection broke. AAP has no interruption; Dragoman servers have one beyond the
    protocol: `DELETE …/turns/current`. For other servers an interruption closes the connection, and the server decides
    what becomes of the turn; a turn that waits for people waits until the next message abandons it. Closing a turn
    early closes the connection, too. The capabilities of the server decide the form of the response: deltas,
    whole parts, or one body at the end.
    """

    supports_permissions = True

    def __init__(self, address: RemoteAddress, mint: Mint | None = None) -> None:
        self._upstream = HttpClient.at(address)
        self._agent, self._is_strict = address.agent, address.is_strict
        self._mint = mint or make_mint()
        self._card: m.AgentCard | None = None
        self._memory = SessionMemory[RemoteSessionState]()
        self._streams: dict[str, TurnStream] = {}

    async def places(self) -> SessionPlaces:
        return SessionPlaces(client_tools=(await self._known_card()).capabilities.client_tools)

    async def about(self) -> m.AgentCard:
        self._card = read_agent_card(await self._upstream.json("GET", "/meta"), self._upstream.name, self._agent)
        return self._card

    async def open(self, opening: NewRemoteSession) -> str:
        card = await self._known_card()
        with Redactor(opening.settings.secrets.values()).errors():
            body = new_session(card, opening)
            session_id = AAP.read_as(CreatedBody, await self._create(body), "the answer to a new session").session_id
        known = self._session(session_id)
        known.sent_settings, known.tools = (
            settings_to_send(card, opening.settings),
            session_tools_of(card, opening.settings),
        )
        known.user_messages = sum(message.role is m.Role.USER for message in opening.history)
        return session_id

    async def sessions(self, most: int) -> Sequence[RemoteSession]:
        return await read_pages(self._page, most=most)

    async def _page(self, name: str | None) -> tuple[Sequence[RemoteSession], str | None]:
        query = None if name is None else {"after": name}
        page = AAP.read_as(SessionsBody, await self._upstream.json("GET", "/sessions", query=query), "the sessions")
        return [RemoteSession(session_id=one.session_id, agent=one.agent.name) for one in page.sessions], page.next

    async def join(self, session_id: str) -> RemoteSession:
        """Take up a session of the server, with the agent that the session has."""
        session = await self._session_body(session_id)
        self._agent, self._card = session.agent.name, None
        self._session(session_id).tools = _session_tools(await self._known_card(), session)
        return RemoteSession(session_id=session_id, agent=session.agent.name)

    def start_turn(
        self, session_id: str, command: m.SendMessage | m.Compact, settings: m.Settings | None = None,
    ) -> RemoteTurn:
        return GeneratorTurn(self._items(session_id, partial(self._new_turn, session_id, command, settings)))

    def answer(self, session_id: str, answers: Sequence[tuple[RemoteAsk, m.Answer]]) -> RemoteTurn:
        return GeneratorTurn(self._items(session_id, partial(self._answers, session_id, answers)))

    async def interrupt(self, session_id: str) -> None:
        stream = self._streams.get(session_id)
        if stream is not None:
            stream.hang_up()
        self._session(session_id).decoder = None
        with suppress_statuses(NO_TURN_STATUSES):
            await self._upstream.json("DELETE", f"/sessions/{session_id}/turns/current")

    async def close(self) -> None:
        for stream in list(self._streams.values()):
            stream.hang_up()
        await self._upstream.close()

    # -- one turn -------------------------------------------------------------------------------------------------

    async def _new_turn(
        self, session_id: str, command: m.SendMessage | m.Compact, settings: m.Settings | None,
    ) -> TurnPost:
        if isinstance(command, m.Compact):
            raise Unsupported("AAP has no way to ask for a compaction")
        card, known = await self._known_card(), self._session(session_id)
        now, changed = known.sent_settings, dict[str, object]()
        if settings is not None:
            now = settings_to_send(card, settings)
            changed, known.tools = changed_settings(card, known.sent_settings, now), session_tools_of(card, settings)
        messages, mode = turn_messages(card, command), best_stream_mode(card)
        decoder = Decoder(self._mint, await self._toolbox(card, session_id, known))
        before, known.user_messages = known.user_messages, None
        counted = None if command.results else before
        return TurnPost(
            stream=TurnStream(
                self._upstream, session_id, mode, new_turn(messages, mode, changed),
                taken=lambda: self._was_taken(session_id, counted),
                busy_delays=BUSY_RETRY_DELAYS if known.was_abandoned else (),
            ),
            messages=messages, decoder=decoder, before=counted, sent_settings=now,
            user_messages=None if before is None else before + (not command.results),
            secrets=tuple(settings.secrets.values()) if settings else (),
        )

    async def _answers(self, session_id: str, answers: Sequence[tuple[RemoteAsk, m.Answer]]) -> TurnPost:
        card, known = await self._known_card(), self._session(session_id)
        decoder = known.decoder or await self._returning(card, session_id, known)
        for asked, answer in answers:
            decoder.on_answer(asked, answer)
        messages, mode = answer_messages(card, answers), best_stream_mode(card)
        return TurnPost(
            stream=TurnStream(self._upstream, session_id, mode, new_turn(messages, mode, {})),
            messages=messages, decoder=decoder, sent_settings=known.sent_settings, user_messages=known.user_messages,
        )

    async def _items(self, session_id: str, prepare: Callable[[], Awaitable[TurnPost]]) -> ItemGenerator:
        """Send one POST, and decode its stream up to the end of the turn or the asks that it waits for."""
        post = await prepare()
        known, decoder, frames = self._session(session_id), post.decoder, list[TurnFrame]([TURN_START])
        known.decoder, self._streams[session_id] = None, post.stream
        is_over = False
        try:
            with Redactor(post.secrets).errors():
                async with post.stream:
                    while not is_over:
                        frames += await self._read(session_id, post)  # not every server sends a turn_start
                        items, is_over, failure = _decode(decoder, frames)
                        if items:
                            known.sent_settings, known.user_messages = post.sent_settings, post.user_messages
                            yield items
                        if failure is not None:
                            raise failure
                        frames = []
        except StreamInterrupted:
            ends = decoder.end(m.StopReason.INTERRUPTED, m.Outcome.INTERRUPTED)
            yield [*ends, RemoteTurnEnd(stop_reason=m.StopReason.INTERRUPTED, outcome=m.Outcome.INTERRUPTED)]
        finally:
            known.was_abandoned = not is_over
            known.decoder = decoder if decoder.paused else None
            if self._streams.get(session_id) is post.stream:
                del self._streams[session_id]

    async def _read(self, session_id: str, post: TurnPost) -> list[TurnFrame]:
        """The next frames; a stream that ends without `turn_stop` is completed from the server's history."""
        try:
            frames = await post.stream.read()
        except GatewayError as error:
            missing = await self._completed(session_id, post)
            if not missing:
                raise
            log.warning(
                "turn_stop_missing", server=self._upstream.name, upstream_session=session_id, reason=error.message,
                note="the server's history has the finished turn",
            )
            return missing
        return [post.received.add(frame) for frame in frames]

    async def _completed(self, session_id: str, post: TurnPost) -> list[TurnFrame]:
        """The frames that the stream lacks, if the server's history has this turn and it is complete."""
        if self._is_strict or not post.stream.has_begun:
            return []
        try:
            history = await self._history(session_id, "full", "compacted")
        except GatewayError:
            return []
        sent = [AAP.read_as(MessageBody, message, "the message") for message in post.messages]
        answered = [message.call_id for message in sent if message.call_id is not None]
        if history is None or not (answered or self._has_message(history, post)):
            return []
        return [*(missing_frames(history, post.received, answered) or ())]

    def _has_message(self, history: Sequence[MessageBody], post: TurnPost) -> bool:
        """Whether the last message of a person is the one that was sent now, not an equal one of an earlier turn."""
        people = [message for message in history if message.role == m.Role.USER]
        is_counted = bool(post.received.pieces) if post.before is None else len(people) == post.before + 1
        sent = AAP.table.read_message("message.user", post.messages[-1])
        return is_counted and bool(people) and people[-1].content == sent["content"]

    async def _create(self, body: JsonObject) -> JsonValue:
        """Create a session, with retries; a server that supports idempotency keys creates it once."""
        headers = {"Idempotency-Key": random_id("open")}
        return await retry(
            lambda: self._upstream.json("POST", "/sessions", body, headers=headers), self._upstream.timeouts.attempts
        )

    # -- what is known --------------------------------------------------------------------------------------------

    def _session(self, session_id: str) -> RemoteSessionState:
        return self._memory.setdefault(session_id, RemoteSessionState())

    async def _known_card(self) -> m.AgentCard:
        return self._card or await self.about()

    async def _toolbox(self, card: m.AgentCard, session_id: str, known: RemoteSessionState) -> SessionTools:
        """The tools of the session, from the server if they are not remembered here."""
        if known.tools is None:
            known.tools = _session_tools(card, await self._session_body(session_id))
        return known.tools

    async def _session_body(self, session_id: str) -> SessionBody:
        body = await self._upstream.json("GET", f"/sessions/{quote(session_id, safe='')}")
        return AAP.read_as(SessionBody, body, "the session")

    async def _returning(self, card: m.AgentCard, session_id: str, known: RemoteSessionState) -> Decoder:
        """A decoder for a turn that waited before this process began: the history has its open calls."""
        toolbox = await self._toolbox(card, session_id, known)
        hearing = Decoder(self._mint, toolbox)
        calls = _open_calls(await self._history(session_id) or ())
        hearing.recall(call for call in calls if not toolbox.is_ask(call))
        return hearing

    async def _was_taken(self, session_id: str, before: int | None) -> bool | None:
        """Whether the history has one more message of a person than before; None for any other number."""
        history = None if before is None else await self._history(session_id)
        if before is None or history is None:
            return None
        more = sum(message.role == m.Role.USER for message in history) - before
        return bool(more) if more in (0, 1) else None

    async def _history(self, session_id: str, *kinds: str) -> Sequence[MessageBody] | None:
        """The history, in the first of these kinds that the agent has; all of it if no kind is given."""
        kept = (await self._known_card()).capabilities.history
        kind = next((kind for kind in kinds or ("full",) if kind in kept), None)
        if kind is None:
            return None
        body = await self._upstream.json("GET", f"/sessions/{session_id}/history", query={"type": kind})
        histories = AAP.read_as(HistoryBody, body, "the history").history
        return (histories.full if kind == "full" else histories.compacted) or ()


def _decode(
    decoder: Decoder, frames: Sequence[TurnFrame],
) -> tuple[list[DecodedItem], bool, GatewayError | None]:
    """The items of the frames; whether the turn is over or waits; and what is wrong with the frame after them."""
    items: list[DecodedItem] = []
    for frame in frames:
        try:
            decoded = decoder.feed(frame)
        except GatewayError as error:
            return items, False, error
        items += decoded
        if decoder.paused or (decoded and isinstance(decoded[-1], RemoteTurnEnd)):
            return items, True, None
    return items, False, None
