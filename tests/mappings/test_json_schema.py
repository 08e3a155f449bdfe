"""The JSON Schema of tables is made from the language, fits every table, and finds what people get wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from mappings.language import builtin_path, schema_text
from mappings.language.json_schema import MEANINGS, table_schema
from mappings.language.shape import SECTIONS
from tests.support.dialect_tables import DIALECTS

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "mappings" / "table.schema.json"
VALIDATOR = jsonschema_rs.validator_for(table_schema())
PLAIN = Path(__file__).parent / "tables" / "plain.yaml"
QUILL = ROOT / "tests" / "support" / "fifth_dialect" / "tree" / "mappings" / "quill.yaml"


def problems_of(table: Any) -> list[tuple[list[str | int], str]]:
    return [(list(error.instance_path), error.message) for error in VALIDATOR.iter_errors(table)]


def test_the_file_is_what_the_command_writes() -> None:
    assert SCHEMA.read_text("utf-8") == schema_text(), "dragoman check --schema > mappings/table.schema.json"


def test_every_section_is_explained() -> None:
    assert set(MEANINGS) == set(SECTIONS)


@pytest.mark.parametrize("path", [*map(builtin_path, DIALECTS), PLAIN, QUILL], ids=lambda path: path.stem)
def test_a_table_that_loads_fits_the_schema(path: Path) -> None:
    assert problems_of(yaml.safe_load(path.read_text("utf-8"))) == []


@pytest.mark.parametrize("name", DIALECTS)
def test_a_table_names_the_schema_for_editors(name: str) -> None:
    first, *_ = builtin_path(name).read_text("utf-8").splitlines()
    mark = "# yaml-language-server: $schema="
    assert first.startswith(mark)
    assert (builtin_path(name).parent / first.removeprefix(mark)).samefile(SCHEMA)


def put(*path: str | int, to: Any) -> Callable[[Any], None]:
    def change(table: Any) -> None:
        *way, last = path
        for step in way:
            table = table[step]
        table[last] = to

    return change


def leave_out(*path: str) -> Callable[[Any], None]:
    def change(table: Any) -> None:
        *way, last = path
        for step in way:
            table = table[step]
        del table[last]

    return change


MISTAKES: dict[str, tuple[Callable[[Any], None], list[str | int]]] = {
    "an unknown section": (put("frame", to={}), []),
    "a missing section": (leave_out("support"), []),
    "a version that is a number": (put("spec", to=3), ["spec"]),
    "an unknown transport": (put("transport", to="pigeon"), ["transport"]),
    "a route without a method": (put("routes", to={"/cards": {"object": "card"}}), ["routes"]),
    "a route that does nothing": (put("routes", to={"GET /cards": {}}), ["routes", "GET /cards"]),
    "an unknown key of a route": (put("routes", to={"GET /cards": {"objct": "card"}}), ["routes", "GET /cards"]),
    "an unknown enum": (put("enums", "stop_raison", to={"*": "end"}), ["enums"]),
    "an unknown member": (put("enums", "outcome", to={"complete": "ok", "*": "no"}), ["enums", "outcome"]),
    "a member without a word": (put("enums", "permission", to={"allow": "yes"}), ["enums", "permission"]),
    "a word that is a list": (put("enums", "outcome", to={"*": ["no"]}), ["enums", "outcome", "*"]),
    "a meaning that is no member": (put("meanings", to={"outcome": {"no": "complete"}}), ["meanings", "outcome", "no"]),
    "an unknown type": (put("types", to={"delta": "string"}), ["types", "delta"]),
    "an unknown framing": (put("envelopes", "default@xml", to={}), ["envelopes"]),
    "an unknown kind of part": (put("parts", "txt", to=[]), ["parts"]),
    "an event without a row": (leave_out("frames", "notice.posted"), ["frames"]),
    "a variant without a row": (leave_out("frames", "block.delta"), ["frames"]),
    "a frame with two wire names": (put("frames", "turn.ended", to=[{"a": {}, "b": {}}]), ["frames", "turn.ended", 0]),
    "a frame without a wire name": (put("frames", "custom", to=[{"envelope": "flat"}]), ["frames", "custom", 0]),
    "frames that are no list": (put("frames", "custom", to={"a": {}}), ["frames", "custom"]),
    "a reason that is no sentence": (
        put("frames", "custom", to=[{"a": {}, "write-only": True}]), ["frames", "custom", 0, "write-only"]),
    "a spelling of nobody": (
        put("frames", "custom", to=[{"a": {}, "also": [{"b": {}, "c": {}}]}]), ["frames", "custom", 0, "also", 0]),
    "an unknown filter": (
        put("frames", "custom", to=[{"a": {"at": "$at | isso"}}]), ["frames", "custom", 0, "a", "at"]),
    "half a slot": (put("frames", "custom", to=[{"a": {"at": "$at |"}}]), ["frames", "custom", 0, "a", "at"]),
    "an unknown command": (put("inputs", "say", "command", to="send_mesage"), ["inputs", "say", "command"]),
    "an unknown field of a command": (
        put("inputs", "say", "given", to={"contents": "$words"}), ["inputs", "say", "given"]),
    "a message without a command": (put("inputs", "say", to={"given": {}}), ["inputs", "say"]),
    "an unknown fault": (put("errors", "not_fund", to={"body": None}), ["errors"]),
    "a fault without a body": (leave_out("errors", "*"), ["errors"]),
    "a status that is none": (
        put("errors", "conflict", to={"status": 1409, "body": None}), ["errors", "conflict", "status"]),
    "an unknown feature": (put("support", "dancing", to="full"), ["support"]),
    "a feature without a level": (leave_out("support", "titles"), ["support"]),
    "an unknown level": (put("support", "text", to="fully"), ["support", "text"]),
    "a note on nothing": (put("notes", to={"sub_agents": "they are not heard"}), ["notes"]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found_at_its_place(mistake: str) -> None:
    change, place = MISTAKES[mistake]
    table = yaml.safe_load(PLAIN.read_text("utf-8"))
    change(table)
    assert [path for path, _ in problems_of(table)] == [place]


def test_texts_that_are_no_slots_are_left_alone() -> None:
    table = yaml.safe_load(PLAIN.read_text("utf-8"))
    for text in ("", "$$5", "two\nlines", "costs $5", "$name.attribute | outcome@stop | optional"):
        table["frames"]["custom"] = [{"a": {"b": [text]}}]
        assert problems_of(table) == [], text
