"""What a table writes, it reads: for every row of every table and any bindings, `decode(encode(x)) == x`."""

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, get_type_hints

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from adapters import known_dialects
from gateway.ports import Dialect
from mappings.language import Table, builtin_table
from mappings.language.check import COMMANDS_BY_KIND
from mappings.language.compile import ExpressionCompiler
from mappings.language.encoder import Framing
from mappings.language.expressions import AS, Node, Slot, nested_row, slots, wrap_in_envelope
from mappings.language.filters import to_builtins, to_json
from mappings.language.frame_decoder import BindingReader, Spelling
from mappings.language.parsed_table import FrameTemplate
from mappings.language.scopes import MODEL_ENUMS, extra_scope
from mappings.language.spellings import SpellingCompiler, conversion, is_named

TEXTS = st.text(max_size=20)
LEAVES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS
KEYS = st.text("abc", min_size=1, max_size=3).map("k_".__add__)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=3)
MOMENTS = st.integers(0, 4_000_000_000_000).map(lambda milliseconds: milliseconds / 1000)
OF_TYPE: Mapping[str, st.SearchStrategy[Any]] = {
    "any": VALUES.filter(lambda value: value is not None), "text": TEXTS, "id": st.text(min_size=1, max_size=8),
    "segment": st.text("abc-_", min_size=1, max_size=8),
    "int": st.integers(0, 2**53), "number": st.integers(0, 2**53), "bool": st.booleans(), "object": OBJECTS,
    "list": st.lists(VALUES, max_size=3), "time": MOMENTS,
}
"""By type: values that a binding without a filter may have."""
EVERY_DIALECT = [import_module(f"adapters.{name}").DIALECT for name in known_dialects()]


def meanings(table: Table, name: str) -> st.SearchStrategy[Any]:
    """The members that words of the table are read as; a member that shares its word may only be written."""
    kind = MODEL_ENUMS[name.partition("@")[0]]
    return st.sampled_from(sorted(set(table._meanings(name, kind).values())))


def values_of(slot: Slot, reader: BindingReader, table: Table) -> st.SearchStrategy[Any]:
    for name in slot.filters:
        if (inner := nested_row(name)) is not None:
            rows = st.deferred(lambda row=inner[1]: object_values(table, row).map(nested))
            return st.lists(rows, max_size=2) if inner[0] != AS else rows
        if name in ("iso", "naive", "ms"):
            return MOMENTS
        if name == "json":
            return OBJECTS
        if name == "text":
            return TEXTS
        if name in ("content", "parts"):
            return st.lists(TEXTS.map(lambda text: m.TextPart(text=text)), max_size=3).map(tuple)
        if name in table._words:
            return meanings(table, name)
    return OF_TYPE[reader.sources[0].type]


def readable(table: Table, framing: Framing) -> Iterator[tuple[FrameTemplate, Spelling]]:
    """The rows that are read, with the template that writes them."""
    for rows in table._spellings.forms((framing,)).values():
        for spellings in rows.values():
            for spelling in spellings:
                for frame in table._draft.frames[spelling.cue]:
                    if frame.wire == spelling.wire and not frame.write_only:
                        yield frame, spelling


def written(table: Table, frame: FrameTemplate, framing: Framing, bindings: Mapping[str, Any]) -> tuple[str, Any]:
    """The name and the parsed body of the frame, as a client gets them."""
    node: Node = wrap_in_envelope(table._envelope(frame, framing), frame.wire, frame.body)
    names = {slot.name for slot, _ in slots(node)}
    whole = ExpressionCompiler(extra_scope(names), table._filters).value(node)(None, None, bindings)
    plain = orjson.loads(to_json(whole))
    return (plain.get("event", ""), plain["data"]) if is_named(table._envelope(frame, framing)) else ("", plain)


def is_written(value: Any, body: Any) -> bool:
    """Whether the value, which only further spellings bind, is null or stands somewhere in the body."""
    inner = body.values() if isinstance(body, dict) else body if isinstance(body, list) else ()
    return value is None or value == body or any(is_written(value, one) for one in inner)


