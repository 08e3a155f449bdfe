"""One session of a recording: its frames decoded, each once; and which session a frame belongs to."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping

import gateway.model as m
from gateway.json_values import JsonValue
from gateway.ports import DecodedItem, Decoder, ParsedFrame, RemoteAsk

from .record_composer import RecordComposer

MAX_EVENT_IDS = 4096
"""So many event ids of a session are remembered, so that no event is decoded twice."""


class SessionTranslator:
    """One session of the recording: its decoder and its composer."""

    def __init__(self, composer: RecordComposer, decoder: Decoder) -> None:
        self.composer, self.decoder = composer, decoder
        self._ids: OrderedDict[str, None] = OrderedDict()
        self._last_id, self._was_new = "", True
        self._passed_answers: dict[str, m.Answer] = {}
        self._sent_on = ""
        self._settings = m.Settings()
        self._connections: set[str] = set()
        self._waits_since: float | None = None

    @property
    def session_id(self) -> str:
        return self.composer.session_id

    @property
    def runs(self) -> bool:
        return self.composer.runs

    @property
    def view(self) -> m.SessionView:
        """The open asks by the dialect's reference, and the settings."""
        view = m.SessionView(session_id=self.session_id)
        view.settings = self._settings
        for ref, (_, asked) in self.composer.asks.items():
            view.asks[ref] = m.OpenAsk(
                request_id=ref, ask=asked.ask, seq=0, at=0.0, turn_id="", scope_id=asked.scope_id, call_id=ref,
            )
        return view

    def set_name(self, session_id: str) -> None:
        self.composer.called(session_id)

    def sent(self, command: m.AnyCommand, stream: str, at: float) -> None:
        """A client sent this command on that stream."""
        if isinstance(command, m.Configure):
            self._settings = command.settings
            self.decoder.configure(command.settings)
            return
        self._sent_on = stream
        self.composer.add_command(command, at)

    def refused(self, stream: str) -> None:
        """The server has rejected the last command of this stream."""
        if stream == self._sent_on:
            self.composer.refused()

    def connected(self, name: str) -> None:
        """A stream of this name begins; if it is not the first, it may repeat frames."""
        self._last_id = ""
        if name in self._connections:
            self.decoder.on_reconnect()
        self._connections.add(name)

    def is_new(self, frame: ParsedFrame) -> bool:
        """Whether the frame is new; a frame without an id belongs to the one before it."""
        if not frame.id:
            return True
        if frame.id != self._last_id:
            self._last_id, self._was_new = frame.id, frame.id not in self._ids
            self._ids[frame.id] = None
            if len(self._ids) > MAX_EVENT_IDS:
                self._ids.popitem(last=False)
        return self._was_new

    def feed(self, frame: ParsedFrame, at: float) -> None:
        """Decode a frame. Whether the server waits for people after an ask shows in the next frame."""
        self._pass_answers()
        items = self.decoder.feed(frame)
        if not self.decoder.paused or not all(isinstance(one, RemoteAsk) for one in items):
            self.rest()
        self._add(items, at)
        if self.decoder.paused:
            self._waits_since = at
        elif self.composer.is_suspended and not items:
            self.composer.resume(at)

    def rest(self) -> None:
        """No frame came for a while: suspend the turn if the server seemed to wait."""
        since, self._waits_since = self._waits_since, None
        if since is not None:
            self.composer.waits(since)

    @property
    def is_resting(self) -> bool:
        """Whether `rest` would write a record."""
        return self._waits_since is not None

    def end(self, at: float) -> None:
        """The recording has ended: end what is open; a turn that waits for people stays suspended."""
        if self.composer.runs:
            self._add(self.decoder.end(), at)
        self.composer.finish(at)

    def _add(self, items: Iterable[DecodedItem], at: float) -> None:
        for item in items:
            self.composer.add_item(item, at)

    def _pass_answers(self) -> None:
        """Tell the decoder the answers before it decodes their effects."""
        if not self.decoder.paused:
            self._passed_answers = {}
            return
        for ref, (_, asked) in self.composer.asks.items():
            answer = self.composer.answer_to(ref)
            if self._passed_answers.get(ref) != answer:
                self._passed_answers[ref] = answer
                self.decoder.on_answer(asked, answer)


ID_FIELDS = ("conversation_id", "conversationId", "session_id", "sessionId")
"""The fields that name a session, the durable id before the id of a single run."""
NESTED_FIELDS = ("payload", "params", "data")
PATH = re.compile(r"/(?:sessions|conversations)/([^/?\s]+)")
LIKE_AN_ID = re.compile(r"[\w.:\-]{1,128}", re.ASCII)


class SessionFinder:
    """Finds the session of a frame, by its fields or by the earlier frames of its stream."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[str, str]] = {}

    def session_of(self, stream: str, frame: ParsedFrame) -> str | None:
        """The session id of the frame, or else of the frame before it on the stream; None if there is none.

        On a stream that has had a durable id, ids of single runs are ignored.
        """
        found = _session_id_in(frame)
        before = self._last.get(stream)
        if found is None or (before is not None and ID_FIELDS.index(found[0]) > ID_FIELDS.index(before[0])):
            return before[1] if before is not None else None
        if len(self._last) > 4096:
            self._last.clear()
        self._last[stream] = found
        return found[1]


def _session_id_in(frame: ParsedFrame) -> tuple[str, str] | None:
    on_path = PATH.search(frame.name)
    if on_path is not None and LIKE_AN_ID.fullmatch(on_path[1]):
        return ID_FIELDS[0], on_path[1]
    body = frame.body if isinstance(frame.body, Mapping) else {}
    inner: list[Mapping[str, JsonValue]] = [
        body, *(body[at] for at in NESTED_FIELDS if isinstance(body.get(at), Mapping)),
    ]
    for name in ID_FIELDS:
        for where in inner:
            value = where.get(name)
            if isinstance(value, str) and LIKE_AN_ID.fullmatch(value):
                return name, value
    return None
