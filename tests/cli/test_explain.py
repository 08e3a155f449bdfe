"""`dragoman check --explain` prints two columns: what goes out in a dialect, and what comes back."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import Result

from tests.support.dialect_tables import DIALECTS

Run = Callable[..., Result]


@pytest.mark.parametrize("name", DIALECTS)
def test_the_page_of_a_dialect_fits_the_terminal(name: str, dragoman: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "90")
    result = dragoman("check", "--explain", name)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 90
    assert lines[0].split() == [f"{name},", "version", *lines[0].split()[2:-2], "comes", "back"]
    assert {"turn.started", "turn.ended", "custom"} <= set(lines), "each event is a heading"


def test_one_event_is_both_its_directions(dragoman: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    lines = dragoman("check", "--explain", "aap", "block.delta").stdout.splitlines()
    assert [line for line in lines if line.startswith("block")] == [
        "block.delta.text", "block.delta.thinking", "block.delta.tool_use"]
    [text] = [line for line in lines if "text_delta" in line]
    assert text.split("   ", 1)[0] == "  text_delta: { delta: $delta }"
    assert text.endswith("~ block.delta.text")
    assert any(line.endswith("✗ a call is sent when it is complete") for line in lines), "the table's own comment"


def test_a_reason_not_to_read_is_quoted(dragoman: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("gateway.cli.check"), "WIDEST", 400)
    monkeypatch.setenv("COLUMNS", "400")
    printed = dragoman("check", "--explain", "aap", "turn.resumed").stdout
    assert "✗ not read as turn.resumed: the stream does not tell it from a new turn" in printed
    assert "it is read as turn.started" in printed


def test_an_event_that_cues_say_is_shown_with_its_cues(dragoman: Run) -> None:
    lines = dragoman("check", "--explain", "blade", "block.delta").stdout.splitlines()
    assert "  cues: patch.text, patch.thinking" in lines
    assert {"patch.text", "patch.thinking"} < set(lines)
    assert "patch.block" not in lines


def test_an_override_shows_in_what_goes_out(home: Path, dragoman: Run) -> None:
    (home / "my.yaml").write_text("frames: {block.delta.text: {text_delta: {delta: $drop, words: $delta}}}\n")
    (home / "config.yaml").write_text("dialects: {aap: }\nagents: {demo: {backend: demo}}\nmappings: {aap: my.yaml}\n")
    assert "text_delta: { words: $delta }" in dragoman("check", "--explain", "aap", "block.delta.text").stdout


@pytest.mark.parametrize(("words", "told"), [
    (("--explain", "app"), "there is no dialect 'app'; did you mean 'aap'?"),
    (("--explain", "zzzzz"), f"there is no dialect 'zzzzz'; there are: {', '.join(DIALECTS)}"),
    (("--explain", "aap", "turn.endet"), "aap has no event, row or cue 'turn.endet'; did you mean 'turn.ended'?"),
    (("--explain", "aap", "qqq"), "aap has no event, row or cue 'qqq'"),
    (("turn.ended",), "'turn.ended' needs --explain DIALECT before it"),
])
def test_wrong_names_get_a_suggestion(words: tuple[str, ...], told: str, dragoman: Run) -> None:
    result = dragoman("check", *words)
    assert (result.exit_code, result.stderr) == (2, told + "\n")
