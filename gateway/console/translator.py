"""Translates a few events or frames into every dialect; what the laws of the stream ask for around them is added."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import orjson

import gateway.model as m
from gateway.errors import GatewayError, Invalid
from gateway.field_errors import describe_struct_error
from gateway.ids import make_mint
from gateway.json_values import JsonObject
from gateway.ports import Clock

from .columns import COLUMN_PREFIX, ConsoleColumns, RecordItem, ServedParts, record_item

MAX_RECORDS = 2000
SESSION_ID, TURN_ID, COMMAND_ID = "sess_translated", "turn_translated", "cmd_translated"
SCOPE_ID = "scope_translated"
OUTSIDE_OF_TURNS = (
    m.SessionUpdated, m.SessionCompacted, m.SessionRewound, m.SessionClosed, m.NoticePosted, m.CustomEvent,
    m.InputAccepted,
)
"""Events that may belong to no turn."""


@dataclass(kw_only=True)
class TranslatedEvents:
    """Records, the column of each dialect, the records that were added, and what could not be read."""

    records: list[RecordItem] = field(default_factory=list)
    columns: dict[str, list[orjson.Fragment]] = field(default_factory=dict)
    added: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class RecordCollector:
    """The output of a translation that only collects its records."""

    deadline: float | None = None

    def __init__(self) -> None:
        self.records: list[m.Record] = []

    def take(self, record: m.Record) -> bytes:
        if len(self.records) >= MAX_RECORDS:
            raise Invalid(f"this is too much: translate at most {MAX_RECORDS} records at a time")
        self.records.append(record)
        return b""

    def flush(self, now: float | None = None) -> bytes:
        return b""

    def forget(self, session_id: str) -> None:
        """Nothing is kept for a session."""


class LawfulStory:
    """Writes events into one turn of one session, and adds what must come before and after them."""

    def __init__(self, at: float) -> None:
        self._at = at
        self._grammar = m.Grammar()
        self.records: list[m.Record] = []
        self.added: list[int] = []
        self._write(m.SessionCreated(agent="unknown"), is_added=True)

    def tell(self, event: m.AnyEvent) -> None:
        """Write the event; raises `GrammarError` if nothing can be added that makes it lawful."""
        if isinstance(event, m.SessionCreated):
            self.records[0] = msgspec.structs.replace(self.records[0], event=event)
            self.added.clear()
            return
        for one in self._before(event):
            self._write(one, is_added=True)
        is_of_child = isinstance(event, m.ScopeOpened | m.ScopeStatusChanged | m.ScopeMessage)
        self._write(event, SCOPE_ID if is_of_child else m.ROOT)

    def end(self) -> None:
        """Close what is open."""
        if self._grammar.turn is not m.TurnPhase.RUNNING:
            return
        for scope_id, event in m.missing_ends(self._grammar, m.Outcome.COMPLETED, m.StopReason.END_TURN):
            self._write(event, scope_id, is_added=True)
        self._write(m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN), is_added=True)

    def _before(self, event: m.AnyEvent) -> Sequence[m.AnyEvent]:
        """The events that the laws ask for before this one and that have not happened."""
        found = list[m.AnyEvent]()
        needs_turn = not isinstance(event, OUTSIDE_OF_TURNS)
        if needs_turn and self._grammar.turn is m.TurnPhase.IDLE and not isinstance(event, m.TurnStarted):
            found.append(m.TurnStarted(command_id=COMMAND_ID))
        known = {one.event.message_id for one in self.records if isinstance(one.event, m.MessageStarted)}
        blocks = {one.event.block_id for one in self.records if isinstance(one.event, m.BlockStarted)}
        calls = {one.event.call.call_id for one in self.records
                 if isinstance(one.event, m.BlockEnded) and one.event.call is not None}
        message_id = getattr(event, "message_id", None)
        if message_id and message_id not in known and not isinstance(event, m.MessageStarted):
            found.append(m.MessageStarted(message_id=message_id))
        if isinstance(event, m.BlockDelta | m.BlockEnded) and event.block_id not in blocks:
            found.append(m.BlockStarted(block_id=event.block_id, message_id=event.message_id, kind=event.kind))
            if isinstance(event, m.BlockEnded) and event.text:
                found.append(m.BlockDelta(
                    block_id=event.block_id, message_id=event.message_id, kind=event.kind, delta=event.text))
        if isinstance(event, m.ToolStatusChanged | m.ToolOutput | m.ToolReturned) and event.call_id not in calls:
            origin = event.origin if isinstance(event, m.ToolReturned) else m.ToolOrigin.BUILTIN
            found += _call(m.ToolCall(call_id=event.call_id, name="tool", origin=origin))
        if isinstance(event, m.InputRequested) and (call := m.call_of(event.ask)) and call.call_id not in calls:
            found += _call(call)
        return found

    def _write(self, event: m.AnyEvent, scope_id: str = m.ROOT, *, is_added: bool = False) -> None:
        self._grammar.check(event, scope_id)
        seq = len(self.records) + 1
        turn_id = None if isinstance(event, m.SessionCreated) else TURN_ID
        self.records.append(m.Record(
            seq=seq, at=self._at, session_id=SESSION_ID, event=event, turn_id=turn_id, scope_id=scope_id))
        if is_added:
            self.added.append(seq)


def _call(call: m.ToolCall) -> list[m.AnyEvent]:
    """The call of a tool, in a message of its own."""
    message_id, block_id, kind = f"msg_{call.call_id}", f"block_{call.call_id}", m.BlockKind.TOOL_USE
    return [
        m.MessageStarted(message_id=message_id),
        m.BlockStarted(block_id=block_id, message_id=message_id, kind=kind, call=call),
        m.BlockEnded(block_id=block_id, message_id=message_id, kind=kind, call=call),
        m.MessageEnded(message_id=message_id, outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.TOOL_USE),
    ]


class ConsoleTranslator:
    """Translates with the tables that are in force."""

    def __init__(self, parts: ServedParts, columns: ConsoleColumns, clock: Clock) -> None:
        self._parts, self._columns, self._clock = parts, columns, clock

    def from_events(self, given: Sequence[JsonObject]) -> TranslatedEvents:
        if not given:
            raise Invalid("event: send a canonical event, or a dialect and a frame", param="event")
        story, problems = LawfulStory(self._clock()), list[str]()
        for number, one in enumerate(given):
            try:
                story.tell(msgspec.convert(one, m.AnyEvent))
            except msgspec.ValidationError as error:
                raise Invalid(f"events.{number}: {describe_struct_error(error)}", param="events") from None
            except m.GrammarError as error:
                problems.append(f"event {number + 1} cannot come here: {error}")
        story.end()
        return self._projected(story.records, story.added, problems)

    def from_frames(self, name: str, frame: str | JsonObject | None) -> TranslatedEvents:
        dialect = self._parts.dialects.get(name)
        if dialect is None or dialect.decoder is None:
            readable = [other for other, one in self._parts.dialects.items() if one.decoder is not None]
            raise Invalid(f"dialect: frames of '{name[:80]}' cannot be read; those of {', '.join(readable)} can",
                          param="dialect")
        if frame is None:
            raise Invalid("frame: is missing", param="frame")
        from gateway.translate import Translation, UnreadableRecording  # 2 MB, which few servers need

        text = frame if isinstance(frame, str) else orjson.dumps(frame).decode()
        collected, problems = RecordCollector(), list[str]()
        translation = Translation(dialect, self._parts.tables[name], collected, clock=self._clock, mint=make_mint())
        try:
            for _ in translation.feed(text.strip("\n").encode() + b"\n\n"):
                pass
            for _ in translation.end():
                pass
        except (UnreadableRecording, GatewayError) as error:
            problems.append(str(error))
        return self._projected(collected.records, [], [*problems, *translation.remarks.lines()])

    def _projected(
        self, records: Sequence[m.Record], added: list[int], problems: list[str],
    ) -> TranslatedEvents:
        view = m.SessionView(session_id=records[0].session_id if records else SESSION_ID)
        columns: dict[str, list[orjson.Fragment]] = {}
        for name in self._parts.dialects:
            column = self._columns.projector(f"{COLUMN_PREFIX}{name}", self._columns.options(name, view))
            frames = [frame for record in records for frame in column.feed(record)]
            frames += column.flush(self._clock() + 3600)
            columns[name] = [orjson.Fragment(frame.body) for frame in frames]
        return TranslatedEvents(
            records=[record_item(record) for record in records], columns=columns, added=added, problems=problems)
