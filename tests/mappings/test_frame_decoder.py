"""Frames of other people's servers: what tells them apart, what must be in them, and what is passed over."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from mappings.language import FEATURES, FrameDecoder, Table, Vocabulary, load_table
from mappings.language.frame_decoder import UnreadableFrame

CUES = {"opened": ("block", "call"), "said": ("index", "text", "topic"), "ended": ("why",), "paused": ("why", "data")}
TYPES = "types: { index: int!, text: text!, topic: text?, data: object }\n"
HEAD = """
dialect: small
spec: "1"
enums:
  stop_reason: { end_turn: done, refusal: done, "*": stopped }
  tool_origin: { provider: theirs, "*": ours }
meanings: { stop_reason: { done: end_turn, stopped: error } }
TYPESnames: [ data.kind ]
envelopes: { default: { event: $wire, data: $body } }
events: { custom: [ opened, said, ended, paused ], EVENTS }
errors: { "*": { body: $message } }
support: { SUPPORT }
frames:
""".replace("TYPES", TYPES)
TWO_ENVELOPES = HEAD.replace("default: {", "inner: { event: part, data: { part: $wire, inner: $body } }, default: {")
FRAMES = """
  opened:
    - open: { block: { type: $call.origin | tool_origin, name: $call.name, input: {} } }
      known_by: [ block.type ]
  said:
    - say: { index: $index, text: $text, topic: $topic }
      also:
        - say: { text: { words: $text }, message: $text }
          of: an older server
        - speak: { index: $index, text: $text }
          of: a younger server
  ended:  [ end: { state: over, why: $why | stop_reason } ]
  paused: [ end: { state: paused, data: $data, why: $why | stop_reason } ]
