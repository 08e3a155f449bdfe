"""A listener of logs that remembers what it was told."""

from collections.abc import Container, Sequence

import gateway.model as m
from gateway.errors import GatewayError
from gateway.ports import NO_LISTENER, LogListener
from gateway.storage.log.redis import Covers


class CommitRecorder:
    """Listens to a log, remembers the last event of each session, and passes all on to another listener."""

    def __init__(self, listener: LogListener = NO_LISTENER) -> None:
        self._listener = listener
        self.last: dict[str, m.Event] = {}
        self.records: list[m.Record] = []
        self.errors: list[GatewayError] = []
        self.lost: list[str] = []
        self.resets = 0
        self.changes = 0

    @property
    def seqs(self) -> list[int]:
        return [record.seq for record in self.records]

    def committed(self, records: Sequence[m.Record]) -> None:
        self.records.extend(records)
        self.last |= {record.session_id: record.event for record in records}
        self._listener.committed(records)

    def failed(self, error: GatewayError, sessions: Container[str] | None = None) -> None:
        self.errors.append(error)
        self._listener.failed(error, sessions)

    def lease_lost(self, session_id: str) -> None:
        self.lost.append(session_id)

    def data_lost(self, covers: Covers) -> None:
        self.resets += 1

    def primary_changed(self, covers: Covers) -> None:
        self.changes += 1
