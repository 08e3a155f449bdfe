"""A recording of Blade traffic: chats as they were heard, histories, and looks at sessions."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from conformance.blade.chat import EVENTS, Chat, TurnEvents
from conformance.blade.offline.packets import Link, Packet, links
from conformance.blade.schema_owners import SCHEMAS
from conformance.kit.socketio import SocketEvent
from conformance.offline.recording import Exchange, Recording, mapping

Body = dict[str, Any]
FIXED = ("calendar", "preview-import")
STARTING = ("POST /api/sessions/{}/chat", "POST /api/sessions/{}/compact")
"""What else than chat:send may start a chat that is heard."""


@dataclass
class RecordedChat:
    """One chat as one connection received it, and what was sent to start it."""

    link: Link
    session: str
    packets: list[Packet]
    asked: Body

    @property
    def place(self) -> str:
        return self.packets[0].place

    @cached_property
    def chat(self) -> Chat:
        return Chat(tuple(SocketEvent(it.name, it.body) for it in self.packets))

    @cached_property
    def is_whole(self) -> bool:
        """Whether it was heard from chat:start to chat:end, every event well-formed."""
        return self.packets[-1].name == "chat:end" and all(fits(it) for it in self.packets)

    @property
    def status(self) -> str:
        return str(self.chat.end.get("status"))

    @property
    def is_answer(self) -> bool:
        return bool(self.asked.get("askuser_answer"))

    @property
    def is_paused(self) -> bool:
        """Whether it waits for the answer to a question."""
        return any(turn.end is not None and turn.end["status"] == "paused" for turn in self.chat.turns)

    @property
    def start(self) -> int:
        return self.packets[0].order

    @property
    def end(self) -> int:
        return self.packets[-1].order


class BladeView:
    """What a recording shows of one server."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._own: dict[int, Chat] = {}

    @cached_property
    def links(self) -> list[Link]:
        return links(self.recording)

    @cached_property
    def sends(self) -> list[tuple[Link, Packet]]:
        """Every chat:send, in the order they were sent."""
        found = [(link, packet) for link in self.links for packet in link.sent("chat:send")]
        return sorted(found, key=lambda pair: pair[1].order)

    @cached_property
    def heard(self) -> list[tuple[Link, Packet]]:
        """Every event of the server."""
        return [(link, packet) for link in self.links for packet in link.heard()]

    @cached_property
    def spoken(self) -> list[RecordedChat]:
        """Every chat from its chat:start on, once for each connection that heard it."""
        return [chat for link in self.links for chat in self._chats(link)]

    @cached_property
    def whole(self) -> list[RecordedChat]:
        return [item for item in self.spoken if item.is_whole]

    @cached_property
    def completed(self) -> list[RecordedChat]:
        return [item for item in self.whole if item.status == "completed"]

    def _chats(self, link: Link) -> Iterator[RecordedChat]:
        running: dict[str, list[Packet]] = {}
        for packet in link.heard():
            body = packet.body if isinstance(packet.body, dict) else {}
            name = str(body.get("session_id") or (next(iter(running)) if len(running) == 1 else ""))
            if packet.name == "chat:start" and name not in running:
                running[name] = [packet]
            elif name in running:
                running[name].append(packet)
                if packet.name == "chat:end":
                    yield self._spoken(link, name, running.pop(name))
        for name, packets in running.items():
            yield self._spoken(link, name, packets)

    def _spoken(self, link: Link, session: str, packets: list[Packet]) -> RecordedChat:
        before = [it for _, it in self.sends if it.order < packets[0].order and _session(it) == session]
        compacts = [it.order for it in link.sent("chat:compact") if _session(it) == session]
        posts = [it.order for route in STARTING for it, (name,) in self.recording.of(route) if name == session]
        is_other = any(before and before[-1].order < order < packets[0].order for order in (*compacts, *posts))
        return RecordedChat(link, session, packets, before[-1].body if before and not is_other else {})

    def earlier(self, spoken: RecordedChat) -> list[RecordedChat]:
        """The chats of the same session before this one, as the same or another connection heard them."""
        before = [it for it in self.whole if it.session == spoken.session and it.end <= spoken.start]
        return [it for it in before if it is not spoken]  # one poll may have brought all of it

    def own(self, spoken: RecordedChat) -> Chat:
        """The chat without what it says of turns that an earlier one left paused, which a message may pass over."""
        if id(spoken) not in self._own:
            ends = [turn.end for it in self.earlier(spoken) for turn in it.chat.turns if turn.end is not None]
            paused = {end["turn_id"] for end in ends if end["status"] == "paused"}
            heard = [it for it in spoken.chat.heard if mapping(it.body).get("turn_id") not in paused]
            self._own[id(spoken)] = Chat(tuple(heard))
        return self._own[id(spoken)]

    # -- REST ----------------------------------------------------------------------------------------------------------

    @cached_property
    def histories(self) -> list[tuple[Exchange, str, list[Body]]]:
        """The histories that are lists of well-formed turns."""
        found = []
        for item, (name,) in self.recording.of("GET /api/sessions/{}/messages"):
            turns = turns_in(item.json) if item.is_done else None
            if turns is not None and not any(SCHEMAS.problems("turn", turn) for turn in turns):
                found.append((item, name, turns))
        return found

    def history(self, session: str, after: int) -> tuple[Exchange, list[Body]] | None:
        """The first history after this moment, if nothing was sent to the session meanwhile."""
        later = [(item, turns) for item, name, turns in self.histories if name == session and item.order > after]
        if not later or self.is_touched(session, after, later[0][0].ended):
            return None
        return later[0]

    def is_touched(self, session: str, start: int, end: int) -> bool:
        """Whether anything was sent to the session between these moments."""
        posted = [it.order for it in self._changes if f"/sessions/{session}" in it.path]
        return any(start < order < end for order in (*self._told.get(session, ()), *posted))

    @cached_property
    def _told(self) -> dict[str, list[int]]:
        """When each session was told to do something."""
        found: dict[str, list[int]] = {}
        for link in self.links:
            for packet in link.sent("chat:send", "chat:stop", "chat:compact"):
                found.setdefault(_session(packet), []).append(packet.order)
        return found

    @cached_property
    def _changes(self) -> list[Exchange]:
        return [it for it in self.recording.exchanges if it.method != "GET"]

    @cached_property
    def looks(self) -> list[tuple[Exchange, Body]]:
        """Every well-formed Session that was shown by itself."""
        shown = [item for item, _ in self.recording.of("GET /api/sessions/{}") if item.is_done]
        return [(item, item.json) for item in shown if not SCHEMAS.problems("session", item.json)]

    @cached_property
    def projections(self) -> list[tuple[str, Body]]:
        """Every turn as it was shown whole, in turn:end and in histories, with its place."""
        ends = [(it.place, it.body) for _, it in self.heard if it.name == "turn:end" and isinstance(it.body, dict)]
        kept = []
        for item, _ in self.recording.of("GET /api/sessions/{}/messages"):
            turns = turns_in(item.json) if item.is_done else None
            kept += [(item.place, turn) for turn in turns or [] if isinstance(turn, dict)]
        return ends + kept

    @cached_property
    def patches(self) -> list[tuple[str, Body]]:
        return [(it.place, it.body) for _, it in self.heard if it.name == "turn:patch" and isinstance(it.body, dict)]


def _session(packet: Packet) -> str:
    return str(packet.body.get("session_id")) if isinstance(packet.body, dict) else ""


def done(view: BladeView, route: str) -> Iterator[tuple[Exchange, tuple[str, ...]]]:
    """The answers of a route that succeeded; fixed names are not taken for ids."""
    for item, names in view.recording.of(route):
        if item.is_done and not (names and names[-1] in FIXED):
            yield item, names


def member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def turns_in(body: Any) -> list[Any] | None:
    """The turns of a history, in whatever the server wraps them."""
    found = list(body.values()) if isinstance(body, dict) else [body]
    return next((item for item in found if isinstance(item, list)), None)


def fits(packet: Packet) -> bool:
    name = f"event.{packet.name.replace(':', '-')}"
    return packet.name not in EVENTS or name not in SCHEMAS.names or not SCHEMAS.problems(name, packet.body)


def turns_of(spoken: RecordedChat) -> list[TurnEvents]:
    return [turn for turn in spoken.chat.turns if turn.end is not None]