"""


def table(tmp_path: Path, frames: str = FRAMES) -> Table:
    return write_table(tmp_path, HEAD if frames is FRAMES else HEAD.replace(TYPES, ""), frames)


def write_table(tmp_path: Path, head: str, frames: str) -> Table:
    events = ", ".join(f"{event.name}: []" for event in m.EVENTS if event.name != "custom")
    support = ", ".join(f"{feature}: full" for feature in FEATURES)
    file = tmp_path / "small.yaml"
    file.write_text(head.replace("EVENTS", events).replace("SUPPORT", support) + frames)
    return load_table(file, Vocabulary(cues=CUES))


def read(tmp_path: Path, name: str, body: Any, **more: Any) -> Any:
    return table(tmp_path).decoder("sse", **more).decode(name, body)


@pytest.mark.parametrize(("body", "words"), [
    ({"index": 1, "text": "hi"}, "hi"),
    ({"index": 1, "text": "hi", "unknown": {}}, "hi"),
    ({"index": 1, "text": {"words": "hi"}}, "hi"),
    ({"index": 1, "message": "hi"}, "hi"),
    ({"index": 1, "text": None, "message": "hi"}, "hi"),
])
def test_a_binding_is_read_at_the_first_place_that_has_it(tmp_path: Path, body: Any, words: str) -> None:
    assert read(tmp_path, "say", body) == ("said", {"index": 1, "text": words, "topic": None})


def test_another_name_of_a_frame_is_the_same_cue(tmp_path: Path) -> None:
    assert read(tmp_path, "speak", {"index": 0, "text": ""}).cue == "said"
    assert read(tmp_path, "message", {"kind": "say", "index": 0, "text": ""}).cue == "said"
    assert read(tmp_path, "unknown", {"index": 0, "text": ""}) is None


@pytest.mark.parametrize(("body", "words"), [
    ({"text": "hi"}, "'index' is missing"),
    ({"index": None, "text": "hi"}, "'index' is missing"),
    ({"index": True, "text": "hi"}, "'index' should be a whole number"),
    ({"index": 1.0, "text": "hi"}, "'index' should be a whole number"),
    ({"index": 1, "text": 5}, "'text' should be a text"),
    ([], "'index' is missing"),
    (None, "'index' is missing"),
])
def test_what_must_be_there_is(tmp_path: Path, body: Any, words: str) -> None:
    with pytest.raises(UnreadableFrame, match=words):
        read(tmp_path, "say", body)


def test_a_lenient_value_that_does_not_fit_is_null(tmp_path: Path) -> None:
    assert read(tmp_path, "say", {"index": 1, "text": "hi", "topic": 7}).bindings["topic"] is None


def test_a_strict_value_may_be_missing_and_must_fit(tmp_path: Path) -> None:
    assert read(tmp_path, "end", {"state": "paused"}) == ("paused", {"data": None, "why": None})
    with pytest.raises(UnreadableFrame, match=r"'data' should be an object"):
        read(tmp_path, "end", {"state": "paused", "data": []})


def test_constants_tell_rows_of_one_name_apart(tmp_path: Path) -> None:
    assert read(tmp_path, "end", {"state": "over", "why": "done"}) == ("ended", {"why": m.StopReason.END_TURN})
    assert read(tmp_path, "end", {"state": "elsewhere"}) is None
    assert read(tmp_path, "end", {"state": "over", "why": "new word"}).bindings == {"why": "new word"}


def test_words_of_an_enum_tell_rows_apart(tmp_path: Path) -> None:
    found = read(tmp_path, "open", {"block": {"type": "theirs", "name": "calc"}})
    assert found == ("opened", {"call": {"origin": m.ToolOrigin.PROVIDER, "name": "calc"}})
    assert read(tmp_path, "open", {"block": {"type": "picture"}}) is None
    assert read(tmp_path, "open", {}) is None


def test_only_what_is_wanted_is_read(tmp_path: Path) -> None:
    wanted = {"said": ["text"]}
    assert read(tmp_path, "say", {"index": "no number", "text": "hi"}, wanted=wanted) == ("said", {"text": "hi"})
    assert read(tmp_path, "end", {"state": "over"}, wanted=wanted) == ("ended", {})


def test_a_frame_can_be_known_before_it_is_read(tmp_path: Path) -> None:
    found = table(tmp_path).decoder("sse").find("say", {})
    assert found is not None and (found.cue, found.wire) == ("said", "say")
    with pytest.raises(UnreadableFrame):
        found.bindings()


AMBIGUOUS = {
    "the same": ("  said: [ x: { text: $text } ]\n  ended: [ x: { why: $why } ]\n", "could be 'said' or 'ended'"),
    "constants that do not exclude one another": (
        "  said: [ x: { a: one, text: $text } ]\n  ended: [ x: { b: two, why: $why } ]\n",
        "could be 'said' or 'ended'"),
    "several frames": ("  said: [ x: { text: $text }, y: {} ]\n  ended: []\n", "'said' is several frames"),
}


@pytest.mark.parametrize(("frames", "words"), AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_rows_that_cannot_be_told_apart_are_refused(tmp_path: Path, frames: str, words: str) -> None:
    with pytest.raises(Exception, match=words) as told:
        table(tmp_path, f"{frames}  opened: []\n  paused: []\n")
    assert "small.yaml:1" in str(told.value), "with its line"


@pytest.mark.parametrize("frames", [
    "  said: [ { x: { text: $text }, write-only: told by state } ]\n  ended: [ x: { why: $why } ]\n",
    "  said: [ x: { a: one, text: $text } ]\n  ended: [ x: { why: $why } ]\n",
    "  said: [ { x: { text: $text }, known_by: [ text ] } ]\n  ended: [ x: { state: over, why: $why } ]\n",
])
def test_a_table_says_how_rows_are_told_apart(tmp_path: Path, frames: str) -> None:
    made = table(tmp_path, f"{frames}  opened: []\n  paused: []\n").decoder("sse")
    assert (found := made.decode("x", {"why": "done", "state": "over"})) is not None
    assert found.cue == "ended"


def test_a_row_that_is_only_read_is_not_written(tmp_path: Path) -> None:
    frames = """
  said: [ { x: { text: $text }, read-only: an older server } ]
  noted: [ { note: { title: $title }, read-only: another server } ]
  opened: []
  ended: []
  paused: []
