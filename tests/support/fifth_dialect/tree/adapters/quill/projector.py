"""Quill, outward: records become frames."""

import gateway.model as m
from gateway.ports import NO_FRAMES, DialectTable, Frames, Projector, StreamOptions
from mappings.language import ProjectorBase


class QuillProjector(ProjectorBase):
    """Writes what the agent itself says, as the table spells it, and nothing of sub-agents."""

    def __init__(self, table: DialectTable) -> None:
        self._encoder = table.encoder("sse")

    def feed(self, record: m.Record) -> Frames:
        return self._encoder.record(record) if record.scope_id == m.ROOT else NO_FRAMES


def make_projector(table: DialectTable, options: StreamOptions) -> Projector:
    return QuillProjector(table)
