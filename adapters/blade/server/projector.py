"""Records in, Socket.IO events of Blade out. No clock, no socket."""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

import gateway.model as m
from adapters.blade.asks import ASK_TOOL
from gateway import ports
from gateway.ports import NO_FRAMES, DialectTable, Frame, Frames
from mappings.language import ProjectorBase

from . import views
from .session_projection import SessionProjection
from .stream_options import StreamOptions
from .turn_projection import NO_NAMES
from .turn_state import OpenTurns, TurnCall, TurnEntry

NUMBERS_PER_RECORD = 100
"""How many numbers the events of one record may have; so the number of an event gives its place in the log."""
RECORDS_BACK = 100
"""How many records earlier to begin, because a record with more events than numbers borrows numbers of later ones."""
TIMER_SLACK = 0.01
"""How many seconds after the due time a timer goes off, so that it does not overtake a record on its way."""

PAUSING_TOOL = f"builtin:{ASK_TOOL}"
"""The tool whose call a chat that is paused waits for, with where it comes from."""
PATCH = ("turn_id", "loop_id", "patch_sequence", "turn")
CALL = ("call", "name", "title", "arguments", "result", "reference")
CUES: dict[str, tuple[str, ...]] = {
    "chat.started": (),
    "chat.paused": ("result", "pause", "tool", "stop_reason"),
    "chat.ended": ("outcome", "result", "stop_reason", "duration_ms"),
    "turn.opened": ("turn",),
    "turn.closed": ("turn",),
    "patch.text": (*PATCH, "content", "delta", "index"),
    "patch.thinking": (*PATCH, "content", "delta", "index"),
    "patch.block": (*PATCH, "type", "content", "call", "index"),
    "patch.call": (*PATCH, *CALL),
    "patch.call_status": (*PATCH, *CALL),
    "patch.result": (*PATCH, *CALL),
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


def make_projector(table: DialectTable, options: ports.StreamOptions) -> "Projector":
    assert isinstance(options, StreamOptions), "a dialect gets options of its own kind"
    return Projector(table, options)


class Projector(ProjectorBase):
    """One subscription to a session."""

    def __init__(self, table: DialectTable, options: StreamOptions) -> None:
        open_turns = OpenTurns()
        self._writer = FrameCueWriter(table, options, open_turns)
        self._session = SessionProjection(open_turns, self._writer)

    @property
    def deadline(self) -> float | None:  # type: ignore[override]  # the base has none
        due = self._session.deadline
        return None if due is None else due + TIMER_SLACK

    def feed(self, record: m.Record) -> Frames:
        frames = self._writer.begin(record)
        self._session.project(record)
        return tuple(frames)

    def skip(self, record: m.Record) -> None:
        """Project a record that the client has received: only the numbers of its events count."""
        self._writer.begin(record, renders=False)
        self._session.project(record)

    def flush(self, now: float) -> Frames:
        due = self._session.deadline
        if due is None or due + TIMER_SLACK > now:
            return NO_FRAMES
        frames = self._writer.begin(None)
        self._session.flush(max(due, now - TIMER_SLACK))
        return tuple(frames)


class FrameCueWriter:
    """Renders each cue as a frame when it is written; the frame's number is its cursor."""

    def __init__(self, table: DialectTable, options: StreamOptions, open_turns: OpenTurns) -> None:
        self._table = table
        self._encoder = table.encoder("socketio")
        self._options = options
        self._open = open_turns
        self._session_id = ""
        self._seq = self._last_number = 0
        self._is_history, self._renders = False, True
        self._frames: list[Frame] = []
        self._binders: dict[str, Callable[[TurnEntry | None, Mapping[str, object]], Mapping[str, object]]] = {
            "patch.call": self._bind_call,
            "patch.call_status": self._bind_call,
            "patch.result": self._bind_call,
            "patch.block": self._bind_block,
            "patch.status": self._bind_status,
            "notice": self._bind_notice,
            "chat.paused": self._bind_pause,
            "chat.ended": self._bind_end,
        }

    def begin(self, record: m.Record | None, *, renders: bool = True) -> list[Frame]:
        """Take the cues of this record from now on; their frames come into the list that is returned.

        Messages that a session was created with are history: they have no frames and no numbers, because there may be
        more of them than a record has numbers.
        """
        if record is None:
            self._seq, self._is_history = 0, False
        else:
            self._session_id, self._seq = record.session_id, record.seq
            self._is_history = type(record.event) is m.SessionCreated
        self._renders = renders
        frames = self._frames = []
        return frames

    def write(
        self, cue: str, turn: TurnEntry | None = None, names: Mapping[str, object] = NO_NAMES, seq: int = 0,
    ) -> None:
        if self._is_history:
            return
        number = self._last_number = max(self._last_number + 1, (seq or self._seq) * NUMBERS_PER_RECORD)
        if not self._renders:
            return
        chat, bind = self._open.chat, self._binders.get(cue)
        bindings = {
            "session_id": self._session_id, "stream_sequence": number, "run_id": chat.run_id if chat else None,
            **(names if bind is None else bind(turn, names)),
        }
        if turn is not None:
            is_patch = cue.startswith("patch.")
            bindings["turn"] = None if is_patch and self._options.is_bare else views.turn_body(self._table, turn)
            if is_patch:
                bindings["turn_id"], bindings["loop_id"] = turn.turn_id, turn.loop.loop_id
                bindings["patch_sequence"] = turn.patches
        [frame] = self._encoder.cue(cue, None, bindings, number)
        self._frames.append(frame)
        if self._options.is_raw:
            self._write_raw(frame, number)

    def _write_raw(self, frame: Frame, number: int) -> None:
        """Repeat an event in an envelope."""
        self._frames += self._encoder.cue("raw", None, {
            "session_id": self._session_id, "stream_sequence": number, "run_id": None, "type": frame.name,
            "payload": orjson.Fragment(frame.body),
        }, number)

    # -- what single cues bind ------------------------------------------------------------------------------------

    def _bind_call(self, turn: TurnEntry | None, names: Mapping[str, Any]) -> Mapping[str, object]:
        return views.call_fields(self._table, names["call"])

    def _bind_block(self, turn: TurnEntry | None, names: Mapping[str, Any]) -> Mapping[str, object]:
        return {"index": names["index"], **views.block_fields(self._table, names["block"])}

    def _bind_status(self, turn: TurnEntry | None, names: Mapping[str, object]) -> Mapping[str, object]:
        assert turn is not None
        return {"status": views.turn_status(self._table, turn)}

    def _bind_notice(self, turn: TurnEntry | None, names: Mapping[str, Any]) -> Mapping[str, object]:
        event: m.NoticePosted = names["event"]
        return {"topic": event.topic, "title": event.title, "detail": event.detail, "level": event.level}

    def _bind_pause(self, turn: TurnEntry | None, names: Mapping[str, Any]) -> Mapping[str, object]:
        call: TurnCall | None = names["call"]
        pause = call and {"call": call, "arguments": views.arguments(self._table, call)}
        return {"pause": pause, "result": None, "tool": PAUSING_TOOL, "stop_reason": m.StopReason.END_TURN}

    def _bind_end(self, turn: TurnEntry | None, names: Mapping[str, Any]) -> Mapping[str, object]:
        event: m.TurnEnded = names["event"]
        return {
            "outcome": event.outcome, "result": self._result(event), "stop_reason": self._stop_reason(event),
            "duration_ms": event.duration_ms,
        }

    def _stop_reason(self, event: m.TurnEnded) -> m.StopReason | None:
        """A failure has a stop reason only if there were too many steps, or a tool's error was the end."""
        stop = event.stop_reason
        if event.outcome is m.Outcome.INTERRUPTED:
            return None
        is_known = stop is m.StopReason.MAX_STEPS or (stop is m.StopReason.ERROR and self._open.has_failed_tool)
        return stop if is_known or event.outcome is not m.Outcome.FAILED else None

    def _result(self, event: m.TurnEnded) -> object:
        """The result of a headless chat: the agent's last text, the value that the schema asks for, or the failure."""
        chat, table = self._open.chat, self._table
        if chat is None or not chat.headless or event.outcome == "interrupted":
            return None
        if event.fault is not None:
            return table.object("answer.failed", message=event.fault.message)
        if chat.schema is None:
            return table.object("answer.text", text=self._open.last_text)
        fields = event.result if isinstance(event.result, dict) else {}
        return table.object("answer.schema", value=event.result, fields=fields, schema=chat.schema)


def record_before_sequence(number: int) -> int:
    """The record after which to begin, so that every event with a greater number is sent."""
    return max(0, number // NUMBERS_PER_RECORD - RECORDS_BACK)
