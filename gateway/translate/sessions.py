"""One session of a recording: its frames heard, each once, and made into records.

Which session a piece belongs to, by what it says of itself or by the stream it came on.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import gateway.model as m
from gateway.ports import DecodedItem, Decoder, ParsedFrame, RemoteAsk

from .record_composer import RecordComposer

MAX_EVENT_IDS = 4096
"""So many ids of events are known of a session, so that nothing is told twice."""


class SessionTranslator:
    """One session of the recording: how it is heard, and what becomes of it."""

    def __init__(self, composer: RecordComposer, hearing: Decoder) -> None:
        self.composer, self.hearing = composer, hearing
        self._ids: OrderedDict[str, None] = OrderedDict()
        self._last_id, self._was_new = "", True
        self._told: dict[str, m.Answer] = {}
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
        """What is asked, each under the word that the dialect has for it."""
        view = m.SessionView(session_id=self.session_id)
        view.settings = self._settings
        for ref, (_, asked) in self.composer.asks.items():
            view.asks[ref] = m.OpenAsk(
                request_id=ref, ask=asked.ask, seq=0, at=0.0, turn_id="", scope_id=asked.scope_id, call_id=ref,
            )
        return view

    def set_name(self, session_id: str) -> None:
        self.composer.called(session_id)

    def sent(self, command: m.AnyCommand, stream: str, at: float) -> Iterator[m.Record]:
        """A person said this, on that stream."""
        if isinstance(command, m.Configure):
            self._settings = command.settings
            self.hearing.configure(command.settings)
            return
        self._sent_on = stream
        yield from self.composer.add_command(command, at)

    def refused(self, stream: str) -> None:
        """What was said there last was not taken."""
        if stream == self._sent_on:
            self.composer.refused()

    def connected(self, name: str) -> None:
        """A stream of this name begins; if it is not the first, it may repeat what was told."""
        self._last_id = ""
        if name in self._connections:
            self.hearing.on_reconnect()
        self._connections.add(name)

    def is_new(self, frame: ParsedFrame) -> bool:
        """Whether the frame was not told before; one without an id goes with the one that it follows."""
        if not frame.id:
            return True
        if frame.id != self._last_id:
            self._last_id, self._was_new = frame.id, frame.id not in self._ids
            self._ids[frame.id] = None
            if len(self._ids) > MAX_EVENT_IDS:
                self._ids.popitem(last=False)
        return self._was_new

    def feed(self, frame: ParsedFrame, at: float) -> Iterator[m.Record]:
        """A server that asks several things may wait from the first on: whether it does shows in what follows."""
        self._tell_answers()
        heard = self.hearing.feed(frame)
        if not self.hearing.paused or not all(isinstance(one, RemoteAsk) for one in heard):
            yield from self.rest()
        yield from self._said(heard, at)
        if self.hearing.paused:
            self._waits_since = at
        elif self.composer.is_suspended and not heard:
            yield from self.composer.resume(at)

    def rest(self) -> Iterator[m.Record]:
        """Nothing has come for a while: the server waits, if it seemed to."""
        since, self._waits_since = self._waits_since, None
        if since is not None:
            yield from self.composer.waits(since)

    @property
    def is_resting(self) -> bool:
        """Whether `rest` has something to say."""
        return self._waits_since is not None

    def end(self, at: float) -> Iterator[m.Record]:
        """Nothing follows: the ends of what is open; a turn that waits for people waits on."""
        if self.composer.runs:
            yield from self._said(self.hearing.end(), at)
        yield from self.composer.finish(at)

    def _said(self, heard: Iterable[DecodedItem], at: float) -> Iterator[m.Record]:
        for one in heard:
            yield from self.composer.add_item(one, at)

    def _tell_answers(self) -> None:
        """The hearing knows what was answered before it hears what came of it."""
        if not self.hearing.paused:
            self._told = {}
            return
        for ref, (_, asked) in self.composer.asks.items():
            answer = self.composer.answer_to(ref)
            if self._told.get(ref) != answer:
                self._told[ref] = answer
                self.hearing.on_answer(asked, answer)


ID_FIELDS = ("conversation_id", "conversationId", "session_id", "sessionId")
"""What sessions go by, the durable name before the fleeting one."""
NESTED_FIELDS = ("payload", "params", "data")
PATH = re.compile(r"/(?:sessions|conversations)/([^/?\s]+)")
LIKE_AN_ID = re.compile(r"[\w.:\-]{1,128}", re.ASCII)


class SessionFinder:
    """Remembers, stream by stream, what the sessions on it are called."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[str, str]] = {}

    def session_of(self, stream: str, frame: ParsedFrame) -> str | None:
        """The session's name; that of the frame before, where this one has none; None where there is none at all.

        On a stream whose frames have had the durable name the fleeting one counts for nothing.
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
    inner: list[Mapping[str, Any]] = [body, *(body[at] for at in NESTED_FIELDS if isinstance(body.get(at), Mapping))]
    for name in ID_FIELDS:
        for where in inner:
            value = where.get(name)
            if isinstance(value, str) and LIKE_AN_ID.fullmatch(value):
                return name, value
    return None
