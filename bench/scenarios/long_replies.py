"""The cost of one long reply in a dialect that repeats it: bytes and CPU per character, by the length of the reply."""

import importlib
import time
from collections.abc import Iterator

import gateway.model as m
from bench.measure import BenchFailure, figure
from bench.report import Row
from mappings.language import builtin_table

LENGTHS = {"1 kB": 1_000, "100 kB": 100_000, "1 MB": 1_000_000}
PACES = {
    "at once": 0.0, "a word every ms": 0.001, "a word every 20 ms": 0.02, "a word every 200 ms": 0.2,
    "a word every 2 s": 2.0,
}
DIALECT, WORD = "blade", "word "
"""The dialect whose patches carry the whole block so far, and the whole turn with it."""


def reply(length: int, pace: float) -> Iterator[m.Record]:
    """A turn of one text, with so much time between its words."""
    kind, words = m.BlockKind.TEXT, length // len(WORD)
    events: list[m.AnyEvent] = [
        m.SessionCreated(agent="demo"), m.InputAccepted(command_id="c", command=m.SendMessage(content="go")),
        m.TurnStarted(command_id="c"), m.MessageStarted(message_id="m"),
        m.BlockStarted(block_id="b", message_id="m", kind=kind),
        *(m.BlockDelta(block_id="b", message_id="m", kind=kind, delta=WORD) for _ in range(words)),
        m.BlockEnded(block_id="b", message_id="m", kind=kind, text=WORD * words), m.MessageEnded(message_id="m"),
        m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN),
    ]
    for seq, event in enumerate(events, 1):
        yield m.Record(seq=seq, at=1.7e9 + seq * pace, session_id="sess_bench", turn_id="turn_1", event=event)


def replies(bench: object) -> Iterator[Row]:
    its = importlib.import_module(f"adapters.{DIALECT}").DIALECT
    table = builtin_table(its)
    for pace_name, pace in PACES.items():
        for name, length in LENGTHS.items():
            records = list(reply(length, pace))
            outbound = its.projector(table, its.default_options)
            started, size = time.process_time(), 0
            for record in records:
                if outbound.deadline is not None and outbound.deadline <= record.at:
                    size += sum(len(frame.body) for frame in outbound.flush(record.at))
                size += sum(len(frame.body) for frame in outbound.feed(record))
            spent = time.process_time() - started
            if size < length:
                raise BenchFailure(f"a reply of {name} came to {size} bytes")
            yield Row(DIALECT, f"{name} {pace_name}, size", "bytes/char", {"dragoman": figure([size / length])})
            yield Row(DIALECT, f"{name} {pace_name}, CPU", "µs/char", {"dragoman": figure([spent * 1e6 / length])})
