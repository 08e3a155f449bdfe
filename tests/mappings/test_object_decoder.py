"""Bodies read back by the rows of `objects` that write them."""

from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from mappings.language import FEATURES, ObjectDecoder, UnreadableFrame, Vocabulary, load_table

OBJECTS = {
    "letter": ("id", "at", "role", "rest"), "letter.sealed": ("id", "seal"), "wrapped": ("inner", "note"),
    "answer": ("content",), "mail": ("letters", "labels"), "mail.strict": ("letters",), "label": ("word",),
}
TABLE = """
dialect: small
spec: "1"
enums:
  role: { user: person, "*": machine }
types: { id: id!, letter: { role: text? }, label: { word: "text?" } }
parts:
  text: { type: text, text: $text }
  thinking: []
  tool_use: []
  image: []
  file: []
  data: []
frames: { FRAMES }
errors: { "*": { body: $message } }
support: { SUPPORT }
objects:
  letter: { kind: open, id: $id, at: $at | iso, from: { role: $role | role }, note: $rest }
  letter.sealed: { kind: sealed, id: $id, seal: $seal }
  wrapped: { ...: $inner, _note: $note }
  answer: $content | content
  mail: { letters: $letters | fitting letter.sealed, labels: $labels | each label }
  mail.strict: { letters: $letters | each letter.sealed }
  label: { word: $word, also: [ { wire: $word, of: those who write it alone } ] }
"""


def reader(tmp_path: Path, *names: str) -> ObjectDecoder:
    frames = ", ".join(f"{event.name}: []" for event in m.EVENTS)
    support = ", ".join(f"{feature}: full" for feature in FEATURES)
    file = tmp_path / "small.yaml"
    file.write_text(TABLE.replace("FRAMES", frames).replace("SUPPORT", support))
    return load_table(file, Vocabulary(objects=OBJECTS)).reader(*names)


def test_a_body_is_read_by_the_row_that_writes_it(tmp_path: Path) -> None:
    body = {"kind": "open", "id": "a", "at": "1970-01-01T00:00:01Z", "from": {"role": "person"}, "note": [1], "more": 2}
    assert reader(tmp_path, "letter").read(body) == {"id": "a", "at": 1.0, "role": m.Role.USER, "rest": [1]}
    assert reader(tmp_path, "letter").read({"id": "a"}) == {"id": "a", "at": None, "role": None, "rest": None}


def test_the_members_that_a_row_does_not_write_out_are_its_splice(tmp_path: Path) -> None:
    assert reader(tmp_path, "wrapped").read({"_note": 1, "x": 2}) == {"inner": {"x": 2}, "note": 1}


def test_a_row_may_be_one_value(tmp_path: Path) -> None:
    read = reader(tmp_path, "answer").read
    assert (read("yes"), read([{"type": "text", "text": "yes"}])) == (
        {"content": "yes"}, {"content": (m.TextPart(text="yes"),)})


@pytest.mark.parametrize(("body", "row"), [
    ({"kind": "sealed", "id": "a"}, "letter.sealed"), ({"kind": "open", "id": "a"}, "letter"),
    ({"id": "a"}, "letter"), ({"kind": "novel", "id": "a"}, "letter"),
])
def test_constants_tell_rows_apart_and_otherwise_the_first_is_read(tmp_path: Path, body: Any, row: str) -> None:
    assert reader(tmp_path, "letter", "letter.sealed").decode(body).cue == row


@pytest.mark.parametrize(("body", "words"), [
    ({"id": ""}, "'id' should be a text that is not empty"), ({}, "'id' is missing"),
    ([], "should be an object"), (None, "should be an object"), ("letter", "should be an object"),
])
def test_what_cannot_be_read_is_refused(tmp_path: Path, body: Any, words: str) -> None:
    with pytest.raises(UnreadableFrame, match=words):
        reader(tmp_path, "letter").read(body)


# -- lists ------------------------------------------------------------------------------------------------------------

LETTERS = [{"id": "a", "seal": 1}, {"id": 5}, "no letter", {"id": "b"}]


def test_of_a_list_that_may_have_others_those_that_fit_are_read(tmp_path: Path) -> None:
    read = reader(tmp_path, "mail").read({"letters": LETTERS})
    assert read["letters"] == [{"id": "a", "seal": 1}, {"id": "b", "seal": None}]


def test_of_any_other_list_each_must_fit(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFrame, match=r"'letters\.1\.id' should be a text that is not empty"):
        reader(tmp_path, "mail.strict").read({"letters": LETTERS})


def test_a_row_that_others_write_as_a_bare_value_is_read_from_one(tmp_path: Path) -> None:
    read = reader(tmp_path, "mail").read({"labels": [{"word": "x"}, "y", 5, None, {}]})
    assert [one["word"] for one in read["labels"]] == ["x", "y", None, None, None]
