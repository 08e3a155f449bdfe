"""One translation from beginning to end: bytes of one dialect in, bytes of another out. No files."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

import gateway.model as m
from gateway.errors import GatewayError
from gateway.ids import Mint
from gateway.ports import Clock, Dialect
from mappings.language import Table

from .loss_report import TranslationNotes
from .reader import RecordingReader
from .record_composer import RecordComposer, RecordCopier
from .recorded_frames import (
    AnyRecordedItem,
    ClientFrame,
    RejectedRequest,
    ResponseBody,
    ServerFrame,
    StoredRecord,
    UnreadableRecording,
)
from .sessions import SessionFinder, SessionTranslator
from .writer import TranslationWriter

MAX_SESSIONS = 256
"""So many sessions are followed at once; the one that was silent longest is ended."""
UNNAMED_SESSION = ""
"""The name of a session that has none yet."""


class Translation:
    """Feed it bytes, write what it gives; `end` gives the rest. `UnreadableRecording` names the line that stops it."""

    def __init__(
        self, source: Dialect | None, table: Table | None, writing: TranslationWriter, *, clock: Clock, mint: Mint,
        only: str | None = None,
    ) -> None:
        self.remarks = TranslationNotes()
        self._source, self._table, self._writing = source, table, writing
        self._clock, self._mint, self._only = clock, mint, only
        self._reader = RecordingReader(source.name if source is not None else None)
        self._sorter = SessionFinder()
        self._sessions: OrderedDict[str, SessionTranslator | RecordCopier] = OrderedDict()
        self._early: dict[str, list[ClientFrame]] = {}

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        for piece in self._reader.feed(chunk):
            yield from self._take(piece)

    def end(self) -> Iterator[bytes]:
        """What the last bytes complete, and the ends of all that is open."""
        try:
            for piece in self._reader.end():
                yield from self._take(piece)
        except UnreadableRecording:
            if not self._reader.is_recognised:
                raise
            self.remarks.is_cut = True  # it would be whole if it went on
        self.remarks.is_cut = self.remarks.is_cut or self._reader.torn
        yield from self.close()

    def close(self) -> Iterator[bytes]:
        """The ends of all that is open, whatever may still have been to come."""
        while self._sessions:
            _, session = self._sessions.popitem(last=False)
            yield from self._written(self._end_of(session))
        yield self._writing.flush()

    def rest(self) -> Iterator[bytes]:
        """What was held back; to be written when nothing comes for a while."""
        for session in self._resting:
            yield from self._written(session.rest())
        yield self._writing.flush()

    @property
    def deadline(self) -> float | None:
        """When `rest` should be called, if nothing comes before."""
        return 0.0 if self._resting else self._writing.deadline

    @property
    def _resting(self) -> list[SessionTranslator]:
        return [one for one in self._sessions.values() if isinstance(one, SessionTranslator) and one.is_resting]

    # -- piece by piece -------------------------------------------------------------------------------------------

    def _take(self, piece: AnyRecordedItem) -> Iterator[bytes]:
        try:
            yield from self._written(self._records(piece))
        except m.GrammarError as error:
            raise UnreadableRecording(piece.line, f"this cannot come here: {error}") from None
        except GatewayError as error:
            if isinstance(error, UnreadableRecording):
                raise
            raise UnreadableRecording(piece.line, error.message) from None

    def _written(self, records: Iterable[m.Record]) -> Iterator[bytes]:
        for record in records:
            self.remarks.records += 1
            yield self._writing.take(record)

    def _records(self, piece: AnyRecordedItem) -> Iterator[m.Record]:
        if isinstance(piece, StoredRecord):
            yield from self._kept(piece)
        elif isinstance(piece, ServerFrame):
            yield from self._told(piece)
        elif isinstance(piece, ClientFrame):
            yield from self._sent(piece)
        elif isinstance(piece, ResponseBody):
            yield from self._answered(piece)
        else:
            self._refused(piece)

    def _kept(self, piece: StoredRecord) -> Iterator[m.Record]:
        if self._only not in (None, piece.record.session_id):
            return
        yield from self._room_for(piece.record.session_id)
        session = self._sessions.setdefault(piece.record.session_id, RecordCopier())
        assert isinstance(session, RecordCopier), "records are copied"
        yield from session.take(piece.record)

    def _told(self, piece: ServerFrame) -> Iterator[m.Record]:
        name = self._sorter.session_of(piece.stream, piece.frame) or UNNAMED_SESSION
        if not self._is_wanted(name):
            return
        yield from self._room_for(name)
        session = self._listening(name)
        for early in self._early.pop(piece.stream, []):
            yield from self._understood(session, early)
        if piece.connection:
            session.connected(piece.connection)
        if session.is_new(piece.frame):
            yield from self._understood(session, piece)
            yield from session.feed(piece.frame, self._time(piece))

    def _sent(self, piece: ClientFrame) -> Iterator[m.Record]:
        """What a client says before its stream has a session waits for that."""
        name = self._sorter.session_of(piece.stream, piece.frame)
        if name is None:
            yield from self._sent_by_somebody(piece)
        elif self._is_wanted(name):
            yield from self._room_for(name)
            yield from self._understood(self._listening(name), piece)

    def _answered(self, piece: ResponseBody) -> Iterator[m.Record]:
        """A session was made, perhaps: what was said of it has a place now."""
        if piece.stream not in self._early:
            return
        name = self._sorter.session_of(piece.stream, piece.frame)
        if name is not None and self._is_wanted(name):
            yield from self._room_for(name)
            for early in self._early.pop(piece.stream):
                yield from self._understood(self._listening(name), early)

    def _sent_by_somebody(self, piece: ClientFrame) -> Iterator[m.Record]:
        """An answer finds its question by itself; a message waits for its stream to have a session."""
        for session in self._sessions.values():
            if isinstance(session, SessionTranslator) and session.composer.asks:
                answers = [one for one in self._overheard(session, piece) if isinstance(one, m.Answer)]
                for answer in answers:
                    yield from session.sent(answer, piece.stream, self._time(piece))
                if answers:
                    return
        self._early.setdefault(piece.stream, []).append(piece)
        if len(self._early) > MAX_SESSIONS:
            del self._early[next(iter(self._early))]

    def _refused(self, piece: RejectedRequest) -> None:
        """What was asked for on this stream was not done."""
        self._early.pop(piece.stream, None)
        for session in self._sessions.values():
            if isinstance(session, SessionTranslator):
                session.refused(piece.stream)

    def _understood(self, session: SessionTranslator, piece: ClientFrame | ServerFrame) -> Iterator[m.Record]:
        """What people said, where the dialect can tell: in what they sent, or in what the server repeats of it."""
        for command in self._overheard(session, piece):
            yield from session.sent(command, piece.stream, self._time(piece))

    def _overheard(self, session: SessionTranslator, piece: ClientFrame | ServerFrame) -> Sequence[m.AnyCommand]:
        read = self._source.recorded_commands if self._source is not None else None
        try:
            if read is not None and self._table is not None:
                return read(piece.frame, session.view, self._table)
            is_lost = isinstance(piece, ClientFrame)
        except GatewayError:  # what a server would have refused, it has refused
            is_lost = isinstance(piece, ClientFrame)
        if is_lost:
            self.remarks.unread[piece.frame.name or "a message"] += 1
        return ()

    # -- sessions -------------------------------------------------------------------------------------------------

    def _is_wanted(self, name: str) -> bool:
        return self._only is None or name in (self._only, UNNAMED_SESSION)

    def _room_for(self, name: str) -> Iterator[m.Record]:
        """Of too many sessions the one that was silent longest is ended."""
        if name in self._sessions:
            self._sessions.move_to_end(name)
        elif len(self._sessions) >= MAX_SESSIONS:
            _, session = self._sessions.popitem(last=False)
            yield from self._end_of(session)

    def _listening(self, name: str) -> SessionTranslator:
        """A session that had no name has one from now on."""
        session = self._sessions.get(name) or self._sessions.pop(UNNAMED_SESSION, None)
        if session is None:
            assert self._source is not None and self._source.decoder is not None, "frames are of a dialect"
            session = SessionTranslator(
                RecordComposer(name or self._mint("sess"), self._mint), self._source.decoder(self._mint)
            )
        assert isinstance(session, SessionTranslator), "frames are listened to"
        if name:
            session.set_name(name)
        self._sessions[name] = session
        return session

    def _end_of(self, session: SessionTranslator | RecordCopier) -> Iterator[m.Record]:
        yield from session.rest()
        self.remarks.torn += session.runs
        yield from session.end(self._clock())
        self._writing.forget(session.session_id)

    def _time(self, piece: AnyRecordedItem) -> float:
        return self._clock() if piece.at is None else piece.at
