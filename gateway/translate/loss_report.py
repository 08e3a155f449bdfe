"""The losses of a translation by feature, as the tables declare them, and notes on what was cut or unreadable."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import gateway.model as m
from mappings.language import FEATURES, SupportLevel, Table, feature_of

LOST_LEVELS = (SupportLevel.DROPPED, SupportLevel.REJECTED)


class LossCounter:
    """Counts the losses of one translation; canonical records lose nothing, on either side."""

    def __init__(self, source: Table | None, target: Table | None) -> None:
        self._source, self._target = source, target
        self._counts: Counter[str] = Counter()

    def count(self, record: m.Record, frames: int) -> None:
        """The target has so many frames for this record."""
        if self._target is None or type(record.event) is m.BlockDelta:
            return
        feature = feature_of(record.event)
        if feature is None or (
            isinstance(record.event, m.TurnEnded) and record.event.stop_reason is m.StopReason.END_TURN
        ):
            return  # every dialect has an end of a turn
        level = self._target.support[feature]
        if (level in LOST_LEVELS and not frames) or level in (SupportLevel.PARTIAL, SupportLevel.FALLBACK):
            self._counts[feature] += 1

    @property
    def is_lossy(self) -> bool:
        """Whether anything was lost completely."""
        return any(self._level(feature) in LOST_LEVELS for feature in self._counts)

    def lines(self) -> Iterator[str]:
        """Lines such as `3 × tool_output: dropped`, losses before changes of form; then what the source never had."""
        for feature in sorted(
            self._counts, key=lambda name: (self._level(name) not in LOST_LEVELS, [*FEATURES].index(name))
        ):
            assert self._target is not None, "only a dialect loses anything"
            note = self._target.notes.get(feature)
            yield f"{self._counts[feature]} × {feature}: {self._level(feature)}{f' ({note})' if note else ''}"
        if self._source is not None:
            never_sent = [feature for feature in FEATURES if self._source.client_support[feature] in LOST_LEVELS]
            if never_sent:
                yield f"{self._source.dialect} itself never says: {', '.join(never_sent)}"

    def _level(self, feature: str) -> SupportLevel:
        assert self._target is not None, "only a dialect loses anything"
        return self._target.support[feature]


@dataclass
class TranslationNotes:
    """Notes that are collected during a translation and reported at its end."""

    records: int = 0
    torn: int = 0
    """Sessions whose last turn was cut by the end of the recording."""
    is_cut: bool = False
    """Whether the last item of the recording was cut."""
    unread: Counter[str] = field(default_factory=Counter)
    """Frames of clients that could not be read, by name."""

    def lines(self) -> Iterator[str]:
        if self.is_cut:
            yield "the recording ends in the middle of a line or an event; that was left out"
        if self.torn:
            turns = "a turn" if self.torn == 1 else f"{self.torn} turns"
            yield f"the recording ends in the middle of {turns}; what was open is closed"
        for name, count in self.unread.items():
            yield f"{count} × {name} of the client could not be read; left out"
        if not self.records:
            yield "the recording contains no events"
