"""AAP spoken as a client: a server of it is opened, spoken to, answered, and hung up on."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any
from urllib.parse import quote

import structlog

from gateway.errors import BackendFailed, GatewayError, Unsupported
from gateway.ids import Mint, minting, unguessable
from gateway.model import (
    AgentCard,
    Answer,
    Compact,
    Outcome,
    Permission,
    Role,
    SendMessage,
    Settings,
    StopReason,
    ToolCall,
    ToolUsePart,
)
from gateway.upstream import Asked, Ended, Frame, Heard, Opening, RemoteAddress, RemoteSession, Upstream, hidden

from .hearing import AapHearing
from .hearing_asks import Toolbox, titles_of, toolbox_of
from .hearing_wire import CreatedBody, HistoryBody, MessageBody, SessionBody, SessionsBody, content_of, read_as
from .remote_history import Transcript, rest_of_turn
from .remote_memory import Known, Memory
from .remote_meta import card_of, mode_of, spec_of
from .remote_speech import answer_messages, changes, chosen, new_session, new_turn, turn_messages
from .remote_stream import HungUp, Taken, TurnStream

log = structlog.get_logger("dragoman.remote")

BUSY = 409
NOTHING_TO_END = (404, 405, 409, 501)
"""What a server answers that has no such way, no such session, or no turn that runs or waits."""
PAGES = 100
"""So many pages of a list are looked through."""
START = Frame("turn_start", {})
PATIENT = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""After how many seconds a server is asked once more that may not have noticed yet that we hung up."""


