"""What is the memory log's alone: it is safe at once, and it remembers a bounded number of places."""

import gateway.model as m
from gateway.storage.log import MemoryLog
from tests.support.storage.commit_recorder import CommitRecorder
from tests.support.storage.event_logs import created


async def test_what_was_taken_is_safe_and_told_at_once() -> None:
    log, recorder = MemoryLog(), CommitRecorder()
    log.attach(recorder)
    log.append(created("s"))
    assert recorder.records == [created("s")]
    await log.wait_stored("s", 99)


async def test_the_oldest_places_are_forgotten_first() -> None:
    log = MemoryLog(most_places=2)
    for seq, turn in enumerate(("a", "b", "c"), 1):
        log.append(m.Record(seq=seq, at=1.0, session_id="s", turn_id=turn, event=m.TurnStarted(command_id="c")))
    assert [await log.session_of(word) for word in ("a", "b", "c", "d")] == [None, "s", "s", None]
