"""The report has a line per turn, does not grow for ever, and a full disk harms nobody."""

from pathlib import Path

import orjson

from gateway.backends.shadow import ShadowReport


def lines(path: Path) -> list[dict[str, object]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


async def tell(reporter: ShadowReport, turn_id: str, verdict: str = "same", **more: object) -> None:
    await reporter.write(session_id="s", turn_id=turn_id, agent="demo", verdict=verdict, **more)  # type: ignore[arg-type]


async def test_a_line_per_turn(tmp_path: Path) -> None:
    reporter = ShadowReport(tmp_path / "below" / "shadow.jsonl", clock=lambda: 7.0)
    await tell(reporter, "t1")
    await tell(reporter, "t2", "differs", differences=[{"at": 0, "first": ["text"], "second": []}])
    await tell(reporter, "t3", "failed", reason="slow")
    about = {"at": 7.0, "session_id": "s", "agent": "demo"}
    assert lines(reporter.path) == [
        {**about, "turn_id": "t1", "verdict": "same"},
        {**about, "turn_id": "t2", "verdict": "differs", "differences": [{"at": 0, "first": ["text"], "second": []}]},
        {**about, "turn_id": "t3", "verdict": "failed", "reason": "slow"},
    ]


async def test_a_report_that_has_grown_makes_room(tmp_path: Path) -> None:
    reporter = ShadowReport(tmp_path / "shadow.jsonl", largest=300)
    for number in range(10):
        await tell(reporter, f"t{number}")
    kept = [*lines(tmp_path / "shadow.old.jsonl"), *lines(reporter.path)]
    assert [line["turn_id"] for line in kept] == [f"t{number}" for number in range(10 - len(kept), 10)]
    assert max(len((tmp_path / name).read_bytes()) for name in ("shadow.old.jsonl", "shadow.jsonl")) <= 300


async def test_a_place_that_cannot_be_written_harms_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    await tell(ShadowReport(tmp_path / "file" / "shadow.jsonl"), "t1")
    assert (tmp_path / "file").read_text() == "in the way"
