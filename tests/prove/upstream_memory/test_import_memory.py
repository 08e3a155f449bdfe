"""How much memory an import takes at its peak, against the peak for a tenth as many conversations, in one run."""

import os
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import gateway.model as m
from gateway.migration import Destination, Importer, ImportLine, ImportOutcome, Origin, open_file_store
from gateway.ports import PastItem, PastSession, PastTurn, RemoteSession
from gateway.storage import UNSEALED, create_database

RATIO = 1.5
"""Peak for ten times as many to peak; what is held would make it ten."""
RESIDENT_RATIO = 1.2
"""Resident memory at the end to that after a tenth; it holds what the process has loaded as well."""
PAGE, LITTLE, MUCH, MANY = 100, 500, 5000, 100_000
MB = 1_000_000


class GeneratedSessions:
    """A server with so many conversations, of which none exists before it is asked for."""

    def __init__(self, number: int) -> None:
        self._number = number

    async def page(self, name: str | None) -> tuple[Sequence[RemoteSession], str | None]:
        first = int(name or 0)
        last = min(first + PAGE, self._number)
        listed = [RemoteSession(session_id=f"conv_{one}", updated_at=float(one)) for one in range(first, last)]
        return listed, str(last) if last < self._number else None

    async def read(self, session_id: str) -> PastSession:
        said = m.SendMessage(content=f"a question of {session_id} " * 20)
        return PastSession(
            session=RemoteSession(session_id=session_id, updated_at=float(session_id.rpartition("_")[2])),
            turns=[PastTurn(turn_id=f"turn_{session_id}_{number}", items=[PastItem(said)]) for number in range(3)],
        )

    async def close(self) -> None:
        """Nothing is open."""


async def peak(folder: Path, number: int) -> int:
    folder.mkdir()  # noqa: ASYNC240  # nothing else runs yet
    create_database(folder / "dragoman.db")
    lines = 0

    async def count(line: ImportLine) -> None:
        nonlocal lines
        lines += 1

    tracemalloc.start()
    try:
        with open_file_store(folder / "dragoman.db", UNSEALED) as store:
            importer = Importer(
                GeneratedSessions(number), store, Origin(dialect="generated", url="http://old"),
                Destination(agent="demo"), lambda: 1e9, report=count,
            )
            await importer.run()
        assert importer.counts[ImportOutcome.IMPORTED] == number
        assert lines == 2 * number, "the list is read twice, as nothing may be missed"
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def test_a_hundred_thousand_conversations_in_one_run(tmp_path: Path) -> None:
    """The memory of the process after a tenth of them, and after all, when the list was read again."""
    create_database(tmp_path / "dragoman.db")
    sizes = dict[int, int]()
    lines = 0

    async def measure(line: ImportLine) -> None:
        nonlocal lines
        lines += 1
        if lines in (MANY // 10, MANY, 2 * MANY):
            sizes[lines] = resident_bytes()

    with open_file_store(tmp_path / "dragoman.db", UNSEALED) as store:
        await Importer(
            GeneratedSessions(MANY), store, Origin(dialect="generated", url="http://old"), Destination(agent="demo"),
            lambda: 1e9, report=measure,
        ).run()
    tenth, first_pass, end = sizes.values()
    print(f"{MANY:,} conversations: {tenth / MB:.1f} MB after a tenth, {first_pass / MB:.1f} MB after all, "
          f"{end / MB:.1f} MB at the end")
    assert end / tenth < RESIDENT_RATIO


async def test_ten_times_as_many_conversations(tmp_path: Path) -> None:
    await peak(tmp_path / "first", PAGE)  # what is loaded once is not counted
    little, much = await peak(tmp_path / "little", LITTLE), await peak(tmp_path / "much", MUCH)
    print(f"{LITTLE:,} conversations: {little / MB:.2f} MB at the peak, {MUCH:,}: {much / MB:.2f} MB")
    assert much / little < RATIO
