"""A recording of ZenFlux traffic: lines with their requests and runs, streams of POST /chat, and wrapped answers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import orjson

from conformance.kit.expect import Failed
from conformance.offline.recording import Ending, Exchange, Frame, Recording
from conformance.zenflux import event_shapes
from conformance.zenflux.chat_socket import ENDPOINT, OUTSIDE_RUNS
from conformance.zenflux.examination import SCHEMAS
from conformance.zenflux.rest_answer import Answer, wrapped
from conformance.zenflux.rest_calls import BASE
from conformance.zenflux.run import Run
from conformance.zenflux.run_contents import Event

Body = dict[str, Any]


@dataclass(frozen=True)
class RecordedFrame:
    """One frame of a line and what is in it; `body` is None where it is no JSON object."""

    frame: Frame
    body: Body | None

    @property
    def kind(self) -> str:
        return str((self.body or {}).get("type"))


@dataclass
class RecordedRun:
    """One run: where its events came, what asked for it, and when they came.

    Whether it ended, and how, is asked once all its events are here.
    """

    exchange: Exchange
    run: Run
    asked: Body
    is_sound: bool = True
    times: list[float] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)

    @cached_property
    def ends(self) -> list[Event]:
        return self.run.of("session_end")

    @cached_property
    def is_over(self) -> bool:
        """Whether it was heard from its start to its end, every event well-formed."""
        starts = self.run.events[:1]
        is_ended = bool(self.ends) if self.run.is_socket else self.exchange.is_whole
        return self.is_sound and bool(starts) and is_ended

    @cached_property
    def is_completed(self) -> bool:
        if not self.is_over or self.run.of("error"):
            return False
        return not self.ends or self.ends[-1].data.get("status") == "completed"


class ZenfluxView:
    """What a recording shows of one server."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    # -- lines ---------------------------------------------------------------------------------------------------------

    @cached_property
    def lines(self) -> list[tuple[Exchange, list[RecordedFrame]]]:
        found = [item for item in self.recording.exchanges if item.path == ENDPOINT and item.is_socket]
        return [(item, [RecordedFrame(frame, _object(frame.text)) for frame in item.frames]) for item in found]

    @cached_property
    def payloads(self) -> list[tuple[str, Any]]:
        """Every envelope of an event, of lines and of streams, with its place."""
        found: list[tuple[str, Any]] = []
        for _, said in self.lines:
            events = [it for it in said if not it.frame.is_sent and it.kind == "event" and it.body]
            found += [(it.frame.place, it.body.get("payload")) for it in events if it.body and _of_runs(it.body)]
        for item in self.streams:
            told = [(it.place, _object(it.event.data)) for it in item.events if it.event.event != "done"]
            found += [(place, body) for place, body in told if body is not None and body.get("type") != "ping"]
        return found

    def of(self, *types: str) -> Iterator[tuple[str, Body]]:
        """The envelopes of events of these types."""
        for place, payload in self.payloads:
            if isinstance(payload, dict) and payload.get("type") in types:
                yield place, payload

    # -- runs ----------------------------------------------------------------------------------------------------------

    @cached_property
    def spoken(self) -> list[RecordedRun]:
        return [*(run for item, said in self.lines for run in _runs(item, said)), *map(_streamed, self.streams)]

    @cached_property
    def over(self) -> list[RecordedRun]:
        """Runs that were heard to their end."""
        return [run for run in self.spoken if run.is_over]

    @cached_property
    def completed(self) -> list[RecordedRun]:
        return [run for run in self.spoken if run.is_completed]

    @cached_property
    def streams(self) -> list[Exchange]:
        return [item for item, _ in self.recording.of(f"POST {BASE}/chat") if item.is_stream and item.status == 200]

    # -- the REST half -------------------------------------------------------------------------------------------------

    @cached_property
    def answers(self) -> list[Answer]:
        return [answer for _, answer in self.answered]

    @cached_property
    def answered(self) -> list[tuple[Exchange, Answer]]:
        """Every answer that is wrapped."""
        found = []
        for item in self.recording.exchanges:
            if item.is_whole and not item.is_stream and not item.is_socket:
                try:
                    found.append((item, wrapped(item.reply, SCHEMAS)))
                except Failed:
                    continue
        return found

    def asked(self, route: str) -> list[tuple[Exchange, tuple[str, ...], Answer]]:
        """The wrapped answers of a route below the base path."""
        method, _, path = route.partition(" ")
        found = self.recording.of(f"{method} {BASE}{path}")
        answers = self._answers_by_number
        return [(item, names, answers[item.number]) for item, names in found if item.number in answers]

    @cached_property
    def _answers_by_number(self) -> dict[int, Answer]:
        return {item.number: answer for item, answer in self.answered}

    def history(self, conversation: str, after: int) -> list[Body] | None:
        """The messages of a conversation, as they were first listed after this moment, nothing being said meanwhile."""
        for item, (name,), answer in self.asked("GET /conversations/{}/messages"):
            if name == conversation and item.order > after and answer.is_done and not item.query:
                data = answer.body["data"]
                listed = data.get("messages") if isinstance(data, dict) else data
                return [it for it in listed or [] if isinstance(it, dict)]
        return None


