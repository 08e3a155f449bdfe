"""With a rule, each day has a file of its own, and the files of old days are deleted; no line is lost before."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.audit import append_line
from gateway.config import RetentionRule
from gateway.resources import LogRetention
from tests.support.gateway_server import serving, until

DAY = 86_400.0


class Logs:
    """Two logs, to which the test writes a line with the number of each day."""

    def __init__(self, folder: Path, rule: RetentionRule) -> None:
        self.day = 0
        self.first = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
        self.folder, self.names = folder, ("audit.jsonl", "shadow.jsonl")
        self.retention = LogRetention(
            lambda: [folder / name for name in self.names], lambda: rule, lambda: self.first + self.day * DAY)

    async def live(self, days: int) -> None:
        """Write a line a day, and let the server look twice."""
        for _ in range(days):
            self.day += 1
            for name in self.names:
                append_line(self.folder / name, f"{self.day}\n".encode())
            await self.retention.delete_expired()
            await self.retention.delete_expired()

    def lines(self, name: str) -> dict[str, list[str]]:
        return {path.name.removeprefix(name): path.read_text().split() for path in self.folder.glob(f"{name}*")}


@pytest.mark.parametrize("rule", [RetentionRule(days=2), RetentionRule(newest=3)])
async def test_the_files_of_old_days_are_deleted(tmp_path: Path, rule: RetentionRule) -> None:
    logs = Logs(tmp_path, rule)
    await logs.live(5)
    for name in logs.names:
        assert logs.lines(name) == {".2026-01-04": ["3"], ".2026-01-05": ["4"], ".2026-01-06": ["5"]}


async def test_lines_of_a_day_that_has_its_file_wait_for_the_next_day(tmp_path: Path) -> None:
    logs = Logs(tmp_path, RetentionRule(days=9))
    await logs.live(1)
    append_line(tmp_path / "audit.jsonl", b"evening\n")
    await logs.retention.delete_expired()
    assert logs.lines("audit.jsonl") == {".2026-01-02": ["1"], "": ["evening"]}
    await logs.live(1)
    assert logs.lines("audit.jsonl") == {".2026-01-02": ["1"], ".2026-01-03": ["evening", "2"]}


async def test_other_files_and_logs_without_a_rule_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl.backup").write_text("mine")
    logs = Logs(tmp_path, RetentionRule())
    await logs.live(3)
    assert logs.lines("audit.jsonl") == {"": ["1", "2", "3"], ".backup": ["mine"]}
    logs = Logs(tmp_path, RetentionRule(newest=0))
    await logs.live(1)
    assert logs.lines("audit.jsonl") == {".backup": ["mine"]}


async def test_a_server_looks_after_its_logs(tmp_path: Path) -> None:
    append_line(tmp_path / "data" / "audit.jsonl", b"{}\n")
    async with serving(tmp_path, retention={"logs": {"days": 1}}):
        await until(lambda: [*(tmp_path / "data").glob("audit.jsonl.*")])
