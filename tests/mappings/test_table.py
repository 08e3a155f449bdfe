"""Objects, refusals, words and commands of a compiled table."""

import pytest

import gateway.model as m
from mappings.language import SupportLevel, Table, UnknownWord


def test_it_knows_whose_it_is(plain: Table) -> None:
    assert (plain.dialect, plain.spec) == ("plain", "1")
    assert plain.support["subagents"] is SupportLevel.DROPPED


def test_objects_are_plain_values(plain: Table) -> None:
    body = (m.TextPart(text="x"),)
    assert plain.object("card", title=m.StopReason.ERROR, at=0.0, body=body) == {
        "title": "error", "when": "1970-01-01T00:00:00.000Z", "body": [{"t": "x"}], "note": "error"}
    assert plain.object("card", title=None, at=None, body=None) == {"title": None, "when": None, "body": None}
    assert plain.object("reason", reason=m.StopReason.REFUSAL) == "stopped"


def test_an_object_needs_its_names(plain: Table) -> None:
    with pytest.raises(KeyError, match="at"):
        plain.object("card", title="T", body="")


def test_a_refusal_has_the_tables_status_or_the_faults(plain: Table) -> None:
    assert plain.error(m.FaultCode.NOT_FOUND, message="no such card") == (410, {"gone": "no such card"})
    assert plain.error(m.FaultCode.CONFLICT, message="busy", details={"a": 1}) == (
        409, {"code": "conflict", "status": 409, "message": "busy", "details": {"a": 1}})


def test_a_second_map_of_one_enum(plain: Table) -> None:
    assert plain.word("outcome", m.Outcome.FAILED) == "ko"
    assert plain.word("outcome@long", m.Outcome.FAILED) == "something went wrong"
    assert plain.word("stop_reason", "timeout") == "stopped"


def test_a_frame_has_a_name_by_its_cue(aap: Table) -> None:
    assert (aap.frame_name("turn.ended"), aap.frame_name("block.delta.text")) == ("turn_stop", "text_delta")


def test_a_map_is_read_back(plain: Table, aap: Table) -> None:
    assert plain.meanings("outcome", m.Outcome)["ko"] is m.Outcome.FAILED
    assert aap.meanings("stop_reason", m.StopReason)["tool_use"] is m.StopReason.TOOL_USE, "its namesake"
    assert aap.meanings("stop_reason", m.StopReason)["error"] is m.StopReason.ERROR, (
        "its namesake, though not the first"
    )
    assert aap.meanings("stop_reason", m.StopReason, m.StopReason.TIMEOUT)["error"] is m.StopReason.TIMEOUT, (
        "the preferred"
    )
    shared = next(reason for reason in m.StopReason if plain.word("stop_reason", reason) == "stopped")
    assert plain.meanings("stop_reason", m.StopReason)["stopped"] is shared, "the first"


def test_commands_are_made_field_by_field(plain: Table) -> None:
    assert plain.command("say", words="Hi") == m.SendMessage(content="Hi", headless=True)
    assert plain.command("decide", id="r", answer="yes", why=None) == m.DecidePermission(request_id="r", granted=True)
    assert plain.command("decide", id="r", answer="no", why="late") == m.DecidePermission(
        request_id="r", granted=False, reason="late")


def test_a_word_nobody_can_read(plain: Table) -> None:
    with pytest.raises(UnknownWord, match="'perhaps' is not one of yes, no"):
        plain.command("decide", id="r", answer="perhaps", why=None)


def test_silence_is_known(plain: Table) -> None:
    assert plain.silent(m.TurnStarted(command_id="c"))
