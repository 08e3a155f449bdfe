"""A few lines a minute of each event, and how many there were besides."""

import asyncio
from typing import Any

from gateway.logging import SampledLogger


class Log:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, Any]]] = []

    def info(self, event: str, **fields: Any) -> None:
        self.lines.append(("info", event, fields))

    def warning(self, event: str, **fields: Any) -> None:
        self.lines.append(("warning", event, fields))


async def test_each_event_has_its_lines_and_what_is_left_out_is_counted() -> None:
    log = Log()
    sampled = SampledLogger(log, most=2)
    for number in range(5):
        sampled.info("a", number=number)
    sampled.warning("b")
    await asyncio.sleep(60)
    sampled.info("a", number=5)
    await asyncio.sleep(60)
    sampled.info("a", number=6)
    assert log.lines == [
        ("info", "a", {"number": 0}), ("info", "a", {"number": 1}), ("warning", "b", {}),
        ("info", "a", {"number": 5, "unwritten": 3}), ("info", "a", {"number": 6}),
    ]
