"""A table in words says of every row what goes out, what comes back, and what is lost."""

from functools import cache
from pathlib import Path

import pytest

import gateway.model as m
from mappings.language import ExplainedCue, Explanation, Loss, Vocabulary, load_table
from mappings.language.explanation import spell
from tests.support.dialect_tables import DIALECTS, dialect, table


@cache
def explained(name: str) -> Explanation:
    return table(name).explanation(*dialect(name).framings)


def row(explanation: Explanation, cue: str) -> ExplainedCue:
    rows = [row for event in explanation.events for row in event.rows]
    return next(row for row in (*rows, *explanation.cues) if row.cue == cue)


@pytest.mark.parametrize("name", DIALECTS)
def test_every_event_and_every_row_is_explained(name: str) -> None:
    explanation, frames = explained(name), table(name)._draft.frames
    assert [event.name for event in explanation.events] == [event.name for event in m.EVENTS]
    rows = [row for event in explanation.events for row in event.rows] + list(explanation.cues)
    assert sorted(row.cue for row in rows) == sorted(frames)
    for one in rows:
        assert [frame.out.partition(":")[0] for frame in one.frames] == [
            "nothing" if frame.read_only else frame.wire.partition(":")[0] for frame in frames[one.cue]]


@pytest.mark.parametrize("name", DIALECTS)
def test_a_frame_that_is_not_read_says_why(name: str) -> None:
    for cue, frames in table(name)._draft.frames.items():
        for frame, shown in zip(frames, row(explained(name), cue).frames, strict=True):
            if frame.write_only:
                assert shown.loss is Loss.ALL
                assert shown.back[0] == f"not read as {cue}: {frame.write_only}"
            elif frame.read_only:
                assert shown.back[:2] == (f"{cue}, from {frame.wire}: {spell(frame.body)}", f"of: {frame.read_only}")
            else:
                assert shown.loss is not Loss.ALL
                assert shown.back[0] == cue


def test_what_is_lost_is_named() -> None:
    [ended] = row(explained("aap"), "turn.ended").frames
    assert ended.loss is Loss.PART
    assert ended.back == (
        "turn.ended", "$stop_reason: a text, must be there", "without outcome, fault, result, usage, duration_ms",
        "needs_input read as tool_use", "max_steps, interrupted, timeout read as error",
        "read as turn.suspended where stopReason is tool_use",
    )


def test_nothing_is_lost_of_a_row_that_comes_back_whole() -> None:
    [frame] = row(explained("aap"), "whole.text").frames
    assert (frame.out, frame.loss) == ("text: { text: $text }", Loss.NONE)


def test_a_row_that_says_nothing_quotes_its_comment_or_the_note_of_its_feature() -> None:
    aap = explained("aap")
    assert row(aap, "block.delta.tool_use").note == "a call is sent when it is complete"
    assert row(aap, "input.accepted").note.startswith("The ask of a tool call was sent with the call itself."), "above"
    assert row(aap, "scope.opened").note.startswith("subagents: "), "a note"
    assert row(aap, "tool.status").note == ""


def test_a_comment_is_not_found_in_a_text(tmp_path: Path, plain_words: Vocabulary, plain_path: Path) -> None:
    file = tmp_path / "over.yaml"
    file.write_text('frames:\n  # above\n  custom: [ a: { b: "half # of it" } ]\n  notice.posted: []   # beside\n')
    over = load_table(plain_path, plain_words, [file]).explanation("json")
    assert row(over, "custom").note == "above"
    assert row(over, "notice.posted").note == "beside"


def test_one_name_is_an_event_a_row_or_a_cue() -> None:
    aap = explained("aap")
    assert [one.cue for event in aap.about("block.delta").events for one in event.rows] == [
        "block.delta.text", "block.delta.thinking", "block.delta.tool_use"]
    assert [one.cue for event in aap.about("block.delta.text").events for one in event.rows] == ["block.delta.text"]
    assert [one.cue for one in aap.about("whole.text").cues] == ["whole.text"]
    assert aap.about("nothing").events == ()


def test_an_event_that_cues_say_names_them() -> None:
    blade = explained("blade").about("block.delta")
    assert blade.events[0].by_cues == ("patch.text", "patch.thinking")
    assert [one.cue for one in blade.cues] == ["patch.text", "patch.thinking"]


def test_further_spellings_are_shown() -> None:
    shown = [line for event in explained("zenflux").events for one in event.rows for frame in one.frames
             for line in frame.back] + [line for one in explained("zenflux").cues for frame in one.frames
                                        for line in frame.back]
    assert any(line.startswith("also read: ") for line in shown)
