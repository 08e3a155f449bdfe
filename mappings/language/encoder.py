"""Records and cues in, encoded frames out: the hot path."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple, Self

import orjson

import gateway.model as m
from gateway.json_values import JsonValue
from gateway.ports import NO_FRAMES, CueEncoder, Frame, FrameCursor, Frames, Framing
from gateway.yaml_positions import NodePath

from .compile import (
    Bindings,
    DumpedValue,
    Encoder,
    ExpressionCompiler,
    Getter,
    OptionalField,
    Segment,
    Subject,
    join_constants,
)
from .expressions import SPLICE, WIRE, Constant, Node, Object, Slot
from .filters import to_builtins, to_json_slowly


class NamedSegments(NamedTuple):
    """One frame: its name and the segments of its body."""

    name: str
    segments: list[Segment]


SSE_LINES = ("event", "id", "retry")
SSE_DATA = "data"
SOCKETIO_KEYS = ("event", "data")
NO_BINDINGS: Mapping[str, JsonValue] = {}
"""No bindings beside the record."""
_LINE_BREAKS = str.maketrans("", "", "\r\n\0")


class FrameEncoder:
    """The frames of one table in one framing."""

    __slots__ = ("_cues", "_events")

    def __init__(self, events: dict[type[m.Event], dict[str, CueEncoder]], cues: dict[str, CueEncoder]) -> None:
        self._events = events
        self._cues = cues

    def __deepcopy__(self, memo: object) -> Self:
        """An encoder never changes, so copies of a projector share it."""
        return self

    def record(
        self, record: m.Record, extra: Mapping[str, object] | None = None, cursor: FrameCursor = None
    ) -> Frames:
        """The frames of the record's event, its variant's where that is spelled; none where the table is silent."""
        event = record.event
        return self._events[type(event)][event.variant](record, event, NO_BINDINGS if extra is None else extra, cursor)

    def cue_encoders(self, kind: type[m.Event]) -> Mapping[str, CueEncoder]:
        """The encoders of one kind of event by its variants, for callers with many such events."""
        return self._events[kind]

    def cue(
        self, name: str, record: m.Record | None, bindings: Mapping[str, object] | None = None,
        cursor: FrameCursor = None,
    ) -> Frames:
        """The frames of a cue by its name; the name of a canonical event spells that record's event."""
        event = None if record is None else record.event
        return self._cues[name](record, event, NO_BINDINGS if bindings is None else bindings, cursor)


# -- framing ----------------------------------------------------------------------------------------------------------

def frame_segments(node: Node, wire: str, framing: Framing, compiler: ExpressionCompiler) -> NamedSegments:
    """The name of one frame and the segments of its body; Socket.IO has its own place for the name."""
    if framing == "sse":
        return NamedSegments(wire, _sse(node, compiler))
    if framing == "socketio":
        assert isinstance(node, Object)
        items = dict(node.items)
        assert isinstance(items["event"], Constant)
        return NamedSegments(str(items["event"].value), compiler.segments(items["data"]))
    return NamedSegments(wire, compiler.segments(node))


def framing_problem(node: Node, framing: Framing) -> tuple[NodePath, str] | None:
    """What keeps an envelope from being used in this framing."""
    return {"json": lambda node: None, "sse": sse_problem, "socketio": socketio_problem}[framing](node)


def socketio_problem(node: Node) -> tuple[NodePath, str] | None:
    """What keeps an envelope from being an event of Socket.IO."""
    if not isinstance(node, Object) or {key for key, _ in node.items} != {*SOCKETIO_KEYS}:
        return node.path, "an event of Socket.IO needs an envelope with the keys 'event' and 'data', and no others"
    name = dict(node.items)["event"]
    if (isinstance(name, Constant) and isinstance(name.value, str)) or (isinstance(name, Slot) and name.name == WIRE):
        return None
    return name.path, "'event' of an event of Socket.IO must be a plain word or $wire"


def sse_problem(node: Node) -> tuple[NodePath, str] | None:
    """What keeps an envelope from being a server-sent event."""
    if not isinstance(node, Object):
        return node.path, "a server-sent event needs an envelope with a key 'data'"
    for key, child in node.items:
        if key not in (*SSE_LINES, SSE_DATA):
            what = "a splice" if key == SPLICE else f"a field '{key}'"
            return child.path, f"a server-sent event has no place for {what}; it has event, id, retry and data"
        if key != SSE_DATA and not isinstance(child, Constant | Slot):
            return child.path, f"'{key}' of a server-sent event must be a plain word"
        if (
            key != SSE_DATA
            and isinstance(child, Constant)
            and str(child.value).translate(_LINE_BREAKS) != str(child.value)
        ):
            return child.path, f"'{key}' of a server-sent event must be one line"
    if SSE_DATA not in dict(node.items):
        return node.path, "a server-sent event needs an envelope with a key 'data'"
    return None