"""
    made = table(tmp_path, frames)
    assert made.decoder("sse").decode("x", {"text": "hi"}) == ("said", {"text": "hi"})
    assert made.decoder("sse").decode("note", {"title": "T"}) == ("noted", {"title": "T"}), "nobody has to raise it"
    record = m.Record(seq=1, at=0.0, session_id="s", turn_id=None, scope_id="root", event=m.TurnResumed(settled=()))
    with pytest.raises(KeyError):
        made.encoder("sse").cue("said", record, {})


def test_a_table_does_not_raise_cues_that_nobody_raises(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="nobody raises a cue 'noted'"):
        table(tmp_path, "  said: []\n  noted: [ x: {} ]\n  opened: []\n  ended: []\n  paused: []\n")
    with pytest.raises(Exception, match="there is no envelope 'other'"):
        table(tmp_path, "  said: []\n  noted: [ { x: {}, read-only: theirs, envelope: other } ]\n"
                        "  opened: []\n  ended: []\n  paused: []\n")
    with pytest.raises(Exception, match="'write-only' or 'read-only', not both"):
        table(tmp_path, "  said: [ { x: {}, read-only: theirs, write-only: ours } ]\n"
                        "  opened: []\n  ended: []\n  paused: []\n")


ANY_OF = """
  said:   [ { x: { type: word, text: $text, again: { type: word, text: $text } }, known_by: [ [ type, again.type ] ] } ]
  ended:  [ { x: { type: end, why: $why, again: { type: end } }, known_by: [ [ type, again.type ] ] } ]
  opened: [ x: { block: $block } ]
  paused: []
"""


@pytest.mark.parametrize(("body", "cue"), [
    ({"type": "word", "text": "hi"}, "said"),
    ({"again": {"type": "word", "text": "hi"}}, "said"),
    ({"again": {"type": "end"}}, "ended"),
    ({"again": {"type": None}, "type": ["word"]}, "opened"),
])
def test_a_row_may_be_known_by_one_of_several_members(tmp_path: Path, body: Any, cue: str) -> None:
    assert (found := table(tmp_path, ANY_OF).decoder("sse").decode("x", body)) is not None
    assert found.cue == cue


@pytest.mark.parametrize(("data", "cue"), [({}, "paused"), ("no object", "opened"), (None, "opened")])
def test_a_row_may_be_known_by_an_object(tmp_path: Path, data: Any, cue: str) -> None:
    frames = "  paused: [ { x: { data: { why: $why } }, known_by: [ data ] } ]\n  opened: [ x: { data: $block } ]\n"
    found = table(tmp_path, f"{frames}  said: []\n  ended: []\n").decoder("sse").decode("x", {"data": data})
    assert found is not None and found.cue == cue


def test_of_several_places_one_without_a_filter_is_read_first(tmp_path: Path) -> None:
    frames = "  said: [ x: { text: $text | json, again: $text } ]\n  opened: []\n  ended: []\n  paused: []\n"
    made = table(tmp_path, frames).decoder("sse")
    assert made.decode("x", {"text": '"{}"', "again": "{}"}) == ("said", {"text": "{}"})
    assert made.decode("x", {"text": "[1]"}) == ("said", {"text": [1]})


def test_an_envelope_may_have_no_place_for_the_body_or_the_name(tmp_path: Path) -> None:
    frames = "  said: [ x: { text: $text } ]\n  opened: []\n  ended: []\n  paused: []\n"
    made = table(tmp_path, frames)
    file = tmp_path / "small.yaml"
    file.write_text(file.read_text().replace("{ event: $wire, data: $body }", "{ event: $wire, data: {} }"))
    bare = load_table(file, Vocabulary(cues=CUES)).decoder("sse")
    assert (made.decoder("sse").decode("x", {"text": "hi"}), bare.decode("x", {})) == (
        ("said", {"text": "hi"}), ("said", {}))
    nameless = file.read_text().replace("{ event: $wire, data: {} }", "{ data: {} }")
    file.write_text(nameless.replace("names: [ data.kind ]", ""))
    assert load_table(file, Vocabulary(cues=CUES)).decoder("sse").decode("x", {}) is None


def test_a_strict_value_stands_in_an_object(tmp_path: Path) -> None:
    frames = "  said: [ x: { text: { words: $text } } ]\n  opened: []\n  ended: []\n  paused: []\n"
    made = table(tmp_path, frames).decoder("sse")
    for body in ({}, {"text": None}, {"text": {}}, {"text": {"words": None}}, [], None):
        assert made.decode("x", body) == ("said", {"text": None})
    for text in ("hi", [], 5, True):
        with pytest.raises(UnreadableFrame, match="'text' should be an object"):
            made.decode("x", {"text": text})


def test_a_row_that_is_known_by_its_name_takes_any_constant(tmp_path: Path) -> None:
    frames = ("  ended: [ { x: { state: over, why: $why }, known_by: [] } ]\n"
              "  paused: [ { x: { state: paused, kind: a, why: $why }, known_by: [ state ] } ]\n")
    made = table(tmp_path, f"{frames}  said: []\n  opened: []\n").decoder("sse")
    found = [made.decode("x", body) for body in ({"state": "elsewhere"}, {}, {"state": "paused", "kind": "b"})]
    assert [one.cue for one in found if one] == ["ended", "ended", "paused"]


@pytest.mark.parametrize("types", ["", "types: { tone: text }\n"])
def test_a_further_spelling_may_bind_a_name_that_has_a_type(tmp_path: Path, types: str) -> None:
    frames = "  said: [ { x: { text: $text }, also: [ { x: { tone: $tone }, of: a server with moods } ] } ]\n"
    made = pytest.raises(Exception, match=r"there is no name '\$tone' in said") if not types else nullcontext()
    with made:
        table(tmp_path, f"{frames}  opened: []\n  ended: []\n  paused: []\n{types}")
    if types:
        file = load_table(tmp_path / "small.yaml", Vocabulary(cues=CUES))
        assert file.decoder("sse").decode("x", {"tone": "glad"}) == ("said", {"text": None, "tone": "glad"})


def test_words_of_others_have_a_meaning_and_a_note(tmp_path: Path) -> None:
    def with_meaning(meaning: str) -> Table:
        table(tmp_path)
        file = tmp_path / "small.yaml"
        file.write_text(file.read_text().replace("stopped: error }", f"stopped: error, given_up: {meaning} }}"))
        return load_table(file, Vocabulary(cues=CUES))

    made = with_meaning("{ as: timeout, of: an older server }").decoder("sse")
    assert made.decode("end", {"state": "over", "why": "given_up"}) == ("ended", {"why": m.StopReason.TIMEOUT})
    for wrong, words in (("timeout", "stop_reason has no word 'given_up'"), ("{ as: timeout }", "of"),
                         ("{ as: bored, of: x }", "no member 'bored'")):
        with pytest.raises(Exception, match=words):
            with_meaning(wrong)


@pytest.mark.parametrize(("unread", "is_read"), [("[ data.version ]", True), ("[]", False)])
def test_an_unread_constant_of_an_envelope_is_not_compared(tmp_path: Path, unread: str, is_read: bool) -> None:
    table(tmp_path, "  said: [ x: { text: $text } ]\n  opened: []\n  ended: []\n  paused: []\n")
    file = tmp_path / "small.yaml"
    changed = file.read_text().replace("data: $body", 'data: { version: "1", ...: $body }')
    file.write_text(changed.replace("envelopes:", f"unread: {unread}\nenvelopes:"))
    made = load_table(file, Vocabulary(cues=CUES)).decoder("sse")
    assert (made.decode("x", {"version": "2", "text": "hi"}) is not None) is is_read
    assert made.decode("x", {"version": "1", "text": "hi"}) == ("said", {"text": "hi"})


PARTS = """parts:
  text:
    - { type: text, text: $text }
    - { also: { type: document, source: { type: text, data: $text } }, of: somebody }
  thinking: []
  tool_use: []
  image:
    - { type: image, url: $url }
    - { also: { type: image, mime: $media_type }, of: somebody }
    - { also: { type: image, source: { kind: base64, media_type: $media_type, data: $base64 } }, of: somebody }
  file: [ { type: document, title: $name, url: $url } ]
  data: []
