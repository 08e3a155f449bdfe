"""Quill, outward: records become frames."""

import gateway.model as m
from gateway.ports import Projector
from mappings.language import Table


class QuillProjector:
    """Tells what the agent itself writes, as the table spells it; sub-agents are not heard."""

    deadline: float | None = None

    def __init__(self, table: Table) -> None:
        self._encoder = table.encoder("sse")

    def feed(self, record: m.Record) -> tuple[bytes, ...]:
        return self._encoder.record(record) if record.scope_id == m.ROOT else ()

    def flush(self, now: float) -> tuple[bytes, ...]:
        return ()


def make_projector(table: Table, options: str) -> Projector:
    return QuillProjector(table)
