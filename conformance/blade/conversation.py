"""A conversation in one session: its chats, answers and stops, and what REST shows of the session.

What is heard is read leniently: what is wrong with it is noted with the requirement it breaks, and the talk goes on.
Waiting in vain is the failure of the requirement that demands what did not come.
"""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from conformance.blade.chat import EVENTS, Chat
from conformance.blade.damaged_members import sound
from conformance.blade.schema_owners import read
from conformance.kit import expect
from conformance.kit.expect import Failed
from conformance.kit.http import Reply
from conformance.kit.socketio import Link, SocketEvent

if TYPE_CHECKING:
    from conformance.blade.examination import BladeExamination

QUIET = 0.6
LAG = 0.6
LOOKS = 12


class Conversation:
    """One session of the server, talked to over one connection."""

    def __init__(self, exam: "BladeExamination", session: str, link: Link) -> None:
        self._exam = exam
        self.session = session
        self.link = link
        self.path = f"/api/sessions/{quote(session, safe='')}"
        self._is_headless = False
        self._has_heard = False
        """Whether a chat was heard before."""
        self._past: set[str] = set()
        """The turns of earlier chats that are over."""

    def on(self, link: Link) -> "Conversation":
        """The same session over another connection."""
        return Conversation(self._exam, self.session, link)

    async def subscribe(self, **more: Any) -> None:
        """Subscribe, and wait a little for the acknowledgement a server may send."""
        with suppress(Failed):
            await self.link.call("session:subscribe", {"session_id": self.session, **more}, within=QUIET)

    async def stop(self) -> None:
        """Stop whatever the session does, and wait a little for the acknowledgement a server may send."""
        with suppress(Failed):
            await self.link.call("chat:stop", {"session_id": self.session}, within=QUIET)

    async def unsubscribe(self) -> None:
        with suppress(Failed):
            await self.link.call("session:unsubscribe", {"session_id": self.session}, within=QUIET)

    async def send(self, message: Any, **more: Any) -> None:
        self._is_headless = bool(more.get("headless"))
        with expect.owned(self._exam.http.departures.first or "BL-WS-01"):
            await self.link.emit("chat:send", {"session_id": self.session, "message": message, **more})

    async def say(self, message: Any, owner: str = "BL-FLOW-01", **more: Any) -> Chat:
        """One message, and the chat that comes of it; if none does, the owner's sentence is broken."""
        await self.send(message, **more)
        return await self.listen(owner)

    async def play(self, situation: str, **more: Any) -> Chat:
        """The chat of a situation of the profile."""
        return await self.say(self._exam.profile.prompt(situation), **more)

    async def reply(self, call: Any, selections: Any = None, custom: Any = None, message: str = "") -> None:
        answer = {"tool_call_id": call, "selections": selections or {}, "custom": custom or {}}
        await self.send(message, askuser_answer=answer)

    async def answer(self, question: Any, owner: str = "BL-FLOW-14", **more: Any) -> Chat:
        """Answer every question of the call with its first option, and hear what comes of it."""
        await self.reply(sound(question["id"]), first_options(question), **more)
        return await self.listen(owner)

    # -- what is heard -------------------------------------------------------------------------------------------------

    async def hear(self, within: float | None = None) -> SocketEvent:
        """The next event of this session, with what is wrong in it noted."""
        while True:
            heard = await self.link.next(within)
            if not self._is_strange(heard):
                return self._read(heard)

    def _is_strange(self, heard: SocketEvent) -> bool:
        """Whether the event is of another session of this examination, which nobody subscribed to here."""
        named = heard.body.get("session_id") if isinstance(heard.body, dict) else None
        is_strange = isinstance(named, str) and named != self.session and named in self._exam.sessions
        if is_strange and heard.name in EVENTS:
            self._exam.http.departures.note("BL-WS-03", "nothing of a session nobody subscribed to", heard.name)
        return is_strange

    def _read(self, heard: SocketEvent) -> SocketEvent:
        if heard.name not in EVENTS:
            return heard
        owner = "BL-FLOW-26" if self._is_headless and heard.name == "chat:end" else None
        schema = f"event.{heard.name.replace(':', '-')}"
        body = read(self._exam.http.departures, schema, heard.body, f"the event {heard.name}", owner)
        return SocketEvent(heard.name, body)

    async def listen(self, owner: str = "BL-FLOW-01") -> Chat:
        """The events up to chat:end; if chat:end does not come, what came before it."""
        heard: list[SocketEvent] = []
        try:
            with self.link.waits.goal("chat:end"):
                while not heard or heard[-1].name != "chat:end":
                    item = await self.hear()
                    begun = any(it.name in EVENTS for it in heard)
                    if item.name == "system:error" and not begun:
                        item = await self._after(item, owner)
                    if begun or not self._is_leftover(item):
                        heard.append(item)
        except Failed as failure:
            if failure.owner is not None:
                raise
            if not any(it.name in EVENTS for it in heard):
                raise Failed(f"a chat after chat:send: {failure.expected}", failure.seen, owner) from failure
            chat = Chat(tuple(heard))
            self._exam.http.departures.note("BL-FLOW-01", f"chat:end: {failure.expected}", chat.shown)
            return self._kept(chat)
        return self._kept(Chat(tuple(heard)))

    async def _after(self, error: SocketEvent, owner: str) -> SocketEvent:
        """The event of a chat that starts in spite of an error, which was somebody else's then."""
        expected = "chat:send to start a chat"
        named = error.body.get("session_id") if isinstance(error.body, dict) else None
        try:
            expect.that(named is None, expected, error.body)
            while (item := await self.hear(QUIET)).name not in EVENTS:
                pass
        except Failed:
            raise Failed(expected, expect.show(error.body), owner) from None
        self._exam.http.departures.note("BL-GAP-03", "errors for their sender only", error.body)
        return item

    def _is_leftover(self, item: SocketEvent) -> bool:
        """Whether an event before the first of a chat is one that an earlier chat should have told before its end."""
        named = item.body.get("turn_id") if isinstance(item.body, dict) else None
        is_late = self._has_heard and (item.name == "chat:end" or (isinstance(named, str) and named in self._past))
        if is_late:
            self._exam.http.departures.note("BL-FLOW-01", "nothing of a chat after its chat:end", item.name)
        return is_late

    def _kept(self, chat: Chat) -> Chat:
        """Remember the turns of a chat, unless it waits for an answer: such turns may be spoken of at any time."""
        self._has_heard = True
        bodies = [body for _, body in chat.events if isinstance(body, dict)]
        if not any(repr(body.get("status")) == repr("paused") for body in bodies):
            self._past |= {body["turn_id"] for body in bodies if isinstance(body.get("turn_id"), str)}
        return chat

    async def until(self, name: str) -> list[SocketEvent]:
        """The events up to the first of this name."""
        heard: list[SocketEvent] = []
        try:
            with self.link.waits.goal(name):
                while not heard or heard[-1].name != name:
                    names = [it.name for it in heard]
                    owner = "BL-FLOW-03" if name == "turn:start" and "turn:end" in names else None
                    expect.that("chat:end" not in names, f"{name} before the end of the chat", names, owner)
                    heard.append(await self.hear())
        except Failed as failure:
            begun = any(it.name in EVENTS for it in heard)
            failure.owner = failure.owner or ("BL-FLOW-04" if begun else "BL-FLOW-01")
            raise
        return heard

    async def verdict(self, within: float | None = QUIET) -> SocketEvent | None:
        """What a doubtful chat:send brings first, a chat or a refusal; None if neither comes soon, or in time."""
        with suppress(Failed):
            while True:
                heard = await self.hear(within)
                if heard.name in ("chat:start", "system:error"):
                    return heard
        return None

    async def refused(self, why: str) -> SocketEvent | None:
        """Expect that the last chat:send starts nothing."""
        heard = await self.verdict()
        if heard is not None:
            expect.that(heard.name != "chat:start", f"no chat, because {why}", heard.name)
        return heard

    # -- REST ----------------------------------------------------------------------------------------------------------

    async def ask(self, method: str, place: str = "", json: Any = ..., **more: Any) -> Reply:
        return await self._exam.http.ask(method, f"{self.path}{place}", json, **more)

    async def info(self) -> dict[str, Any]:
        """The Session, which is found by its id."""
        with expect.owned("BL-SESS-02"):
            body: dict[str, Any] = await self._exam.got("session", self.path)
        return body

    async def becomes(self, status: str) -> None:
        """Expect the session to have this status, now or very soon; who is waited for longer may take longer."""
        lag = max(LAG, self._exam.http.timeout / 4)
        for _ in range(LOOKS):
            if (seen := (await self.info())["status"]) == status:
                return
            await asyncio.sleep(lag / LOOKS)
        expect.equal("the status of the session", status, seen)

    async def messages(self) -> list[dict[str, Any]]:
        """The turns of the history."""
        return await self._exam.turns(self.path)


def questions(call: Any) -> list[dict[str, Any]]:
    """The questions of a call."""
    held = expect.parsed(sound(call["arguments"]), "the arguments")
    with expect.owned("BL-FLOW-11"):
        found = expect.keyed("the arguments", held, "questions")["questions"]
        expect.that(isinstance(found, list) and bool(found), "a list of questions", found)
        for item in found:
            expect.keyed("a question", item, "options")
            expect.that(isinstance(item["options"], list), "a list of options", item)
    asked: list[dict[str, Any]] = found
    return asked


def first_options(call: Any) -> dict[str, list[int]]:
    return {str(place): [0] for place, _ in enumerate(questions(call))}
