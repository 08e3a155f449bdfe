"""The base of the dialects' projectors: one step for each type of event, nothing held back."""

from collections.abc import Callable, Mapping
from typing import Any

import gateway.model as m
from gateway.ports import NO_FRAMES, Frames

Step = Callable[[m.Record, Any], Frames]
"""(record, its event) → the frames of the record."""


class ProjectorBase:
    """Gives each record to the step for its event; a type of event without a step has no frames.

    A projector sets `_steps`, or overrides `feed`. One that holds frames back overrides `flush` and `deadline`, too.
    """

    deadline: float | None = None
    _steps: Mapping[type[m.Event], Step] = {}

    def feed(self, record: m.Record) -> Frames:
        event = record.event
        step = self._steps.get(type(event))
        return NO_FRAMES if step is None else step(record, event)

    def flush(self, now: float) -> Frames:
        return NO_FRAMES
