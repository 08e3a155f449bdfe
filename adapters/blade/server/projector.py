"""Blade, outward: records in, Socket.IO events out. No clock, no socket."""

from collections.abc import Iterator
from typing import Any

import orjson

import gateway.model as m
from gateway.http import split_frame
from mappings.language import Table

from . import views
from .session_projection import SessionProjection
from .stream_options import BARE, RAW
from .turn_projection import Cue
from .turn_state import TurnCall, TurnEntry

Frames = tuple[bytes, ...]
NO_FRAMES: Frames = ()
NUMBERS_PER_RECORD = 100
"""Numbers that one record's events may have; so a number tells where in the log its event stands."""
RECORDS_BACK = 100
"""How many records earlier to begin, because one that has more events than numbers borrows from those that follow."""
TIMER_SLACK = 0.01
"""A timer goes off a little later than words are due, so that a record on its way to us is not overtaken."""

PATCH = ("turn_id", "loop_id", "patch_sequence", "turn")
CUES: dict[str, tuple[str, ...]] = {
    "chat.started": (),
    "chat.paused": ("result", "pause"),
    "chat.completed": ("result", "stop_reason", "duration_ms"),
    "chat.failed": ("result", "stop_reason", "duration_ms"),
    "chat.interrupted": ("result", "stop_reason", "duration_ms"),
    "turn.opened": ("turn",),
    "turn.closed": ("turn",),
    "patch.text": (*PATCH, "content", "delta", "index"),
    "patch.thinking": (*PATCH, "content", "delta", "index"),
    "patch.block": (*PATCH, "block", "index"),
    "patch.call": (*PATCH, "call"),
    "patch.call_status": (*PATCH, "call"),
    "patch.result": (*PATCH, "call"),
    "patch.status": (*PATCH, "status"),
    "session.changed": ("intent", "model", "replay_state"),
    "files.changed": ("file_path",),
    "notice": ("topic", "title", "detail", "level"),
    "fault.fatal": ("fault",),
    "fault.passing": ("fault",),
    "raw": ("type", "payload"),
    "refused": ("refusal",),
    "refused.request": ("refusal",),
}
NAMES = {"*": ("session_id", "stream_sequence", "run_id")}


def make_projector(table: Table, options: str) -> "Projector":
    return Projector(table, options.split())


