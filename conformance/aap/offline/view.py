"""A recording of AAP traffic: sessions, their configuration over time, their turns and their histories."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import unquote

from conformance.aap.agent import Agent
from conformance.aap.examination import SCHEMAS
from conformance.aap.turn import STREAMED, Turn, TurnReader
from conformance.kit.departures import Departures
from conformance.kit.expect import Failed
from conformance.offline.recording import Exchange, Recording, mapping, mappings

Body = dict[str, Any]
Item = TypeVar("Item")
LOOKING_ELSEWHERE = (401, 403, 429)
STRANGE = re.compile(r"(?!(?:GET|HEAD|OPTIONS) |POST /sessions/[^/]+/turns/?$)\w+ /sessions/([^/]+)/.")


@dataclass(frozen=True)
class RecordedTurn:
    """One POST to /turns; `told` is what came of it, if it was accepted and is well-formed."""

    exchange: Exchange
    session: str
    mode: str
    messages: list[Body]
    told: Turn | None

    @property
    def is_accepted(self) -> bool:
        return self.exchange.status == 200

    @property
    def roles(self) -> set[str]:
        return {str(item.get("role")) for item in self.messages}


@dataclass
class Setup:
    """How a session is configured at some moment."""

    agent: str
    tools: dict[str, bool] = field(default_factory=dict)
    options: Body = field(default_factory=dict)
    client_tools: list[Body] = field(default_factory=list)

    def change(self, body: Body) -> None:
        """What a request sets: options merge, tools replace."""
        agent = mapping(body.get("agent"))
        self.options = self.options | mapping(agent.get("options"))
        if isinstance(agent.get("tools"), list):
            self.tools = {str(tool.get("name")): bool(tool.get("trust")) for tool in mappings(agent["tools"])}
        if isinstance(body.get("tools"), list):
            self.client_tools = mappings(body["tools"])

    @property
    def client_names(self) -> set[str]:
        return {str(tool.get("name")) for tool in self.client_tools}


class AapView:
    """What a recording shows of one server."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    # -- agents --------------------------------------------------------------------------------------------------------

    @cached_property
    def metas(self) -> list[Exchange]:
        return [item for item, _ in self.recording.of("GET /meta") if item.is_whole]

    @cached_property
    def agents(self) -> dict[str, Agent]:
        """The agents that /meta lists, as far as they can be made sense of."""
        listed = [it for item in self.metas if item.status == 200 for it in mappings(mapping(item.json).get("agents"))]
        return {str(it["name"]): Agent(it) for it in listed if "name" in it}

    # -- sessions ------------------------------------------------------------------------------------------------------

    @cached_property
    def creations(self) -> list[Exchange]:
        return [item for item, _ in self.recording.of("POST /sessions") if item.is_whole]

    @cached_property
    def created(self) -> dict[str, Exchange]:
        """The sessions made in this recording, by id."""
        made = [item for item in self.creations if item.is_done]
        return {str(mapping(item.json).get("sessionId")): item for item in made if isinstance(item.sent, dict)}

    @cached_property
    def shown(self) -> list[tuple[Exchange, str]]:
        return [(item, name) for item, (name,) in self.recording.of("GET /sessions/{}") if item.is_whole]

    @cached_property
    def lists(self) -> list[Exchange]:
        return [item for item, _ in self.recording.of("GET /sessions") if item.is_whole]

    @cached_property
    def deletions(self) -> list[tuple[Exchange, str]]:
        return [(item, name) for item, (name,) in self.recording.of("DELETE /sessions/{}") if item.is_whole]

    @cached_property
    def _deletions_of(self) -> dict[str, list[Exchange]]:
        return grouped(self.deletions)

    def deleted_before(self, session: str, order: int) -> bool:
        return any(item.status == 204 and item.ended < order for item in self._deletions_of.get(session, []))

    def leaves_before(self, session: str, order: int) -> bool:
        """Whether somebody had asked by then that the session be deleted."""
        return any(item.order < order for item in self._deletions_of.get(session, []))

    def setup(self, session: str, order: int) -> Setup | None:
        """The configuration at this moment, if the recording has the session from its beginning."""
        made = self.created.get(session)
        if made is None:
            return None
        found = Setup(str(mapping(made.sent.get("agent")).get("name")))
        found.change(made.sent)
        for turn in self.turns_of(session):
            if turn.is_accepted and turn.exchange.order <= order and isinstance(turn.exchange.sent, dict):
                found.change(turn.exchange.sent)
        return found

    def agent_of(self, session: str) -> Agent | None:
        made = self.created.get(session)
        return self.agents.get(str(mapping(made.sent.get("agent")).get("name"))) if made is not None else None

    # -- turns ---------------------------------------------------------------------------------------------------------

    @cached_property
    def turns(self) -> list[RecordedTurn]:
        return [self._turn(item, name) for item, (name,) in self.recording.of("POST /sessions/{}/turns") if item.status]

    def _turn(self, item: Exchange, session: str) -> RecordedTurn:
        sent = mapping(item.sent)
        mode = str(sent.get("stream", "none"))
        return RecordedTurn(item, session, mode, mappings(sent.get("messages")), _told(item, mode))

    @cached_property
    def _by_session(self) -> dict[str, list[RecordedTurn]]:
        return grouped((turn, turn.session) for turn in self.turns)

    def turns_of(self, session: str) -> list[RecordedTurn]:
        return self._by_session.get(session, [])

    @cached_property
    def streamed(self) -> list[RecordedTurn]:
        """Accepted turns in a streaming mode, read to their end."""
        accepted = [turn for turn in self.turns if turn.is_accepted and turn.mode in STREAMED]
        return [turn for turn in accepted if turn.exchange.is_whole and turn.exchange.is_stream]

    @cached_property
    def told(self) -> list[tuple[RecordedTurn, Turn]]:
        """Accepted turns that are well-formed, in any mode."""
        return [(turn, turn.told) for turn in self.turns if turn.told is not None]

    def before(self, turn: RecordedTurn) -> tuple[RecordedTurn, Turn] | None:
        """The turn of the same session that was accepted just before."""
        earlier = [it for it in self.turns_of(turn.session) if it.is_accepted and it.exchange.ended]
        earlier = [it for it in earlier if it.exchange.ended < turn.exchange.order]
        if not earlier or self._is_touched(turn.session, earlier[-1].exchange.ended, turn.exchange.order):
            return None
        return (earlier[-1], earlier[-1].told) if earlier[-1].told is not None else None

    def pending(self, turn: RecordedTurn) -> list[Body] | None:
        """The calls that were open when this turn was posted, if the recording shows them."""
        found = self._asked_before(turn)
        return [call for call in found[0] if call["toolCallId"] not in found[1]] if found is not None else None

    def asked_before(self, turn: RecordedTurn) -> list[Body] | None:
        """The calls that were left open since the user last spoke, answered or not, if the recording shows them."""
        found = self._asked_before(turn)
        return found[0] if found is not None else None

    def _asked_before(self, turn: RecordedTurn) -> tuple[list[Body], set[str]] | None:
        """The calls that were left open since the user last spoke, and the ids of those answered before this turn."""
        accepted = [it for it in self.turns_of(turn.session) if it.is_accepted]
        earlier = [it for it in accepted if it.exchange.order < turn.exchange.order]
        made = self.created.get(turn.session)
        if self.before(turn) is None if earlier else made is None:
            return None
        calls: list[Body] = []
        answered: set[str] = set()
        for it in reversed(earlier):
            if it.told is None:
                return None
            calls = it.told.open_calls + calls
            answered |= {str(message.get("toolCallId")) for message in it.messages}
            if "user" in it.roles:
                return calls, answered
        seed = mappings(made.sent.get("messages")) if made is not None else []
        return _left_open(seed) + calls, answered

    @cached_property
    def _strange(self) -> dict[str, list[Exchange]]:
        """Requests to sessions that the protocol does not know, such as one to end a turn: who knows what they do."""
        done = (it for it in self.recording.exchanges if not it.is_refused)
        matched = ((it, STRANGE.match(f"{it.method} {it.path}")) for it in done)
        return grouped((it, unquote(found[1])) for it, found in matched if found)

    def _is_touched(self, session: str, start: int, end: int) -> bool:
        return any(it.order < end and (it.ended or end) > start for it in self._strange.get(session, []))

    # -- histories -----------------------------------------------------------------------------------------------------

    @cached_property
    def histories(self) -> list[tuple[Exchange, str]]:
        return [(item, name) for item, (name,) in self.recording.of("GET /sessions/{}/history") if item.is_whole]

    @cached_property
    def full(self) -> list[tuple[Exchange, str, list[Body]]]:
        """The full histories that were given and are well-formed."""
        given = [(item, name) for item, name in self.histories if item.status == 200 and item.param("type") == "full"]
        right = [(item, name) for item, name in given if not SCHEMAS.problems("history", item.json)]
        return [(item, name, item.json["history"].get("full", [])) for item, name in right]

    @cached_property
    def _full_by_session(self) -> dict[str, list[tuple[Exchange, list[Body]]]]:
        return grouped(((item, kept), name) for item, name, kept in self.full)

    def full_of(self, session: str) -> list[tuple[Exchange, list[Body]]]:
        return self._full_by_session.get(session, [])

    def quiet(self, session: str, start: int, end: int) -> bool:
        """Whether no turn of the session ran, even in part, between these two moments, and nobody meddled with it."""
        running = (turn.exchange for turn in self.turns_of(session) if turn.is_accepted)
        is_still = not any(item.order < end and (item.ended or end) > start for item in running)
        return is_still and not self._is_touched(session, start, end)

    def kept(self, turn: RecordedTurn) -> list[Body] | None:
        """What the history has of this turn alone, if the recording shows them."""
        item = turn.exchange
        later = [(it, kept) for it, kept in self.full_of(turn.session) if it.order > item.ended]
        if not item.ended or not later or not self.quiet(turn.session, item.ended, later[0][0].ended):
            return None
        first = self._length_before(turn)
        return later[0][1][first:] if first is not None else None

    def _length_before(self, turn: RecordedTurn) -> int | None:
        item = turn.exchange
        earlier = [(it, kept) for it, kept in self.full_of(turn.session) if it.ended < item.order]
        if earlier and self.quiet(turn.session, earlier[-1][0].order, item.order):
            return len(earlier[-1][1])
        made = self.created.get(turn.session)
        if made is not None and self.quiet(turn.session, made.order, item.order):
            return len(mappings(made.sent.get("messages")))
        return None


