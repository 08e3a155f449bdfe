"""Commands of a request are found in the log again, and a long session is not read again for each request."""

from collections.abc import Sequence

import pytest

import gateway.model as m
from gateway.engine.known_requests import KEY_LENGTH, KEYED, RANDOM_LENGTH, KnownRequests, request_of
from gateway.ids import make_mint
from gateway.storage.log import MemoryLog

HELLO = m.SendMessage(content="hello")
END = m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN)


class CountingLog(MemoryLog):
    """Counts the records that were read."""

    def __init__(self) -> None:
        super().__init__()
        self.read_records = 0

    async def read_without_deltas(
        self, session_id: str, after: int = 0, upto: int | None = None,
    ) -> Sequence[m.Record]:
        found = await super().read_without_deltas(session_id, after, upto)
        self.read_records += len(found)
        return found

    def add(self, *events: m.AnyEvent, turn: str | None = None) -> None:
        for event in events:
            seq = len(self._records.get("s", ())) + 1
            self.append(m.Record(seq=seq, at=1.0, session_id="s", turn_id=turn, event=event))

    def add_turn(self, request: str, turn: str) -> None:
        command_id = make_mint(request)("cmd")
        self.add(m.InputAccepted(command_id=command_id, command=HELLO), m.TurnStarted(command_id=command_id), turn=turn)
        self.add(END, turn=turn)


def keyed(number: int) -> str:
    return KEYED + f"{number:0{KEY_LENGTH}x}"


@pytest.fixture
def log() -> CountingLog:
    made = CountingLog()
    made.add(m.SessionCreated(agent="a", owner="ann"))
    return made


@pytest.mark.parametrize("request_id", [keyed(7), "0123456789abcdef"[:RANDOM_LENGTH]])
def test_a_command_names_its_request(request_id: str) -> None:
    mint = make_mint(request_id)
    assert {request_of(mint("cmd")) for _ in range(40)} == {request_id}


async def test_the_receipt_is_that_of_the_request_alone(log: CountingLog) -> None:
    known = KnownRequests(log)
    assert await known.receipt("s", keyed(1)) is None
    for number in (1, 2, 3):
        log.add_turn(keyed(number), f"turn_{number}")
    receipt = await known.receipt("s", keyed(2))
    assert receipt is not None and (receipt.turn_id, receipt.after, receipt.begun) == ("turn_2", 5, True)
    assert [record.seq for record in receipt.records] == [5]
    assert await known.receipt("s", keyed(4)) is None


async def test_answers_that_let_a_turn_go_on_have_begun_it(log: CountingLog) -> None:
    stem = keyed(9)
    answer = m.AnswerQuestion(request_id="q", selections={})
    log.add(m.InputAccepted(command_id=make_mint(stem)("cmd"), command=answer), turn="turn_1")
    known = KnownRequests(log)
    waiting = await known.receipt("s", stem)
    log.add(m.TurnResumed(), turn="turn_1")
    resumed = await known.receipt("s", stem)
    assert waiting is not None and resumed is not None
    assert (waiting.begun, resumed.begun, resumed.after) == (False, True, 2)


async def test_a_request_after_a_thousand_turns_reads_no_more_than_the_one_after_the_first(log: CountingLog) -> None:
    known, reads = KnownRequests(log), list[int]()
    for number in range(1000):
        before = log.read_records
        assert await known.receipt("s", keyed(number)) is None
        reads.append(log.read_records - before)
        log.add_turn(keyed(number), f"turn_{number}")
    assert reads == [1, *[3] * 999]
