"""Records in, frames of AAP out. No clock, no socket."""

from collections.abc import Callable

import orjson

import gateway.model as m
from gateway import ports
from gateway.ports import NO_FRAMES, DialectTable, Frame, Frames, Projector
from mappings.language import NO_BINDINGS, ProjectorBase

from .history import agent_messages, ask_as_calls, pending_calls_message
from .stream_options import StreamMode, StreamOptions

CUES = {
    "whole.text": ("text",),
    "whole.thinking": ("text",),
    "image.delta": ("text",),
    "image.whole": ("text",),
    "turn.waiting": (),
    "child.asked": ("call",),
}


def make_projector(table: DialectTable, options: ports.StreamOptions) -> Projector:
    """A fresh projector for one of AAP's stream modes."""
    assert isinstance(options, StreamOptions), "a dialect gets options of its own kind"
    projector = PROJECTORS[options.mode](table)
    return NumberedProjector(projector) if options.has_ids else projector


class CallRegistry:
    """The calls of a turn that are written unlike the agent's other calls.

    `shown_calls` are calls of sub-agents that the client was asked about; `returned` are calls whose result it sent.
    """

    events = frozenset((m.TurnStarted, m.InputRequested, m.InputAccepted))
    """The events that change it."""

    def __init__(self) -> None:
        self.shown_calls: set[str] = set()
        self.returned: set[str] = set()
        self._asked: dict[str, str] = {}

    def feed(self, record: m.Record, event: m.Event) -> None:
        if isinstance(event, m.TurnStarted):
            for known in (self.shown_calls, self.returned, self._asked):
                known.clear()
        elif isinstance(event, m.InputRequested) and event.call_id is not None:
            self._asked[event.request_id] = event.call_id
            if record.scope_id != m.ROOT:
                self.shown_calls.add(event.call_id)
        elif isinstance(event, m.InputAccepted):
            command = event.command
            if isinstance(command, m.ReturnResult) or (isinstance(command, m.AnswerQuestion) and command.said):
                self.returned.add(self._asked.get(command.request_id, ""))


class DeltaProjector(ProjectorBase):
    """Stream mode `delta`: text as it comes; an image is written under the given cue."""

    def __init__(self, table: DialectTable, image_cue: str = "image.delta") -> None:
        self.image_cue = image_cue
        self.known = CallRegistry()
        self.encoder = table.encoder("sse")
        self.words = self.encoder.cue_encoders(m.BlockDelta)

    def feed(self, record: m.Record) -> Frames:
        event = record.event
        if type(event) is m.BlockDelta and record.scope_id == m.ROOT:  # nine records of ten
            return self.words[event.kind](record, event, NO_BINDINGS)
        if type(event) in CallRegistry.events:
            self.known.feed(record, event)
        if type(event) is m.ToolReturned and event.call_id in self.known.returned:
            return NO_FRAMES  # the client sent this result itself
        if record.scope_id != m.ROOT:
            return self._of_child(record, event)
        if type(event) is m.BlockEnded and event.kind is m.BlockKind.IMAGE:
            return self._image(record, event.image)
        if type(event) is m.InputRequested:
            return self._asked(record, event)
        return self.encoder.record(record)

    def _image(self, record: m.Record, image: m.ImagePart | None) -> Frames:
        return self.encoder.cue(self.image_cue, record, {"text": m.image_markdown(image)}) if image else NO_FRAMES

    def _of_child(self, record: m.Record, event: m.Event) -> Frames:
        """Sub-agents have no frames but for their asks: their open call is written as a call of the agent."""
        if isinstance(event, m.ToolReturned) and event.call_id in self.known.shown_calls:
            return self.encoder.record(record)
        if not isinstance(event, m.InputRequested):
            return NO_FRAMES
        call = m.call_of(event.ask)
        return self.encoder.cue("child.asked", record, {"call": call}) if call else self._asked(record, event)

    def _asked(self, record: m.Record, event: m.InputRequested) -> Frames:
        """The call of an ask is written already; a question without a call is written as the call that it would be."""
        if not isinstance(event.ask, m.QuestionAsk) or event.ask.call is not None:
            return self.encoder.record(record)
        return self.encoder.cue("child.asked", record, {"call": m.question_call(event.ask, event.request_id)})


class MessageProjector(ProjectorBase):
    """Stream mode `message`: each part when it is whole, all else as in stream mode `delta`."""

    def __init__(self, table: DialectTable) -> None:
        self._others = DeltaProjector(table, image_cue="image.whole")
        self._encoder = table.encoder("sse")

    def feed(self, record: m.Record) -> Frames:
        event = record.event
        if type(event) is m.BlockDelta:
            return NO_FRAMES
        if type(event) is m.BlockEnded and event.text and record.scope_id == m.ROOT:
            return self._encoder.cue(f"whole.{event.kind}", record, {"text": event.text})
        return self._others.feed(record)


class NumberedProjector(ProjectorBase):
    """Gives each event an id to resume after: the record that its turn begins with, and its number in the turn."""

    def __init__(self, projector: Projector) -> None:
        self.projector = projector
        self.begins = self.count = 0

    def feed(self, record: m.Record) -> Frames:
        if isinstance(record.event, m.TurnStarted | m.TurnResumed):
            self.begins, self.count = record.seq, 0
        return tuple([self._with_id(frame) for frame in self.projector.feed(record)])

    def _with_id(self, frame: Frame) -> Frame:
        self.count += 1
        cursor = f"{self.begins}.{self.count}"
        return Frame(f"id: {cursor}\n".encode() + frame.body, frame.name, cursor)


class TurnBodyProjector(ProjectorBase):
    """Stream mode `none`: all messages of the turn in one body, when the turn ends or is suspended."""

    def __init__(self, table: DialectTable) -> None:
        self.table = table
        self.known = CallRegistry()
        self.view = m.SessionView(session_id="")
        self.asked: list[object] = []
        """The open asks that are no calls of the agent, as the calls that stand for them."""

    def feed(self, record: m.Record) -> Frames:
        event = record.event
        self.known.feed(record, event)
        if isinstance(event, m.TurnStarted | m.TurnResumed):
            self.view, self.asked = m.SessionView(session_id=record.session_id), []
        m.apply(self.view, record)
        if isinstance(event, m.InputRequested):
            self.asked += ask_as_calls(self.table, event.request_id, event.ask, record.scope_id)
        if isinstance(event, m.TurnEnded):
            return (Frame(self.body(event.stop_reason)),)
        return (Frame(self.body(m.StopReason.NEEDS_INPUT)),) if isinstance(event, m.TurnSuspended) else NO_FRAMES

    def body(self, stop_reason: m.StopReason) -> bytes:
        messages = agent_messages(self.view.entries, self.known.shown_calls, self.known.returned)
        messages += pending_calls_message(self.asked)
        return orjson.dumps(self.table.object("turn", stop_reason=stop_reason, messages=messages))


PROJECTORS: dict[StreamMode, Callable[[DialectTable], Projector]] = {
    "delta": DeltaProjector,
    "message": MessageProjector,
    "none": TurnBodyProjector,
}