def heard(said: list[RecordedFrame], *kinds: str) -> list[RecordedFrame]:
    """The frames of the server of these kinds."""
    return [it for it in said if not it.frame.is_sent and it.kind in kinds]


def _of_runs(body: Body) -> bool:
    return body.get("event") not in OUTSIDE_RUNS


def _runs(item: Exchange, said: list[RecordedFrame]) -> list[RecordedRun]:
    """The runs of one line, by the sessions of their events, each with the request that started it."""
    requests = {str(it.body.get("id")): it.body for it in said if it.body and it.frame.is_sent and it.kind == "req"}
    accepted = [it.body for it in said if it.body and not it.frame.is_sent and it.kind == "res" and it.body.get("ok")]
    sends = [requests[str(it.get("id"))] for it in accepted if str(it.get("id")) in requests]
    asked = [_mapping(it.get("params")) for it in sends if it.get("method") == "chat.send"]
    found: dict[str, RecordedRun] = {}
    for it in said:
        body = it.body or {}
        if it.frame.is_sent or it.kind != "event" or not _of_runs(body):
            continue
        payload = _mapping(body.get("payload"))
        name = str(payload.get("session_id"))
        if name not in found:
            params = asked[len(found)] if len(found) < len(asked) else {}
            found[name] = RecordedRun(item, _run(f"chat.send {params.get('message')!r}", True), params)
        _keep(found[name], payload, body.get("seq"), it.frame.place, it.frame.order, it.frame.at)
    return list(found.values())


def _streamed(item: Exchange) -> RecordedRun:
    sent = _mapping(item.sent)
    found = RecordedRun(item, _run(f"POST /chat {sent.get('message')!r}", False), sent)
    for told in item.events:
        payload = _object(told.event.data)
        if told.event.event == "done":
            break
        if payload is None or payload.get("type") != "ping":
            _keep(found, payload or {}, None, told.place, told.order, told.at)
    return found


def _run(asked: str, is_socket: bool) -> Run:
    async def nothing(run: Run) -> None:
        return None

    return Run(asked, nothing, is_socket)


def _keep(spoken: RecordedRun, payload: Body, seq: Any, place: str, order: int, at: float) -> None:
    spoken.is_sound &= fits(payload) and (seq is None or isinstance(seq, int))
    names = (payload.get("session_id"), payload.get("conversation_id"), payload.get("type"))
    if isinstance(payload.get("seq"), int) and all(isinstance(name, str) for name in names):
        spoken.run.events.append(Event(payload, seq))
        spoken.times.append(at)
        spoken.places.append(place)
        spoken.orders.append(order)


def hold(schema: str, value: Any, what: str, owner: str, members: Mapping[str, str] | None = None) -> None:
    """Fail unless the value fits; the owner, or that of the member that is wrong, is charged with it."""
    problems = SCHEMAS.problems(schema, value)
    if problems:
        SCHEMAS.fit(schema, value, what, event_shapes.whose(problems[0], owner, members))


def hold_event(payload: Any) -> None:
    """Fail unless an event is as its type says, if its data can be read at all."""
    owner = event_shapes.EVENTS.get(str(payload.get("type")))
    if owner is not None and isinstance(payload.get("data", {}), dict):
        name, members = payload["type"], event_shapes.members_of(payload)
        hold(f"event.{name}", payload, f"the event {name}", owner, members)


def fits(payload: Any) -> bool:
    """Whether an envelope and what is in it are well-formed."""
    if SCHEMAS.problems("envelope", payload):
        return False
    name = f"event.{payload['type']}"
    return name not in SCHEMAS.names or not SCHEMAS.problems(name, payload)


def _object(text: str | None) -> Body | None:
    try:
        found = orjson.loads(text or "")
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _mapping(value: Any) -> Body:
    return value if isinstance(value, dict) else {}


def is_cut(item: Exchange) -> bool:
    return item.ending is Ending.CUT