def _left_open(messages: list[Body]) -> list[Body]:
    """The calls that a seeded history leaves open."""
    said = [message for message in messages if message.get("role") != "tool"][-1:]
    calls = [block for it in said for block in mappings(it.get("content")) if block.get("type") == "tool_use"]
    answered = {message.get("toolCallId") for message in messages if message.get("role") == "tool"}
    named = [{name: call.get(name) for name in ("toolCallId", "name", "input")} for call in calls]
    return [call for call in named if call["toolCallId"] not in answered]


def _told(item: Exchange, mode: str) -> Turn | None:
    """The turn, if it was accepted and is well-formed."""
    if item.status != 200 or not item.is_whole:
        return None
    departures = Departures()
    reader = TurnReader(SCHEMAS, departures)
    try:
        if mode not in STREAMED:
            turn = reader.whole(item.reply)
        elif item.is_stream:
            turn = reader.recorded([it.event for it in item.events], mode, f"{item.asked} ({mode})")
        else:
            return None
        assert turn.exchange is not None  # it can be read
    except Failed:
        return None
    return turn if not departures.noted else None


def grouped(pairs: Iterable[tuple[Item, str]]) -> dict[str, list[Item]]:
    """The first of each pair, by the second."""
    found: dict[str, list[Item]] = {}
    for item, name in pairs:
        found.setdefault(name, []).append(item)
    return found


def denied(item: Exchange) -> bool:
    """Whether the answer is about who asks, and not about what is asked."""
    return item.status in LOOKING_ELSEWHERE or (item.status or 0) >= 500


def refusable(items: list[Exchange]) -> Iterator[Exchange]:
    """Those whose answer is about what is asked."""
    return (item for item in items if item.is_whole and not denied(item))