class Projector:
    """One reading of a session; `raw` tells every event a second time in an envelope, `bare` leaves snapshots out."""

    def __init__(self, table: Table, manner: list[str]) -> None:
        self._table = table
        self._speaker = table.encoder("json")
        self._raw, self._bare = RAW in manner, BARE in manner
        self._ledger = SessionProjection()
        self._session_id = ""
        self._last = 0

    @property
    def deadline(self) -> float | None:
        due = self._ledger.deadline
        return None if due is None else due + TIMER_SLACK

    def feed(self, record: m.Record) -> Frames:
        self._session_id = record.session_id
        if type(record.event) is m.SessionCreated:
            self.skip(record)
            return NO_FRAMES
        frames = [self._say(cue, record) for cue in self._ledger.project(record)]
        return tuple(frames) if not self._raw else tuple(self._twice(frames))

    def skip(self, record: m.Record) -> None:
        """Take in what a reader has had already: only the numbers of its events count.

        What was said elsewhere is history, not news, and has no numbers: there may be more of it than a record has.
        """
        for cue in self._ledger.project(record):
            if type(record.event) is not m.SessionCreated:
                self._number(cue, record)

    def flush(self, now: float) -> Frames:
        due = self._ledger.deadline
        if due is None or due + TIMER_SLACK > now:
            return NO_FRAMES
        frames = [self._say(cue, None) for cue in self._ledger.flush(max(due, now - TIMER_SLACK))]
        return tuple(frames) if not self._raw else tuple(self._twice(frames))

    # -- saying ---------------------------------------------------------------------------------------------------

    def _say(self, cue: Cue, record: m.Record | None) -> bytes:
        chat, number = self._ledger.chat, self._number(cue, record)
        names = {"session_id": self._session_id, "stream_sequence": number, "run_id": chat.run_id if chat else None}
        bind = _BINDINGS.get(cue.name)
        names |= bind(self, cue) if bind is not None else cue.names
        if cue.turn is not None:
            names |= self._of_turn(cue, cue.turn)
        [frame] = self._speaker.cue(cue.name, None, names)
        return frame

    def _number(self, cue: Cue, record: m.Record | None) -> int:
        seq = cue.seq or (record.seq if record is not None else 0)
        self._last = max(self._last + 1, seq * NUMBERS_PER_RECORD)
        return self._last

    def _of_turn(self, cue: Cue, turn: TurnEntry) -> dict[str, Any]:
        if not cue.name.startswith("patch."):
            return {"turn": views.turn_body(self._table, turn)}
        return {
            "turn": None if self._bare else views.turn_body(self._table, turn), "turn_id": turn.turn_id,
            "loop_id": turn.loop.loop_id, "patch_sequence": turn.patches,
        }

    def _twice(self, frames: list[bytes]) -> Iterator[bytes]:
        """Every event also in an envelope, for those who asked for them raw."""
        for frame in frames:
            yield frame
            wire, payload = split_frame(frame)
            names = {"session_id": self._session_id, "stream_sequence": sequence_in_frame(frame), "run_id": None}
            yield from self._speaker.cue("raw", None, names | {"type": wire, "payload": orjson.Fragment(payload)})

    # -- what single cues bind ------------------------------------------------------------------------------------

    def _call(self, cue: Cue) -> dict[str, Any]:
        return {"call": views.tool_call_body(self._table, cue.names["call"])}

    def _block(self, cue: Cue) -> dict[str, Any]:
        return cue.names | {"block": views.block_body(self._table, cue.names["block"])}

    def _status(self, cue: Cue) -> dict[str, Any]:
        assert cue.turn is not None
        return {"status": views.turn_status(self._table, cue.turn)}

    def _notice(self, cue: Cue) -> dict[str, Any]:
        event: m.NoticePosted = cue.names["event"]
        return {"topic": event.topic, "title": event.title, "detail": event.detail, "level": event.level}

    def _paused(self, cue: Cue) -> dict[str, Any]:
        call: TurnCall | None = cue.names["call"]
        pause = call and self._table.object("pause", call=call, arguments=views.arguments(self._table, call))
        return {"pause": pause, "result": None}

    def _over(self, cue: Cue) -> dict[str, Any]:
        event: m.TurnEnded = cue.names["event"]
        return {"result": self._result(event), "stop_reason": self._stop(event), "duration_ms": event.duration_ms}

    def _stop(self, event: m.TurnEnded) -> m.StopReason | None:
        """Why it ended; a failure has a word if there were too many steps, or the error of a tool was the end."""
        stop = event.stop_reason
        has_word = stop is m.StopReason.MAX_STEPS or (stop is m.StopReason.ERROR and self._ledger.has_failed_tool)
        return stop if has_word or event.outcome is not m.Outcome.FAILED else None

    def _result(self, event: m.TurnEnded) -> Any:
        """What a headless chat ends with: the agent's last words, the value that was asked for, or what went wrong."""
        chat, table = self._ledger.chat, self._table
        if chat is None or not chat.headless or event.outcome == "interrupted":
            return None
        if event.fault is not None:
            return table.object("answer.failed", message=event.fault.message)
        if chat.schema is None:
            return table.object("answer.text", text=self._ledger.last_words)
        fields = event.result if isinstance(event.result, dict) else {}
        return table.object("answer.schema", value=event.result, fields=fields, schema=chat.schema)


_BINDINGS: dict[str, Any] = {
    "patch.call": Projector._call,
    "patch.call_status": Projector._call,
    "patch.result": Projector._call,
    "patch.block": Projector._block,
    "patch.status": Projector._status,
    "notice": Projector._notice,
    "chat.paused": Projector._paused,
    "chat.completed": Projector._over,
    "chat.failed": Projector._over,
    "chat.interrupted": Projector._over,
}


def sequence_in_frame(frame: bytes) -> int:
    """The stream sequence of a frame, as its table writes it first of all."""
    head = frame[:200]
    mark = b'"stream_sequence":'
    at = head.find(mark)
    digits = head[at + len(mark):at + len(mark) + 20] if at >= 0 else b""
    return int(digits.partition(b",")[0] or 0)


def record_before_sequence(number: int) -> int:
    """After which record to begin, so that every event with a greater number is told."""
    return max(0, number // NUMBERS_PER_RECORD - RECORDS_BACK)