class AapRemote:
    """A server of AAP's, as `gateway.upstream.Remote`.

    Of what the house knows, AAP can be told the tools and their permissions, the client's tools, options and secrets,
    a system prompt and a history; not a title, a model, a schema for the answer, or to compact. Settings that have
    changed go with the next message; a system prompt cannot change any more.

    How a stream that was cut is taken up again, `TurnStream` tells. AAP has no interruption, and servers of this house
    have one all the same: `DELETE …/turns/current`. Whoever has none is hung up on, and what becomes of the turn is
    the server's to say; one that waits for people is left waiting there until the next message abandons it. Closing a
    generator early hangs up, too. The server's capabilities decide how it is heard: by deltas, in whole parts, or at
    the end.
    """

    tells_permissions = True

    def __init__(self, address: RemoteAddress, mint: Mint | None = None) -> None:
        headers = {"Authorization": f"Bearer {address.key}"} if address.key else {}
        self._secrets = (address.key,) if address.key else ()
        self._upstream = Upstream(address.url, headers=headers, secrets=self._secrets, patience=address.patience)
        self._agent, self._is_strict = address.agent, address.is_strict
        self._mint = mint or minting()
        self._card: AgentCard | None = None
        self._memory = Memory()
        self._streams: dict[str, TurnStream] = {}

    async def about(self) -> AgentCard:
        self._card = card_of(await self._upstream.json("GET", "/meta"), self._upstream.name, self._agent)
        return self._card

    async def open(self, opening: Opening) -> str:
        card = await self._known_card()
        with blotting(opening.settings.secrets.values()):
            body = new_session(card, opening)
            session_id = read_as(CreatedBody, await self._create(body), "the answer to a new session").session_id
        known = self._memory.of(session_id)
        known.chosen, known.toolbox = chosen(card, opening.settings), toolbox_of(card, opening.settings)
        known.said = sum(message.role is Role.USER for message in opening.history)
        return session_id

    async def sessions(self, most: int) -> Sequence[RemoteSession]:
        found: list[RemoteSession] = []
        query: dict[str, str] | None = None
        for _ in range(PAGES):
            page = read_as(SessionsBody, await self._upstream.json("GET", "/sessions", query=query), "the sessions")
            found += (RemoteSession(session_id=one.session_id, agent=one.agent.name) for one in page.sessions)
            if page.next is None or len(found) >= most:
                break
            query = {"after": page.next}
        return found[:most]

    async def join(self, session_id: str) -> RemoteSession:
        """The session keeps its agent, which need not be the server's first."""
        body = await self._upstream.json("GET", f"/sessions/{quote(session_id, safe='')}")
        session = read_as(SessionBody, body, "the session")
        self._agent, self._card = session.agent.name, None
        self._memory.of(session_id).toolbox = _toolbox(await self._known_card(), session)
        return RemoteSession(session_id=session_id, agent=session.agent.name)

    async def say(
        self, session_id: str, command: SendMessage | Compact, settings: Settings | None = None,
    ) -> AsyncGenerator[Heard, None]:
        if isinstance(command, Compact):
            raise Unsupported("AAP has no way to ask for a compaction")
        card, known = await self._known_card(), self._memory.of(session_id)
        now = known.chosen
        said = {}
        if settings is not None:
            now = chosen(card, settings)
            said, known.toolbox = changes(card, known.chosen, now), toolbox_of(card, settings)
        body = new_turn(turn_messages(card, command), mode_of(card), said)
        hearing = AapHearing(self._mint, await self._toolbox(card, session_id, known))
        before, known.said = known.said, None
        with blotting(settings.secrets.values() if settings else ()):
            counted = None if command.results else before
            async with aclosing(self._patiently(session_id, body, hearing, counted)) as turn:
                async for heard in turn:  # so it was taken
                    known.chosen, known.said = now, None if before is None else before + (not command.results)
                    yield heard

    async def answer(
        self, session_id: str, answers: Sequence[tuple[Asked, Answer]],
    ) -> AsyncGenerator[Heard, None]:
        card, known = await self._known_card(), self._memory.of(session_id)
        hearing = known.hearing or await self._returning(card, session_id, known)
        for asked, answer in answers:
            hearing.settle(asked, answer)
        body = new_turn(answer_messages(card, answers), mode_of(card), {})
        stream = await self._stream(session_id)
        async with aclosing(self._hear(session_id, stream, body, hearing)) as turn:
            async for heard in turn:
                yield heard

    async def interrupt(self, session_id: str) -> None:
        stream = self._streams.get(session_id)
        if stream is not None:
            stream.hang_up()
        self._memory.of(session_id).hearing = None
        try:
            await self._upstream.json("DELETE", f"/sessions/{session_id}/turns/current")
        except GatewayError as error:
            if (error.details or {}).get("upstream_status") not in NOTHING_TO_END:
                raise

    async def close(self) -> None:
        for stream in list(self._streams.values()):
            stream.hang_up()
        await self._upstream.close()

    # -- one turn -------------------------------------------------------------------------------------------------

    async def _patiently(
        self, session_id: str, body: dict[str, object], hearing: AapHearing, before: int | None,
    ) -> AsyncGenerator[Heard, None]:
        """A server that we hung up on may need a moment to notice; whoever else is busy is left alone."""
        waits = PATIENT if self._memory.of(session_id).is_left else ()
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

    async def _stream(self, session_id: str, taken: Taken | None = None) -> TurnStream:
        mode = mode_of(await self._known_card())
        return TurnStream(self._upstream, session_id, mode, taken=taken, secrets=self._secrets)

    async def _hear(
        self, session_id: str, stream: TurnStream, body: dict[str, Any], hearing: AapHearing, before: int | None = None,
    ) -> AsyncGenerator[Heard, None]:
        known, is_over = self._memory.of(session_id), False
        known.hearing, self._streams[session_id] = None, stream
        try:
            async with aclosing(self._frames(session_id, stream, body, before)) as frames:
                first = await anext(frames)
                said = [*hearing.feed(START), *hearing.feed(first)]  # not every server says that a turn starts
                while True:
                    is_over = hearing.paused or any(isinstance(heard, Ended) for heard in said)
                    for heard in said:
                        yield heard
                    if is_over:
                        break
                    said = hearing.feed(await anext(frames))
        except HungUp:
            for heard in hearing.end(StopReason.INTERRUPTED, Outcome.INTERRUPTED):
                yield heard
            yield Ended(stop_reason=StopReason.INTERRUPTED, outcome=Outcome.INTERRUPTED)
        finally:
            known.is_left = not is_over
            known.hearing = hearing if hearing.paused else None
            if self._streams.get(session_id) is stream:
                del self._streams[session_id]

    async def _frames(
        self, session_id: str, stream: TurnStream, body: dict[str, Any], before: int | None,
    ) -> AsyncGenerator[Frame, None]:
        """The frames of the turn; a stream that ends without `turn_stop` is completed from the server's history."""
        transcript, rest = Transcript(), list[Frame]()
        async with aclosing(stream.frames(body)) as frames:
            while not rest:
                try:
                    frame = await stream.next(frames)
                except GatewayError as error:
                    rest = await self._completed(session_id, stream, body["messages"], transcript, before)
                    if not rest:
                        raise
                    log.warning(
                        "turn_stop_missing", server=self._upstream.name, upstream_session=session_id, why=error.message,
                        note="the server's history has the finished turn",
                    )
                else:
                    transcript.hear(frame)
                    yield frame
        for frame in rest:
            yield frame

    async def _completed(
        self, session_id: str, stream: TurnStream, sent: Sequence[Any], heard: Transcript, before: int | None,
    ) -> list[Frame]:
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
        return rest_of_turn(history, heard, answered) or []

    def _has_message(
        self, history: Sequence[MessageBody], sent: Any, heard: Transcript, before: int | None,
    ) -> bool:
        """Whether the last message of a person is the one that was sent now, not the same words of an earlier turn."""
        people = [message for message in history if message.role == Role.USER]
        is_counted = bool(heard.pieces) if before is None else len(people) == before + 1
        return is_counted and bool(people) and people[-1].content == sent["content"]

    async def _create(self, body: dict[str, object]) -> object:
        """A session that is made twice harms nobody; with a server that heeds the key it is made once."""
        headers = {"Idempotency-Key": unguessable("open")}
        for _ in range(self._upstream.patience.attempts - 1):
            try:
                return await self._upstream.json("POST", "/sessions", body, headers=headers)
            except BackendFailed as error:
                if not error.retryable:
                    raise
        return await self._upstream.json("POST", "/sessions", body, headers=headers)

    # -- what is known --------------------------------------------------------------------------------------------

    async def _known_card(self) -> AgentCard:
        return self._card or await self.about()

    async def _toolbox(self, card: AgentCard, session_id: str, known: Known) -> Toolbox:
        """The tools of the session, as the server has them where nobody here remembers."""
        if known.toolbox is None:
            session = read_as(SessionBody, await self._upstream.json("GET", f"/sessions/{session_id}"), "the session")
            known.toolbox = _toolbox(card, session)
        return known.toolbox

    async def _returning(self, card: AgentCard, session_id: str, known: Known) -> AapHearing:
        """A hearing for a turn that waited before we were there: the history tells which calls have not come back."""
        toolbox = await self._toolbox(card, session_id, known)
        hearing = AapHearing(self._mint, toolbox)
        calls = _open_calls(await self._history(session_id) or ())
        hearing.recall(call for call in calls if not toolbox.stands_in(call))
        return hearing

    async def _was_taken(self, session_id: str, before: int | None) -> bool | None:
        """Whether the history has one more message of a person than it had; with any other number nobody can tell."""
        history = None if before is None else await self._history(session_id)
        if before is None or history is None:
            return None
        more = sum(message.role == Role.USER for message in history) - before
        return bool(more) if more in (0, 1) else None

    async def _history(self, session_id: str, *kinds: str) -> Sequence[MessageBody] | None:
        """What was said, in the first of these kinds that the agent keeps; all of it if no kind is given."""
        kept = (await self._known_card()).capabilities.history
        kind = next((kind for kind in kinds or ("full",) if kind in kept), None)
        if kind is None:
            return None
        body = await self._upstream.json("GET", f"/sessions/{session_id}/history", query={"type": kind})
        histories = read_as(HistoryBody, body, "the history").history
        return (histories.full if kind == "full" else histories.compacted) or ()


def _toolbox(card: AgentCard, session: SessionBody) -> Toolbox:
    trusted = {tool.name: Permission.ALLOW if tool.trust else Permission.ASK for tool in session.agent.tools or ()}
    return Toolbox(
        client=frozenset(tool.name for tool in session.tools or ()),
        server={tool.spec.name: trusted.get(tool.spec.name, Permission.DENY) for tool in card.tools},
        titles=titles_of(card, map(spec_of, session.tools or ())),
    )


def _open_calls(messages: Iterable[MessageBody]) -> list[ToolCall]:
    """The calls since somebody last spoke that have no result."""
    calls: dict[str, ToolCall] = {}
    for message in messages:
        if message.role == "user":
            calls.clear()
        elif message.role == "tool":
            calls.pop(message.tool_call_id or "", None)
        else:
            parts = content_of(message.content)
            calls.update((p.call.call_id, p.call) for p in parts if isinstance(p, ToolUsePart))
    return list(calls.values())


@contextmanager
def blotting(secrets: Iterable[str]) -> Iterator[None]:
    """A server that repeats a secret in its complaints is quoted without it."""
    try:
        yield
    except GatewayError as error:
        error.message = hidden(error.message, secrets)
        error.args = (error.message,)
        raise
