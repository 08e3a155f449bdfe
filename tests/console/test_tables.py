"""Tables in the console: what is lost, what each event becomes, and a translation of anything lawful."""

from typing import Any

import pytest

from gateway.config import load_config
from gateway.loss_matrix import pair_losses, support_grid
from tests.support.console_client import ConsoleClient
from tests.support.dialect_tables import DIALECTS, dialect

DELTA = {"type": "block.delta", "block_id": "b", "message_id": "m", "kind": "text", "delta": "hello"}


async def test_the_grid_says_what_the_command_line_says(console: ConsoleClient) -> None:
    grid = await console.get("/losses")
    config = load_config(console.served.gateway.components.config.file)
    rows = support_grid(config).rows
    assert grid["dialects"] == rows[0][1:]
    for feature, *marks in rows[1:]:
        for name, mark in zip(grid["dialects"], marks, strict=True):
            cell = grid["cells"][name][feature]
            assert cell["mark"] == mark[0]
            assert cell["note"] or mark[0] != "~"
    pairs = [[pair["agent"], pair["client"], ", ".join(pair["lost"]) or "nothing"] for pair in grid["pairs"]]
    assert pairs == [row[:3] for row in pair_losses(config)[1:]]


@pytest.mark.parametrize("name", DIALECTS)
async def test_a_row_stands_where_it_is_said_to_stand(console: ConsoleClient, name: str) -> None:
    table = await console.get(f"/tables/{name}")
    lines = table["text"].splitlines()
    assert len(table["rows"]) > 10
    for row in table["rows"]:
        assert lines[row["line"] - 1].strip().startswith(f"{row['cue']}:"), row
        assert all(0 < frame["line"] <= len(lines) for frame in row["frames"]), "an alias stands where it is defined"
    named = {row["cue"] for row in table["rows"]}
    assert {cue for event in table["events"] for cue in (*event["rows"], *event["by_cues"])} <= named


async def test_an_event_alone_is_translated_within_a_lawful_turn(console: ConsoleClient) -> None:
    done = await console.call("POST", "/translate", {"event": DELTA})
    names = [record["name"] for record in done["records"]]
    assert names[0] == "session.created" and names[-1] == "turn.ended"
    assert [names[seq - 1] for seq in range(1, len(names) + 1) if seq not in done["added"]] == ["block.delta"]
    assert done["problems"] == []
    for name in DIALECTS:
        assert "hello" in "".join(frame["text"] for item in done["columns"][name] for frame in item["frames"]), name


@pytest.mark.parametrize("event", [
    {"type": "block.ended", "block_id": "b", "message_id": "m", "kind": "thinking", "text": "hm"},
    {"type": "tool.returned", "call_id": "c", "content": "x"},
    {"type": "tool.status", "call_id": "c", "status": "running"},
    {"type": "scope.opened", "parent": "root", "title": "kid"}, {"type": "session.updated", "title": "t"},
    {"type": "input.requested", "request_id": "r", "call_id": "c",
     "ask": {"kind": "permission", "call": {"call_id": "c", "name": "rm"}}},
    {"type": "input.requested", "request_id": "r", "ask": {"kind": "continuation", "turn": 1, "message": "on?"}},
    {"type": "turn.ended", "outcome": "failed", "stop_reason": "error", "fault": {"code": "internal", "message": "x"}},
    {"type": "session.created", "agent": "demo"}, {"type": "notice.posted", "topic": "t", "title": "n"},
], ids=lambda event: event["type"])
async def test_what_an_event_needs_is_added(console: ConsoleClient, event: dict[str, Any]) -> None:
    done = await console.call("POST", "/translate", {"events": [event]})
    assert done["problems"] == []
    assert event["type"] in [record["name"] for record in done["records"] if record["seq"] not in done["added"]]


async def test_an_event_that_cannot_come_is_told(console: ConsoleClient) -> None:
    done = await console.call("POST", "/translate", {"events": [DELTA, {"type": "turn.resumed"}]})
    assert done["problems"] == ["event 2 cannot come here: turn.resumed while the turn is running"]


@pytest.mark.parametrize("name", [name for name in DIALECTS if dialect(name).decoder])
async def test_frames_of_a_dialect_are_translated_into_every_other(console: ConsoleClient, name: str) -> None:
    session = await console.create()
    await console.talk(session, "hello everybody")
    page = await console.get(f"/sessions/{session}/frames?dialect={name}")
    texts = [frame["text"] for item in page["items"] for frame in item["frames"]]
    done = await console.call("POST", "/translate", {"dialect": name, "frame": "\n".join(texts)})
    for other in DIALECTS:
        shown = "".join(frame["text"] for item in done["columns"][other] for frame in item["frames"])
        assert "everybody" in shown, (name, other, done["problems"])


@pytest.mark.parametrize("body", [
    {}, {"event": {"type": "nothing"}}, {"event": {}}, {"events": [DELTA] * 201}, {"dialect": "nothing", "frame": "x"},
    {"dialect": DIALECTS[0]}, {"event": {**DELTA, "delta": 5}}, {"event": []},
])
async def test_a_wrong_translation_is_refused(console: ConsoleClient, body: Any) -> None:
    assert (await console.error("POST", "/translate", 400, body))["code"] == "invalid"


@pytest.mark.parametrize("frame", ["", "}{", "event: x", "42[", '["nothing"]', "\0\0", '{"type":"x"}'])
async def test_a_frame_that_is_none_is_told_and_breaks_nothing(console: ConsoleClient, frame: str) -> None:
    for name in DIALECTS:
        done = await console.call("POST", "/translate", {"dialect": name, "frame": frame})
        assert done["problems"]
    await console.error("GET", "/tables/nothing", 404)
