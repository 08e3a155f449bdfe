"""Compares the sessions here with those of the server that is their agent: turns, words and calls."""

from collections.abc import AsyncIterator, Iterable

from msgspec import Struct, field

import gateway.model as m
from gateway.backends.remote import SessionLink
from gateway.errors import GatewayError, NotFound
from gateway.ports import PastSessions
from gateway.storage.log import LogFile

from .past_records import Destination, Origin, make_records

MAX_SHOWN = 80
"""So many characters of a text are shown where two texts differ."""


class SpokenTurn(Struct, frozen=True):
    """What was said from one message of a person to the next."""

    said: str
    answered: str
    calls: tuple[str, ...]

    @property
    def words(self) -> int:
        return len(self.said.split()) + len(self.answered.split())


class Comparison(Struct):
    """How both sides compare; `differences` has a line for each difference."""

    sessions: int = 0
    turns: int = 0
    words: int = 0
    words_there: int = 0
    running: int = 0
    """Sessions that were not compared, because a turn runs or waits in them."""
    differences: list[str] = field(default_factory=list)

    @property
    def are_equal(self) -> bool:
        return not self.differences


def spoken_turns(view: m.SessionView) -> list[SpokenTurn]:
    """What people and the agent itself said, and what it called; sub-agents are left out, and so is thinking."""
    turns: list[tuple[str, list[str], list[str]]] = []
    for entry in view.entries:
        if entry.scope_id != m.ROOT or entry.role not in (m.Role.USER, m.Role.ASSISTANT):
            continue
        text = "".join(map(_text, m.parts_of(entry.content)))
        if entry.role is m.Role.USER or not turns:
            turns.append(("", [], []))
        _, answered, calls = turns[-1]
        if entry.role is m.Role.USER:
            turns[-1] = text, answered, calls
        else:
            answered.append(text)
            called = [part.call.name for part in m.parts_of(entry.content) if isinstance(part, m.ToolUsePart)]
            calls += [name for name in called if name != m.QUESTION_TOOL]  # some protocols ask without a call
    return [SpokenTurn(said, "".join(answered), tuple(calls)) for said, answered, calls in turns]


def _text(part: m.AnyPart) -> str:
    """Not all protocols have images of an agent: a picture counts as its Markdown."""
    return m.image_markdown(part) if isinstance(part, m.ImagePart) else m.text_of((part,))


async def compare_sessions(file: LogFile, source: PastSessions, origin: Origin, now: float) -> Comparison:
    """Compare the sessions here that are linked to sessions of this server, and find those that only the server has."""
    found, linked = Comparison(), set[str]()
    for head in file.heads():
        view = m.fold(head.session_id, file.records(head.session_id))
        link = SessionLink.read(view.metadata)
        if link.upstream_session is None or (link.upstream_dialect, link.upstream_url) != (origin.dialect, origin.url):
            continue
        linked.add(link.upstream_session)
        if head.in_turn:
            found.running += 1
        else:
            found.sessions += 1
            await _compare_session(found, view, link.upstream_session, source, origin, now)
    async for session_id in _unlinked(source, linked):
        found.differences.append(f"session {session_id}: only the server has it; `dragoman import` brings it here")
    return found


async def _compare_session(
    found: Comparison, ours: m.SessionView, theirs_id: str, source: PastSessions, origin: Origin, now: float,
) -> None:
    try:
        theirs = make_records(await source.read(theirs_id), origin, Destination(agent=ours.agent), now)
    except NotFound:
        found.differences.append(f"session {ours.session_id}: the server does not have it any more")
    except (GatewayError, m.GrammarError) as error:
        found.differences.append(f"session {ours.session_id}: the server's could not be read: {error}")
    else:
        _compare(found, ours, m.fold(ours.session_id, theirs))


def _compare(found: Comparison, ours: m.SessionView, theirs: m.SessionView) -> None:
    here, there = spoken_turns(ours), spoken_turns(theirs)
    found.turns += len(here)
    found.words += sum(turn.words for turn in here)
    found.words_there += sum(turn.words for turn in there)
    if len(here) != len(there):
        found.differences.append(f"session {ours.session_id}: {len(here)} turns here, {len(there)} at the server")
    for number, (one, other) in enumerate(zip(here, there, strict=False), 1):
        found.differences += (f"session {ours.session_id}, turn {number}: {line}" for line in _differences(one, other))


def _differences(here: SpokenTurn, there: SpokenTurn) -> Iterable[str]:
    for what, one, other in (
        ("the person said", here.said, there.said), ("the agent answered", here.answered, there.answered),
        ("the agent called", ", ".join(here.calls), ", ".join(there.calls)),
    ):
        if one != other:
            yield f"{what} {_shown(one, other)} here, {_shown(other, one)} at the server"


def _shown(text: str, other: str) -> str:
    """The text from a little before the place where it differs from the other."""
    place = next((at for at, pair in enumerate(zip(text, other, strict=False)) if pair[0] != pair[1]), 0)
    start = max(0, place - MAX_SHOWN // 4)
    return f"{'…' if start else ''}{text[start:start + MAX_SHOWN]!r}"


async def _unlinked(source: PastSessions, linked: set[str]) -> AsyncIterator[str]:
    name: str | None = None
    while True:
        listed, name = await source.page(name)
        for session in listed:
            if session.session_id not in linked:
                linked.add(session.session_id)
                yield session.session_id
        if name is None or not listed:
            return