def _sse(node: Node, compiler: ExpressionCompiler) -> list[Segment]:
    assert isinstance(node, Object)
    items = dict(node.items)
    lines = [_line(key, child, compiler) for key, child in node.items if key in SSE_LINES]
    return join_constants([*lines, b"data: ", *compiler.segments(items[SSE_DATA]), b"\n\n"])


def _line(key: str, node: Node, compiler: ExpressionCompiler) -> Segment:
    lead = f"{key}: ".encode()
    if isinstance(node, Constant):
        return b"" if node.value is None else lead + str(node.value).encode() + b"\n"
    get = compiler.value(node)

    def line(record: m.Record | None, subject: Subject, extra: Bindings) -> bytes:
        value = get(record, subject, extra)
        return b"" if value is None else lead + str(value).translate(_LINE_BREAKS).encode() + b"\n"

    return line


# -- from segments to encoders ----------------------------------------------------------------------------------------

def compile_cue(frames: list[NamedSegments], compiler: ExpressionCompiler) -> CueEncoder:
    """The quickest way to make these frames."""
    if not frames:
        return lambda record, event, extra, cursor=None: NO_FRAMES
    if all(isinstance(segment, bytes) for _, segments in frames for segment in segments):
        return _constant_frames(tuple(Frame(b"".join(segments), name) for name, segments in frames))  # type: ignore[arg-type]
    if len(frames) != 1:
        each = [(name, _encoder(segments)) for name, segments in frames]
        return lambda record, event, extra, cursor=None: tuple(
            [Frame(encode(record, event, extra), name, cursor) for name, encode in each]
        )
    return _one_field(*frames[0], compiler) or _one_frame(*frames[0])


def _constant_frames(ready: Frames) -> CueEncoder:
    def encode(record: object, event: object, extra: Mapping[str, object], cursor: FrameCursor = None) -> Frames:
        return ready if cursor is None else tuple([Frame(frame.body, frame.name, cursor) for frame in ready])

    return encode


def _one_field(name: str, segments: list[Segment], compiler: ExpressionCompiler) -> CueEncoder | None:
    """A frame that is constant but for one field of the event: every delta of every dialect that is plain enough."""
    if len(segments) != 3 or not isinstance(segments[1], DumpedValue):
        return None
    before, slot, after = segments
    field = compiler.field_of_subject(slot.node) if isinstance(slot, DumpedValue) else None
    if field is None or not isinstance(before, bytes) or not isinstance(after, bytes):
        return None
    get, dumps = attrgetter(field), orjson.dumps

    def encode(record: object, event: object, extra: Mapping[str, object], cursor: FrameCursor = None) -> Frames:
        try:
            return (Frame(before + dumps(get(event), to_builtins) + after, name, cursor),)
        except TypeError:
            return (Frame(before + to_json_slowly(get(event)) + after, name, cursor),)

    return encode


def _one_frame(name: str, segments: list[Segment]) -> CueEncoder:
    encode = _encoder(segments)
    return lambda record, event, extra, cursor=None: (Frame(encode(record, event, extra), name, cursor),)


def _encoder(segments: list[Segment]) -> Encoder:
    """Constants and values, alternating, filled into one template; one call gives all values."""
    template = b"".join(s.replace(b"%", b"%%") if isinstance(s, bytes) else b"%b" for s in segments)
    encoders = [segment for segment in segments if not isinstance(segment, bytes)]
    dumped = [encoder for encoder in encoders if isinstance(encoder, DumpedValue)]
    dumps = orjson.dumps

    def encode_each(record: m.Record | None, event: Subject, extra: Bindings) -> bytes:
        return template % tuple([encode(record, event, extra) for encode in encoders])

    if not dumped:
        return encode_each
    values = dumped[0].compiler.values([value.source for value in dumped])

    def dump(record: m.Record | None, event: Subject, extra: Bindings) -> bytes:
        try:
            return template % tuple([dumps(value, to_builtins) for value in values(record, event, extra)])
        except TypeError:
            return encode_each(record, event, extra)

    if all(type(encoder) is DumpedValue for encoder in encoders):
        return dump
    return _mixed_encoder(template, encoders, values, encode_each)


def _mixed_encoder(
    template: bytes, encoders: Sequence[Encoder], values: Getter, encode_each: Encoder,
) -> Encoder:
    """Fill a template with dumped values, fields that may be missing, and segments that encode themselves."""
    dumps = orjson.dumps
    plan = [
        (None, encoder.lead if isinstance(encoder, OptionalField) else b"") if isinstance(encoder, DumpedValue)
        else (encoder, b"")
        for encoder in encoders
    ]

    def encode(record: m.Record | None, event: Subject, extra: Bindings) -> bytes:
        following, found = iter(values(record, event, extra)), []
        try:
            for other, lead in plan:
                if other is not None:
                    found.append(other(record, event, extra))
                elif (value := next(following)) is not None or not lead:
                    found.append(lead + dumps(value, to_builtins))
                else:
                    found.append(b"")
        except TypeError:
            return encode_each(record, event, extra)
        return template % tuple(found)

    return encode
