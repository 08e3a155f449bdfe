"""Rows of `objects` say only what differs."""

from pathlib import Path

import pytest
import yaml
from msgspec import Struct

import gateway.model as m
from mappings.language import FEATURES, Table, Vocabulary, builtin_path, load_table
from mappings.language.load import complete_row
from mappings.language.scopes import object_names
from tests.support.dialect_tables import DIALECTS, dialect

NAMES = ("id", "title", "at", "size")


class Note(Struct, frozen=True, kw_only=True):
    id: str
    title: str | None = None
    at: float | None = None
    size: int = 0


@pytest.mark.parametrize(("row", "whole"), [
    ({}, {"id": "$id", "title": "$title", "at": "$at", "size": "$size"}),
    ({"at": "$at | iso"}, {"id": "$id", "title": "$title", "at": "$at | iso", "size": "$size"}),
    ({"type": "note", "noteId": "$id"},
     {"type": "note", "noteId": "$id", "title": "$title", "at": "$at", "size": "$size"}),
    ({"type": "note"}, {"id": "$id", "type": "note", "title": "$title", "at": "$at", "size": "$size"}),
    ({"type": "note", "id": "$id"}, {"type": "note", "id": "$id", "title": "$title", "at": "$at", "size": "$size"}),
    ({"kind": "note"}, {"id": "$id", "title": "$title", "at": "$at", "size": "$size", "kind": "note"}),
    ({"type": "$at | ms"}, {"id": "$id", "title": "$title", "type": "$at | ms", "size": "$size"}),
    ({"at": "$title", "about": "$at"}, {"id": "$id", "at": "$title", "about": "$at", "size": "$size"}),
    ({"title": "$drop", "size": "$drop"}, {"id": "$id", "at": "$at"}),
    ({"noteId": "$id", "...": "$drop"}, {"noteId": "$id"}),
    ({"title": "always this"}, {"id": "$id", "title": "always this", "at": "$at", "size": "$size"}),
    ({"about": {"name": "$title"}, "when": ["$at | ms", "$size"]},
     {"id": "$id", "about": {"name": "$title"}, "when": ["$at | ms", "$size"]}),
    ({"title": "$title", "also": [{"wire": {"name": "$title"}, "of": "x"}]},
     {"id": "$id", "title": "$title", "at": "$at", "size": "$size", "also": [{"wire": {"name": "$title"}, "of": "x"}]}),
])
def test_a_name_that_a_row_does_not_mention_is_written_as_it_is(row: dict, whole: dict) -> None:
    done = complete_row(row, NAMES)
    assert (done, list(done)) == (whole, list(whole))


WITHIN_FRAMES = {("zenflux", "usage")}
"""Rows that are written once for a frame and a body."""


@pytest.mark.parametrize("name", DIALECTS)
def test_no_row_repeats_a_name_without_need(name: str) -> None:
    """`name: $name` tells where a constant stands, or that a name goes out under another name as well."""
    objects = dialect(name).objects
    for kind, row in yaml.safe_load(builtin_path(name).read_text())["objects"].items():
        names = object_names(objects[kind])
        whole = list(complete_row(row, names).items()) if isinstance(row, dict) else []
        for repeated in [key for key, _ in whole if (name, kind) not in WITHIN_FRAMES and row.get(key) == f"${key}"]:
            less = {key: value for key, value in row.items() if key != repeated}
            assert list(complete_row(less, names).items()) != whole, f"{kind} need not spell '{repeated}'"


TABLE = """
dialect: small
spec: "1"
frames: { FRAMES }
errors: { "*": { body: $message } }
support: { SUPPORT }
types: { note: { id: id! } }
objects:
  note: { at: $at | iso, title: $title | optional, also: [ { wire: { name: $title }, of: an older server } ] }
  notes: { items: $notes | each note, first: $first | as note | optional }
"""


def small(folder: Path, *overrides: str) -> Table:
    frames = ", ".join(f"{event.name}: []" for event in m.EVENTS)
    support = ", ".join(f"{feature}: full" for feature in FEATURES)
    files = [folder / f"{number}.yaml" for number in range(1 + len(overrides))]
    for file, text in zip(files, (TABLE, *overrides), strict=True):
        file.write_text(text.replace("FRAMES", frames).replace("SUPPORT", support))
    return load_table(files[0], Vocabulary(objects={"note": Note, "notes": ("notes", "first")}), files[1:])


NOTE = Note(id="n", title="T", at=0.0, size=3)
WIRE = {"id": "n", "title": "T", "at": "1970-01-01T00:00:00.000Z", "size": 3}


def test_a_struct_is_a_body_and_rows_stand_within_rows(tmp_path: Path) -> None:
    table = small(tmp_path)
    assert table.object("note", NOTE) == WIRE
    assert table.object("note", NOTE, title=None) == {name: WIRE[name] for name in ("id", "at", "size")}
    assert table.object("notes", notes=[NOTE, {"id": "m", "title": None, "at": None, "size": 0}], first=None) == {
        "items": [WIRE, {"id": "m", "at": None, "size": 0}]}
    assert table.object("notes", notes=None, first=NOTE) == {"items": None, "first": WIRE}


def test_what_is_written_is_read_and_other_spellings_are_too(tmp_path: Path) -> None:
    table = small(tmp_path)
    bindings = {"id": "n", "title": "T", "at": 0.0, "size": 3}
    assert table.read_object("notes", {"items": [WIRE], "first": WIRE, "more": 1}) == {
        "notes": [bindings], "first": bindings}
    assert table.read_object("note", {"id": "n", "name": "old"})["title"] == "old"


def test_what_is_wrong_is_named_with_its_place(tmp_path: Path) -> None:
    table = small(tmp_path)
    for body, words in [
        ({"items": [WIRE, {}]}, "'items.1.id' is missing"), ({"items": [7]}, "'items.0' should be an object"),
        ({"items": WIRE}, "'items' should be a list"), ({"first": {"id": 7}}, "'first.id' should be a text"),
        ({"items": [WIRE | {"size": "3"}]}, "'items.0.size' should be a whole number"),
        ([], "'the body' should be an object"),
    ]:
        with pytest.raises(ValueError, match=words):
            table.read_object("notes", body)


def test_an_override_sees_whole_rows(tmp_path: Path) -> None:
    table = small(tmp_path, "objects: { note: { size: $drop, id: $drop, noteId: $id, title: always } }")
    assert table.object("note", NOTE) == {"title": "always", "at": WIRE["at"], "noteId": "n"}
