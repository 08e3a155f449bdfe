"""Frames without what travels beside their bodies, for tests about bytes."""

from collections.abc import Iterable, Mapping
from typing import Any

import gateway.model as m
from gateway.ports import Frame, Framing
from mappings.language import Table


def bodies(frames: Iterable[Frame]) -> tuple[bytes, ...]:
    return tuple(frame.body for frame in frames)


class BodyEncoder:
    """A table in one framing that gives the bodies of its frames."""

    def __init__(self, table: Table, framing: Framing) -> None:
        self._encoder = table.encoder(framing)

    def record(self, record: m.Record, extra: Mapping[str, Any] | None = None) -> tuple[bytes, ...]:
        return bodies(self._encoder.record(record, extra))

    def cue(
        self, name: str, record: m.Record | None, bindings: Mapping[str, Any] | None = None,
    ) -> tuple[bytes, ...]:
        return bodies(self._encoder.cue(name, record, bindings))
