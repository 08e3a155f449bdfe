"""Scenes: what several cases judge is played once, in a session of its own, with a look at it after every chat.

A scene is made of the situations of the profile. A question is answered in the same scene, so that its second chat is
what came of the answer; a plain reply and the use of a tool are played twice.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from conformance.blade.chat import Chat, TurnEvents
from conformance.blade.conversation import LAG, LOOKS, Conversation
from conformance.blade.examination import BladeExamination
from conformance.blade.snapshot import is_message
from conformance.kit import expect
from conformance.kit.expect import Failed

T = TypeVar("T")
Turn = dict[str, Any]
FOLLOWED = {"text": "text", "tool": "tool", "plan": "text"}
"""Situations that are followed by another: what comes late is heard then."""
ASKING = ("ask", "fork_ask")


@dataclass
class Scene:
    """The chats of one session, and how history and session looked after each of them."""

    session: str
    path: str
    _before: dict[str, Any] | Failed
    _chats: list[Chat | Failed] = field(default_factory=list)
    _kept: list[list[Turn] | Failed] = field(default_factory=list)
    _looks: list[dict[str, Any] | Failed] = field(default_factory=list)

    @property
    def before(self) -> dict[str, Any]:
        """The session before anything was said."""
        return _had(self._before)

    def chat(self, place: int = 0) -> Chat:
        """The chat at this place; if it could not be had, the failure that kept it."""
        return _had(self._chats[min(place, len(self._chats) - 1)])

    @property
    def chats(self) -> list[Chat]:
        """All chats."""
        return [_had(item) for item in self._chats]

    def kept(self, place: int = -1) -> list[Turn]:
        """The history after a chat."""
        return _had(self._kept[place])

    def look(self, place: int = -1) -> dict[str, Any]:
        """The session after a chat."""
        return _had(self._looks[place])

    @property
    def turns(self) -> list[TurnEvents]:
        """The turns of all chats; one that several chats speak of is told as it was told last."""
        return [turn for chat in self.chats for turn in chat.turns]

    @property
    def pairs(self) -> list[tuple[TurnEvents, Turn]]:
        """The turns that ended, each with the same turn in the history after its chat."""
        found = []
        for place, chat in enumerate(self.chats):
            found += pairs(chat, self.kept(place))
        return found


def pairs(chat: Chat, kept: list[Turn]) -> list[tuple[TurnEvents, Turn]]:
    """The turns of a chat and the same turns in the history; what the history lacks is left out.

    If it knows none of them, the turns go by other ids there.
    """
    known = {turn["turn_id"]: turn for turn in kept}
    ended = [turn for turn in chat.turns if turn.end is not None]
    found = [(turn, known[turn.turn_id]) for turn in ended if turn.turn_id in known]
    told = [turn.turn_id for turn in ended]
    is_strange = bool(told) and bool(known) and not found and len(kept) >= len(told)
    expect.that(not is_strange, f"the turns {told} in the history", sorted(known), "BL-TURN-04")
    return found


def messages(kept: list[Turn]) -> list[Turn]:
    """The turns of a history that are no summaries."""
    return [turn for turn in kept if is_message(turn)]


def _had(item: T | Failed) -> T:
    if isinstance(item, Failed):
        raise item.again()
    return item


async def scene(exam: BladeExamination, situation: str, **more: Any) -> Scene:
    """The scene of a situation, played once for all cases that look at it."""
    exam.profile.prompt(situation)

    async def make(own: BladeExamination) -> Scene:
        return await _played(own, situation, more)

    return await exam.http.observations.once(f"the scene {' '.join((situation, *more))}", make)


async def _played(exam: BladeExamination, situation: str, more: dict[str, Any]) -> Scene:
    talk = await exam.open()
    found = Scene(talk.session, talk.path, await _caught(talk.info))
    await _chat(found, talk, lambda: talk.play(situation, **more))
    is_first = isinstance(found._chats[0], Chat) and not more
    if is_first and exam.profile.having((FOLLOWED.get(situation, situation),)) and situation in FOLLOWED:
        await _chat(found, talk, lambda: talk.play(FOLLOWED[situation]))
    if is_first and situation in ASKING:
        await _chat(found, talk, lambda: answered(exam, talk, found.chat().question()))
    return found


async def answered(exam: BladeExamination, talk: Conversation, question: Any) -> Chat:
    """What comes of an answer; if it is refused because calls go by other ids than they say, that is the cause."""
    try:
        return await talk.answer(question)
    except Failed:
        await expect_unique_calls(exam)
        raise


async def expect_unique_calls(exam: BladeExamination) -> None:
    """Expect the calls of one tool in two chats to have two ids."""
    if exam.profile.having(("tool",)):
        ids = [call["id"] for chat in (await scene(exam, "tool")).chats for call in chat.calls]
        expect.that(len(ids) == len(set(ids)), "every call to have an id of its own", ids, "BL-TC-02")


async def _chat(found: Scene, talk: Conversation, say: Callable[[], Awaitable[Chat]]) -> None:
    """One chat of the scene, and the looks after it; what fails is kept for those who ask for it."""
    found._chats.append(await _caught(say))
    found._kept.append(await _caught(talk.messages))
    found._looks.append(await _caught(lambda: _settled(talk)))


async def _settled(talk: Conversation) -> dict[str, Any]:
    """The session once it does not run any more, which may take it a moment."""
    for _ in range(LOOKS):
        seen = await talk.info()
        if repr(seen["status"]) != repr("running"):
            break
        await asyncio.sleep(LAG / LOOKS)
    return seen


async def _caught(work: Callable[[], Awaitable[T]]) -> T | Failed:
    try:
        return await work()
    except Failed as failure:
        return failure
