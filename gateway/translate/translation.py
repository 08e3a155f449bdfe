"""Translates a recorded stream: bytes of one dialect in, bytes of another out. No files."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence

import gateway.model as m
from gateway.errors import GatewayError
from gateway.ids import Mint
from gateway.ports import Clock, Dialect
from mappings.language import Table

from .reader import RecordingReader
from .record_composer import RecordComposer, RecordCopier
from .recording_format import (
    AnyRecordedItem,
    ClientFrame,
    RejectedRequest,
    ResponseBody,
    ServerFrame,
    StoredRecord,
    UnreadableRecording,
)
from .sessions import SessionFinder, SessionTranslator
from .writer import TranslationNotes, TranslationWriter

MAX_SESSIONS = 256
"""So many sessions are open at once; beyond that the one that was silent longest is ended."""
UNNAMED_SESSION = ""
"""The name of a session whose id is not known yet."""


class Translation:
    """Feed it bytes and write the output; `end` returns the rest. `UnreadableRecording` has the line that stops it."""

    def __init__(
        self, source: Dialect | None, table: Table | None, writing: TranslationWriter, *, clock: Clock, mint: Mint,
        only: str | None = None,
    ) -> None:
        self.remarks = TranslationNotes()
        self._source, self._table, self._writing = source, table, writing
        self._clock, self._mint, self._only = clock, mint, only
        self._reader = RecordingReader(source.name if source is not None else None)
        self._finder = SessionFinder()
        self._sessions: OrderedDict[str, SessionTranslator | RecordCopier] = OrderedDict()
        self._early: dict[str, list[ClientFrame]] = {}
        self._output: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        for item in self._reader.feed(chunk):
            yield from self._translated(item)

    def end(self) -> Iterator[bytes]:
        """The output of the last bytes, and the ends of all that is open."""
        try:
            for item in self._reader.end():
                yield from self._translated(item)
        except UnreadableRecording:
            if not self._reader.is_recognised:
                raise
            self.remarks.is_cut = True  # the last line is incomplete
        self.remarks.is_cut = self.remarks.is_cut or self._reader.torn
        yield from self.close()

    def close(self) -> list[bytes]:
        """The ends of all that is open, even if the recording goes on."""
        while self._sessions:
            self._end(self._sessions.popitem(last=False)[1])
        return [*self._take_output(), self._writing.flush()]

    def rest(self) -> list[bytes]:
        """The output that was held; to be called when no bytes came for a while."""
        for session in self._resting:
            session.rest()
        return [*self._take_output(), self._writing.flush()]

    @property
    def deadline(self) -> float | None:
        """When `rest` should be called, if no bytes come before."""
        return 0.0 if self._resting else self._writing.deadline

    @property
    def _resting(self) -> list[SessionTranslator]:
        return [one for one in self._sessions.values() if isinstance(one, SessionTranslator) and one.is_resting]

    # -- item by item ---------------------------------------------------------------------------------------------

    def _translated(self, item: AnyRecordedItem) -> Iterator[bytes]:
        """The output of one item; what was written before a failure comes before the failure is raised."""
        failure: UnreadableRecording | None = None
        try:
            self._take(item)
        except m.GrammarError as error:
            failure = UnreadableRecording(item.line, f"this cannot come here: {error}")
        except UnreadableRecording as error:
            failure = error
        except GatewayError as error:
            failure = UnreadableRecording(item.line, error.message)
        yield from self._take_output()
        if failure is not None:
            raise failure

    def _write(self, record: m.Record) -> None:
        self.remarks.records += 1
        self._output.append(self._writing.take(record))

    def _take_output(self) -> list[bytes]:
        output, self._output = self._output, []
        return output

    def _take(self, item: AnyRecordedItem) -> None:
        if isinstance(item, StoredRecord):
            self._copy(item)
        elif isinstance(item, ServerFrame):
            self._received(item)
        elif isinstance(item, ClientFrame):
            self._sent(item)
        elif isinstance(item, ResponseBody):
            self._answered(item)
        else:
            self._refused(item)

    def _copy(self, item: StoredRecord) -> None:
        if self._only not in (None, item.record.session_id):
            return
        self._room_for(item.record.session_id)
        session = self._sessions.setdefault(item.record.session_id, RecordCopier(self._write))
        assert isinstance(session, RecordCopier), "records are copied"
        session.take(item.record)

    def _received(self, item: ServerFrame) -> None:
        name = self._finder.session_of(item.stream, item.frame) or UNNAMED_SESSION
        if not self._is_wanted(name):
            return
        self._room_for(name)
        session = self._session(name)
        for early in self._early.pop(item.stream, []):
            self._add_commands(session, early)
        if item.connection:
            session.connected(item.connection)
        if session.is_new(item.frame):
            self._add_commands(session, item)
            session.feed(item.frame, self._time(item))

    def _sent(self, item: ClientFrame) -> None:
        """A frame that a client sent before its stream has a session waits for the session."""
        name = self._finder.session_of(item.stream, item.frame)
        if name is None:
            self._sent_without_session(item)
        elif self._is_wanted(name):
            self._room_for(name)
            self._add_commands(self._session(name), item)

    def _answered(self, item: ResponseBody) -> None:
        """A response may name a new session: earlier frames of the stream belong to it."""
        if item.stream not in self._early:
            return
        name = self._finder.session_of(item.stream, item.frame)
        if name is not None and self._is_wanted(name):
            self._room_for(name)
            for early in self._early.pop(item.stream):
                self._add_commands(self._session(name), early)

    def _sent_without_session(self, item: ClientFrame) -> None:
        """An answer belongs to the session with its ask; a message waits until its stream has a session."""
        for session in self._sessions.values():
            if isinstance(session, SessionTranslator) and session.composer.asks:
                answers = [one for one in self._commands(session, item) if isinstance(one, m.Answer)]
                for answer in answers:
                    session.sent(answer, item.stream, self._time(item))
                if answers:
                    return
        self._early.setdefault(item.stream, []).append(item)
        if len(self._early) > MAX_SESSIONS:
            del self._early[next(iter(self._early))]

    def _refused(self, item: RejectedRequest) -> None:
        """The server has rejected the last request of this stream."""
        self._early.pop(item.stream, None)
        for session in self._sessions.values():
            if isinstance(session, SessionTranslator):
                session.refused(item.stream)

    def _add_commands(self, session: SessionTranslator, item: ClientFrame | ServerFrame) -> None:
        """The commands in a frame: of a client, or of a server that repeats them."""
        for command in self._commands(session, item):
            session.sent(command, item.stream, self._time(item))

    def _commands(self, session: SessionTranslator, item: ClientFrame | ServerFrame) -> Sequence[m.AnyCommand]:
        read_commands = self._source.recorded_commands if self._source is not None else None
        try:
            if read_commands is not None and self._table is not None:
                return read_commands(item.frame, session.view, self._table)
            is_lost = isinstance(item, ClientFrame)
        except GatewayError:  # the server has rejected it, too
            is_lost = isinstance(item, ClientFrame)
        if is_lost:
            self.remarks.unread[item.frame.name or "a message"] += 1
        return ()

    # -- sessions -------------------------------------------------------------------------------------------------

    def _is_wanted(self, name: str) -> bool:
        return self._only is None or name in (self._only, UNNAMED_SESSION)

    def _room_for(self, name: str) -> None:
        """End the session that was silent longest, if there are too many."""
        if name in self._sessions:
            self._sessions.move_to_end(name)
        elif len(self._sessions) >= MAX_SESSIONS:
            _, session = self._sessions.popitem(last=False)
            self._end(session)

    def _session(self, name: str) -> SessionTranslator:
        """The session of this name; a session without a name gets it."""
        session = self._sessions.get(name) or self._sessions.pop(UNNAMED_SESSION, None)
        if session is None:
            assert self._source is not None and self._source.decoder is not None, "frames are of a dialect"
            session = SessionTranslator(
                RecordComposer(name or self._mint("sess"), self._mint, self._write), self._source.decoder(self._mint)
            )
        assert isinstance(session, SessionTranslator), "frames are decoded"
        if name:
            session.set_name(name)
        self._sessions[name] = session
        return session

    def _end(self, session: SessionTranslator | RecordCopier) -> None:
        session.rest()
        self.remarks.torn += session.runs
        session.end(self._clock())
        self._writing.forget(session.session_id)

    def _time(self, item: AnyRecordedItem) -> float:
        return self._clock() if item.at is None else item.at