"""


def test_blocks_of_others_are_further_spellings_of_parts(tmp_path: Path) -> None:
    table(tmp_path)
    file = tmp_path / "small.yaml"
    file.write_text(file.read_text() + PARTS)
    made = load_table(file, Vocabulary(cues=CUES))
    assert made.read_content([
        {"type": "text", "text": "a"}, {"type": "document", "source": {"type": "text", "data": "b"}},
        {"type": "image", "url": "https://example.test/a.png", "mime": "image/gif"}, {"type": "image"},
        {"type": "image", "source": {"kind": "base64", "media_type": "image/png", "data": "A A=\n="}},
        {"type": "image", "source": {"kind": "base64", "data": "AA=="}},
        {"type": "document", "url": "https://example.test/a.txt"},
    ]) == (
        m.TextPart(text="a"), m.TextPart(text="b"),
        m.ImagePart(url="https://example.test/a.png", media_type="image/gif"),
        m.ImagePart(url="data:image/png;base64,AA==", media_type="image/png"),
        m.FilePart(name="", url="https://example.test/a.txt"),
    )
    for wrong, words in (("of: somebody", "note"), ("$base64", r"there is no name '\$base46'")):
        file.write_text(file.read_text().replace(wrong, {"of: somebody": "by: x"}.get(wrong, "$base46")))
        with pytest.raises(Exception, match=words):
            load_table(file, Vocabulary(cues=CUES))
        file.write_text(file.read_text().replace("by: x", "of: somebody"))


# -- what several servers spell differently ----------------------------------------------------------------------------

VARIANTS = """
  said:
    - say: { kind: words, text: $text, index: $index, topic: $topic }
      also:
        - say: { kind: null }
          of: a server that leaves out the kind
        - say: { kind: letters }
          of: a server with another word for the kind
  opened: [ say: { kind: $block.kind, text: $block.text } ]
  ended:
    - "*": { why: $why | stop_reason }
      envelope: inner
  paused:
    - end: { state: over, tool: ask, why: $why | stop_reason, data: $data }
      known_by: [ data ]
      envelope: inner
      also:
        - end: { tool: $topic }
          of: a server with tools of its own
