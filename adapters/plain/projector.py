"""Records in, frames of a plain dialect out, each with a cursor to resume after. No clock, no socket."""

import gateway.model as m
from gateway.ports import NO_FRAMES, DialectTable, Frame, Frames, Framing, Projector, StreamOptions
from mappings.language import ProjectorBase, SupportLevel

UNTOLD = (SupportLevel.DROPPED, SupportLevel.REJECTED)


def make_projector(framing: Framing, table: DialectTable, options: StreamOptions) -> Projector:
    return PlainProjector(table, framing)


class PlainProjector(ProjectorBase):
    """Writes each record as the table spells it; of sub-agents only if the table says that it carries them."""

    def __init__(self, table: DialectTable, framing: Framing) -> None:
        self._encoder = table.encoder(framing)
        self._has_ids = framing == "sse"
        self._tells_scopes = table.support["subagents"] not in UNTOLD

    def feed(self, record: m.Record) -> Frames:
        if record.scope_id != m.ROOT and not self._tells_scopes:
            return NO_FRAMES
        frames = self._encoder.record(record, None, record.seq)
        return self._with_ids(frames, record.seq) if frames and self._has_ids else frames

    def _with_ids(self, frames: Frames, seq: int) -> Frames:
        """Each event gets an id: the number of its record; before the last event of a record, also its own number."""
        if len(frames) == 1:
            return (_with_id(frames[0], str(seq)),)
        last = len(frames)
        return tuple([_with_id(frame, str(seq) if number == last else f"{seq}.{number}")
                      for number, frame in enumerate(frames, 1)])


def _with_id(frame: Frame, cursor: str) -> Frame:
    return Frame(b"id: %s\n" % cursor.encode() + frame.body, frame.name, cursor)