def nested(flat: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    built: dict[str, Any] = {}
    for (*before, last), value in flat.items():
        inner = built
        for step in before:
            inner = inner.setdefault(step, {})
        inner[last] = value
    return built


def bound(bindings: Mapping[str, Any], key: tuple[str, ...]) -> Any:
    found: Any = bindings
    for step in key:
        found = found[step]
    return found


@pytest.mark.parametrize(("dialect", "framing"), [(one, framing) for one in EVERY_DIALECT for framing in one.framings],
                         ids=lambda value: getattr(value, "name", value))
def test_every_row_reads_what_it_writes(dialect: Dialect, framing: Framing) -> None:
    """Or, where another row writes the very same frame, what that one has written."""
    table = builtin_table(dialect)
    decoder, rows = table.decoder(framing), list(readable(table, framing))
    templates = {spelling.cue: frame for frame, spelling in rows}

    @given(st.data())
    def check(data: st.DataObject) -> None:
        frame, spelling = data.draw(st.sampled_from(rows), label="row")
        node = wrap_in_envelope(table._envelope(frame, framing), frame.wire, frame.body)
        filled = {(slot.name, *slot.steps): slot for slot, _ in slots(node)}
        read = {(one.name, *one.steps): one for one in spelling.readers}
        flat = {key: data.draw(values_of(slot, read[key], table) if key in read else st.none(), label=".".join(key))
                for key, slot in filled.items()}
        sent = written(table, frame, framing, nested(flat))
        found = decoder.decode(*sent)
        assert found is not None
        if found.cue == spelling.cue:
            of_others = {key: bound(found.bindings, key) for key in read if key not in filled}
            assert found.bindings == nested({**{key: flat.get(key) for key in read}, **of_others})
            assert all(is_written(value, sent[1]) for value in of_others.values()), "nothing is made up"
        else:
            assert written(table, templates[found.cue], framing, found.bindings) == sent

    check()


# -- client messages and bodies ---------------------------------------------------------------------------------------

def body_values(
    table: Table, node: Node, readers: Mapping[tuple[str, ...], BindingReader], hints: Mapping[str, Any]
) -> Any:
    """Bindings of one row; rows within it have bindings of their own."""
    filled = {(slot.name, *slot.steps): slot for slot, _ in slots(node)}
    return st.fixed_dictionaries({
        key: member_values(table, slot, readers[key], hints) if key in readers else st.none()
        for key, slot in filled.items()
    })


def member_values(table: Table, slot: Slot, reader: BindingReader, hints: Mapping[str, Any]) -> Any:
    for name in slot.filters:
        if name in table._draft.shape.reads:
            return st.sampled_from(list(dict.fromkeys(table._draft.shape.reads[name].values())))
    hint = hints.get(slot.name, Any)
    if not slot.steps and not slot.filters and conversion(hint) and hint != m.Content:
        return st.from_type(hint).filter(is_within_json)
    return TEXTS if hint == m.Content and not slot.filters else values_of(slot, reader, table)


def is_within_json(value: Any) -> bool:
    """Whether JSON as the gateway reads it has the value: of integers, those of 64 bits."""
    try:
        orjson.dumps(value, to_builtins)
    except TypeError:
        return False
    return True


def object_values(table: Table, name: str) -> Any:
    readers = {(one.name, *one.steps): one for one in table._spellings.object_spelling(name).readers}
    return body_values(table, table._draft.objects[name], readers, {})


def read_bindings(flat: Mapping[tuple[str, ...], Any], readers: Iterable[BindingReader]) -> dict[str, Any]:
    return nested({key: flat.get(key) for key in [(one.name, *one.steps) for one in readers]})


@pytest.mark.parametrize("dialect", EVERY_DIALECT, ids=lambda dialect: dialect.name)
def test_every_body_is_read_as_it_was_written(dialect: Dialect) -> None:
    table = builtin_table(dialect)

    @given(st.data())
    def check(data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(list(dialect.objects)), label="row")
        flat = data.draw(object_values(table, name), label="bindings")
        readers, body = table._spellings.object_spelling(name).readers, plain(table.object(name, **nested(flat)))
        found = table.read_object(name, body)
        of_others = {key: bound(found, key) for one in readers if (key := (one.name, *one.steps)) not in flat}
        assert says(plain(found), plain(read_bindings({**flat, **of_others}, readers)), body)
        assert all(is_written(value, body) for value in of_others.values()), "nothing is made up"

    check()


def says(found: Any, told: Any, body: Any) -> bool:
    """Whether what was read is what was told; rows in lists may bind further names, of what is written in the body."""
    if isinstance(found, list) and isinstance(told, list) and len(found) == len(told):
        return all(says(_without_others(one, other, body), other, body) for one, other in zip(found, told, strict=True))
    if isinstance(found, dict) and isinstance(told, dict) and found.keys() == told.keys():
        return all(says(found[key], told[key], body) for key in found)
    return bool(found == told)


def _without_others(found: Any, told: Any, body: Any) -> Any:
    if not isinstance(found, dict) or not isinstance(told, dict):
        return found
    return {key: value for key, value in found.items() if key in told or not is_written(value, body)}


@pytest.mark.parametrize("dialect", EVERY_DIALECT, ids=lambda dialect: dialect.name)
def test_every_message_is_read_as_it_was_sent(dialect: Dialect) -> None:
    table = builtin_table(dialect)
    rows = {name: (row, row.wire) for name, row in table._draft.inputs.items() if row.wire is not None}
    if not rows:
        pytest.skip("its client messages are bound by code")
    compiler = SpellingCompiler(table._draft, table._vocabulary, {})

    @given(st.data())
    def check(data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(list(rows)), label="row")
        readers = {(one.name, *one.steps): one for one in compiler.message_spelling(name, *rows[name]).readers}
        hints = get_type_hints(COMMANDS_BY_KIND[rows[name][0].command])
        flat = data.draw(body_values(table, rows[name][1], readers, hints), label="bindings")
        found = table.read_message(name, plain(table.message(name, **nested(flat))))
        assert plain(found) == plain(read_bindings(flat, readers.values()))

    check()


def plain(value: Any) -> Any:
    """The value as JSON has it."""
    return orjson.loads(to_json(value))
