"""A record is one readable line."""

import pytest

import gateway.model as m
from gateway.cli.record_format import MAX_VALUE_LENGTH, format_record
from gateway.logging import mask_secrets

AT = 1_700_000_000.25


def test_a_record_is_a_line() -> None:
    record = m.Record(seq=2, at=AT, session_id="sess_1", turn_id="turn_1", event=m.TurnStarted(command_id="cmd_1"))
    assert format_record(record) == "     2  22:13:20.250  turn.started                  command_id=cmd_1 turn=turn_1"


def test_the_variant_is_part_of_the_name() -> None:
    event = m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN, duration_ms=12)
    line = format_record(m.Record(seq=9, at=AT, session_id="sess_1", event=event))
    assert line.split() == ["9", "22:13:20.250", "turn.ended.completed", "outcome=completed", "stop_reason=end_turn",
                            "duration_ms=12"]


def test_a_sub_agents_scope_is_shown() -> None:
    event = m.BlockDelta(block_id="b", message_id="m", kind=m.BlockKind.TEXT, delta="two words")
    line = format_record(m.Record(seq=3, at=AT, session_id="sess_1", scope_id="scope_7", event=event))
    assert "[scope_7] block.delta.text" in line
    assert 'delta="two words"' in line


def test_secrets_are_masked() -> None:
    event = m.SessionCreated(agent="demo", settings=m.Settings(secrets={"openai": "s3cret"}))
    line = format_record(mask_secrets(m.Record(seq=1, at=AT, session_id="sess_1", event=event)))
    assert "s3cret" not in line
    assert '"openai":"***"' in line


@pytest.mark.parametrize("delta", ["\x1b[2J", "a\nb", "\x9b31m", "a b\u202e"])
def test_nothing_moves_the_cursor(delta: str) -> None:
    event = m.BlockDelta(block_id="b", message_id="m", kind=m.BlockKind.TEXT, delta=delta)
    assert format_record(m.Record(seq=3, at=AT, session_id="sess_1", event=event)).isprintable()


def test_what_is_long_is_shortened_and_says_so() -> None:
    event = m.BlockDelta(block_id="b", message_id="m", kind=m.BlockKind.TEXT, delta="x" * 1000)
    line = format_record(m.Record(seq=3, at=AT, session_id="sess_1", event=event))
    assert f"delta={'x' * MAX_VALUE_LENGTH}… (1000 characters)" in line
