"""Small files laid over a table."""

from collections.abc import Callable
from pathlib import Path

import pytest

import gateway.model as m
from adapters import load_dialect
from gateway.yaml_positions import Problems
from mappings.language import SupportLevel, Table, Vocabulary, builtin_path, load_table
from tests.support.frames import BodyEncoder

MakeRecord = Callable[..., m.Record]
Lay = Callable[..., Table]
TEXT = m.BlockDelta(block_id="b", message_id="m", kind=m.BlockKind.TEXT, delta="Hi")
END = m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.INTERRUPTED)


@pytest.fixture
def lay(tmp_path: Path, aap_words: Vocabulary) -> Lay:
    def over(*texts: str) -> Table:
        files = [tmp_path / f"over{number}.yaml" for number, _ in enumerate(texts)]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text)
        return load_table(builtin_path("aap"), aap_words, files)

    return over


def test_a_field_is_renamed(lay: Lay, record: MakeRecord) -> None:
    table = lay("frames:\n  block.delta.text:\n    text_delta: { delta: $drop, text: $delta }\n")
    assert BodyEncoder(table, "sse").record(record(TEXT)) == (b'event: text_delta\ndata: {"text":"Hi"}\n\n',)


@pytest.mark.parametrize("cue", ["chat.completed", "chat.failed", "chat.interrupted"])
@pytest.mark.parametrize("frames", ["[ chat:end: { status: over } ]", "{ chat:end: { status: over } }", "[]"])
def test_a_cue_of_an_earlier_release_has_a_new_name(tmp_path: Path, cue: str, frames: str) -> None:
    file = tmp_path / "over.yaml"
    file.write_text(f"frames: {{ {cue}: {frames} }}")
    with pytest.raises(Problems) as raised:
        load_table(builtin_path("blade"), Vocabulary.of(load_dialect("blade")), [file])
    assert f"nobody raises a cue '{cue}'; it is 'chat.ended' now, see docs/upgrading.md" in str(raised.value)
    upgrading = Path(__file__).parents[2] / "docs" / "upgrading.md"
    assert f"`{cue}`" in upgrading.read_text()


def test_a_section_of_an_earlier_release_has_a_new_name(lay: Lay) -> None:
    """The old name works with a warning; a mistake in the section is reported at its own line."""
    with pytest.warns(FutureWarning, match=r"over0\.yaml:1:1: the section 'heard' is called 'client_support' now"):
        table = lay("heard:\n  titles: full\n")
    assert table.client_support["titles"] is SupportLevel.FULL
    with pytest.warns(FutureWarning), pytest.raises(Problems, match=r"over0\.yaml:2:11: 'much' is no level"):
        lay("heard:\n  titles: much\n")
    with pytest.raises(Problems, match=r"over0\.yaml:1:1: 'heard' is the old name of 'client_support', and both"):
        lay("heard: { titles: full }\nclient_support: { titles: full }\n")


def test_a_field_is_added(lay: Lay, record: MakeRecord) -> None:
    table = lay("frames: { turn.ended: { turn_stop: { ms: $duration_ms } } }")
    assert BodyEncoder(table, "sse").record(record(END)) == (
        b'event: turn_stop\ndata: {"stopReason":"error","ms":0}\n\n',)


def test_a_list_takes_the_place_of_all_frames(lay: Lay, record: MakeRecord) -> None:
    table = lay("frames: { turn.started: [ begin: { turn: $turn_id } ], turn.ended: [] }")
    assert BodyEncoder(table, "sse").record(record(m.TurnStarted(command_id="c"))) == (
        b'event: begin\ndata: {"turn":"turn_1"}\n\n',)
    assert table.silent(END)


def test_one_frame_of_several_is_dropped(lay: Lay) -> None:
    table = lay("frames: { turn.waiting: { turn_start: $drop, turn_stop: { why: waiting } } }")
    assert BodyEncoder(table, "sse").cue("turn.waiting", None) == (
        b'event: turn_stop\ndata: {"stopReason":"tool_use","why":"waiting"}\n\n',)


def test_the_rest_of_the_table_can_be_changed_too(lay: Lay) -> None:
    table = lay("""
enums: { stop_reason: { interrupted: end_turn } }
objects: { created: { sessionId: $drop, id: $session_id } }
errors: { conflict: { status: 423, body: { error: $message, code: $code } } }
support: { stop_reasons: fallback }
""")
    assert table.word("stop_reason", m.StopReason.INTERRUPTED) == "end_turn"
    assert table.word("stop_reason", m.StopReason.TIMEOUT) == "error"
    assert table.object("created", session_id="s") == {"id": "s"}
    assert table.error(m.FaultCode.CONFLICT, message="busy") == (423, {"error": "busy", "code": "conflict"})
    assert table.support["stop_reasons"] is SupportLevel.FALLBACK


def test_overrides_are_laid_in_order(lay: Lay) -> None:
    assert lay('objects: { meta: { version: 4 } }', 'objects: { meta: { version: 5 } }').object(
        "meta", agents=[]) == {"version": 5, "agents": []}


def test_an_empty_override_changes_nothing(lay: Lay, record: MakeRecord) -> None:
    assert BodyEncoder(lay("# nothing yet\n"), "sse").record(record(TEXT)) == (
        b'event: text_delta\ndata: {"delta":"Hi"}\n\n',)


def test_a_problem_names_the_file_it_is_in(lay: Lay, tmp_path: Path) -> None:
    with pytest.raises(Problems) as told:
        lay("frames:\n  turn.ended:\n    turn_stop: { ms: $duration }\n", "support: { text: some }\n")
    first, second = map(str, told.value.problems)
    assert first.startswith(f"{tmp_path}/over0.yaml:3:22: there is no name '$duration' in turn.ended")
    assert second.startswith(f"{tmp_path}/over1.yaml:1:18: 'some' is no level of support")
