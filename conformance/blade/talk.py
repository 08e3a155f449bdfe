"""A session to talk in: chats, answers, stops, and what REST says of it."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from conformance.blade.chat import EVENTS, Chat
from conformance.blade.snapshot import read
from conformance.kit import expect
from conformance.kit.expect import Failed
from conformance.kit.http import Reply
from conformance.kit.socketio import Link, SocketEvent

if TYPE_CHECKING:
    from conformance.blade.examination import BladeExamination

QUIET = 0.6
LAG = 0.6
LOOKS = 12


class Talk:
    """One session of the server, talked to over one connection."""

    def __init__(self, exam: "BladeExamination", session: str, link: Link) -> None:
        self._exam = exam
        self.session = session
        self.link = link
        self.path = f"/api/sessions/{quote(session, safe='')}"

    def on(self, link: Link) -> "Talk":
        """The same session over another connection."""
        return Talk(self._exam, self.session, link)

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
        await self.link.emit("chat:send", {"session_id": self.session, "message": message, **more})

    async def say(self, message: Any, **more: Any) -> Chat:
        """One message, and the chat that comes of it."""
        await self.send(message, **more)
        return await self.listen()

    async def play(self, situation: str, **more: Any) -> Chat:
        """The chat of a situation of the profile."""
        return await self.say(self._exam.profile.prompt(situation), **more)

    async def reply(self, call: Any, selections: Any = None, custom: Any = None, message: str = "") -> None:
        answer = {"tool_call_id": call, "selections": selections or {}, "custom": custom or {}}
        await self.send(message, askuser_answer=answer)

    async def answer(self, question: Any, **more: Any) -> Chat:
        """Answer every question of the call with its first option, and hear what comes of it."""
        await self.reply(question["id"], first_options(question), **more)
        return await self.listen()

    async def hear(self, within: float | None = None) -> SocketEvent:
        """The next event; those of the flow must fit their schemas."""
        heard = await self.link.next(within)
        if heard.name in EVENTS:
            self._exam.fit(f"event.{heard.name.replace(':', '-')}", heard.body, f"the event {heard.name}")
        return heard

    async def listen(self) -> Chat:
        """The events up to chat:end."""
        heard: list[SocketEvent] = []
        with self.link.waits.goal("chat:end"):
            while not heard or heard[-1].name != "chat:end":
                heard.append(await self.hear())
                begun = any(item.name in EVENTS for item in heard)
                expect.that(begun or heard[-1].name != "system:error", "chat:send to start a chat", heard[-1].body)
        return Chat(tuple(heard))

    async def until(self, name: str, patch_type: str | None = None) -> list[SocketEvent]:
        """The events up to the first of this name (and patch type)."""
        with self.link.waits.goal(name):
            heard = [await self.hear()]
            while heard[-1].name != name or patch_type not in (None, heard[-1].body.get("patch_type")):
                names = [it.name for it in heard]
                expect.that(heard[-1].name != "chat:end", f"{name} before the end of the chat", names)
                heard.append(await self.hear())
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
        """The Session."""
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
    found = expect.keyed("the arguments", read(call["arguments"]), "questions")["questions"]
    expect.that(isinstance(found, list), "a list of questions", found)
    asked: list[dict[str, Any]] = found
    return asked


def first_options(call: Any) -> dict[str, list[int]]:
    return {str(place): [0] for place, _ in enumerate(questions(call))}