"""


def variants(tmp_path: Path, types: str = "") -> FrameDecoder:
    """The envelope `inner` names its frames within."""
    made = TWO_ENVELOPES.replace(TYPES, types)
    return write_table(tmp_path, made, VARIANTS).decoder("sse")


@pytest.mark.parametrize(("body", "cue"), [
    ({"kind": "words", "text": "hi"}, "said"), ({"kind": "letters", "text": "hi"}, "said"),
    ({"text": "hi"}, "said"), ({"kind": None, "text": "hi"}, "said"),
    ({"kind": "picture", "text": "hi"}, "opened"), ({"kind": 7}, "opened"), ({"kind": ["words"]}, "opened"),
])
def test_a_further_spelling_may_have_constants_of_its_own_or_leave_one_out(
    tmp_path: Path, body: Any, cue: str
) -> None:
    found = variants(tmp_path).decode("say", body)
    assert found is not None and found.cue == cue


def test_a_further_spelling_may_have_a_value_in_place_of_a_constant(tmp_path: Path) -> None:
    decoder = variants(tmp_path)
    for tool in ("ask", "another"):
        found = decoder.decode("part", {"part": "end", "inner": {"state": "over", "tool": tool, "data": {"x": 1}}})
        assert found == ("paused", {"why": None, "data": {"x": 1}, "topic": tool})


@pytest.mark.parametrize("body", [{"part": "novel", "inner": {}}, {"inner": {}}, {"part": 7}, {"part": "end"}, None])
def test_a_row_of_any_name_reads_what_no_other_row_of_its_envelope_is(tmp_path: Path, body: Any) -> None:
    decoder = variants(tmp_path)
    found = decoder.decode("part", body)
    assert found is not None and found.cue == "ended"
    assert decoder.decode("novel", body) is None


def test_types_may_be_those_of_one_row(tmp_path: Path) -> None:
    decoder = variants(tmp_path, "types: { index: int, said: { text: text!, index: text? } }\n")
    found = decoder.decode("say", {"text": "hi", "index": 7})
    assert found == ("said", {"text": "hi", "index": None, "topic": None})
    with pytest.raises(UnreadableFrame, match="'text' is missing"):
        decoder.decode("say", {})
    picture = {"kind": "picture", "text": 7}
    assert decoder.decode("say", picture) == ("opened", {"block": picture})


@pytest.mark.parametrize("body", [None, [], "say", 7])
def test_a_body_may_have_to_be_an_object(tmp_path: Path, body: Any) -> None:
    decoder = variants(tmp_path, "types: { body: object! }\n")
    with pytest.raises(UnreadableFrame, match="'the body' should be an object"):
        decoder.decode("say", body)
    with pytest.raises(UnreadableFrame, match="'inner' should be an object"):
        decoder.decode("part", {"part": "novel", "inner": body})
    assert decoder.decode("say", {}) is not None


@pytest.mark.parametrize("body", [[], "say", 7])
def test_a_body_that_may_be_missing_is_an_object_where_it_is_there(tmp_path: Path, body: Any) -> None:
    decoder = variants(tmp_path, "types: { body: object }\n")
    with pytest.raises(UnreadableFrame, match="'the body' should be an object"):
        decoder.decode("say", body)
    with pytest.raises(UnreadableFrame, match="'inner' should be an object"):
        decoder.decode("part", {"part": "novel", "inner": body})
    for missing in ({"part": "novel"}, {"part": "novel", "inner": None}):
        assert decoder.decode("part", missing) is not None
