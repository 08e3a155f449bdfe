"""What a translation cannot carry: counted by feature, as the tables declare it, and told with their notes."""

from collections import Counter
from collections.abc import Iterator

from gateway.model import BlockDelta, Record, StopReason, TurnEnded
from mappings.language import FEATURES, Level, Table, feature_of

LOST = (Level.DROPPED, Level.REJECTED)


class Losses:
    """The losses of one translation; records of the house itself lose nothing, on either side."""

    def __init__(self, source: Table | None, target: Table | None) -> None:
        self._source, self._target = source, target
        self._counts: Counter[str] = Counter()

    def told(self, record: Record, frames: int) -> None:
        """The target had so many frames for this record."""
        if self._target is None or type(record.event) is BlockDelta:
            return
        feature = feature_of(record.event)
        if feature is None or (isinstance(record.event, TurnEnded) and record.event.stop_reason is StopReason.END_TURN):
            return  # the plain end of a turn is an end in every dialect
        level = self._target.support[feature]
        if (level in LOST and not frames) or level in (Level.PARTIAL, Level.FALLBACK):
            self._counts[feature] += 1

    @property
    def is_lossy(self) -> bool:
        """Whether anything did not arrive at all."""
        return any(self._level(feature) in LOST for feature in self._counts)

    def lines(self) -> Iterator[str]:
        """`3 × tool_output: dropped`, what is lost before what only looks different; then what never was there."""
        for feature in sorted(self._counts, key=lambda name: (self._level(name) not in LOST, [*FEATURES].index(name))):
            assert self._target is not None, "only a dialect loses anything"
            note = self._target.notes.get(feature)
            yield f"{self._counts[feature]} × {feature}: {self._level(feature)}{f' ({note})' if note else ''}"
        if self._source is not None:
            unsaid = [feature for feature in FEATURES if self._source.heard[feature] in LOST]
            if unsaid:
                yield f"{self._source.dialect} itself never says: {', '.join(unsaid)}"

    def _level(self, feature: str) -> Level:
        assert self._target is not None, "only a dialect loses anything"
        return self._target.support[feature]
