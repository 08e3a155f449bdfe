"""Sees what the servers of a world take for stored, and holds the logs to it in the end."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from unittest.mock import patch

import gateway.model as m
from gateway.engine import SessionCommits
from gateway.storage.log.redis import RedisLog
from tests.prove.simulation.loop import current_process

COMMITTED, HOLD = SessionCommits.committed, RedisLog.hold


class Witness:
    """Every record that a server has announced as stored, and every token by which a server wrote a session."""

    def __init__(self) -> None:
        self._stored: dict[tuple[str, int], str] = {}
        self._last: dict[str, tuple[int, float]] = {}
        """By session: the last record that was stored, and when."""
        self._writers: dict[tuple[str, str], str] = {}
        self._broken: list[str] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        witness = self

        def committed(self: SessionCommits, records: Sequence[m.Record]) -> None:
            witness.saw_stored(records)
            COMMITTED(self, records)

        def hold(self: RedisLog, session_id: str, token: str, head: int) -> None:
            witness.saw_writer(session_id, token, self.redis.replica)
            HOLD(self, session_id, token, head)

        with patch.object(SessionCommits, "committed", committed), patch.object(RedisLog, "hold", hold):
            yield

    def saw_stored(self, records: Sequence[m.Record]) -> None:
        for record in records:
            place = record.session_id, record.seq
            if self._stored.setdefault(place, record.event_id) != record.event_id:
                self._broken.append(f"two records were stored as {record.seq} of {record.session_id}")
        if (process := current_process()) is not None:
            self._last[records[-1].session_id] = records[-1].seq, process.loop.now

    def heads_before(self, when: float) -> dict[str, int]:
        """The last record of each session to which nothing was added after this moment."""
        return {session: head for session, (head, at) in self._last.items() if at < when}

    def saw_writer(self, session_id: str, token: str, replica: str) -> None:
        process = current_process()
        if self._writers.setdefault((session_id, token), replica) != replica:
            name = process.name if process is not None else "?"
            self._broken.append(f"{name} writes {session_id} by the token {token}, which another server has")

    def verdict(self, logs: Mapping[str, Sequence[m.Record]]) -> list[str]:
        """What was broken, and what was stored and is not in the log in the end."""
        kept = {(session, record.seq): record.event_id for session, records in logs.items() for record in records}
        lost = [
            f"record {seq} of {session} was announced as stored, and is not in the log"
            for (session, seq), event_id in self._stored.items()
            if session in logs and kept.get((session, seq)) != event_id
        ]
        return [*self._broken, *lost]
