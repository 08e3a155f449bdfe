"""A piece finds its call, whatever the service leaves out of it."""

from typing import Any

import pytest

from gateway.backends.llm.openai.chunks import CallAssembler, CallPiece, FunctionPiece


def piece(index: int | None = None, id: str | None = None, name: str | None = None, arguments: Any = None) -> CallPiece:
    return CallPiece(index, id, FunctionPiece(name, arguments))


def told(*pieces: CallPiece) -> list[tuple[str, str]]:
    """Names and inputs of the calls that these pieces make."""
    calls, inputs, names = CallAssembler(), dict[Any, str](), dict[Any, str]()
    for one in pieces:
        call, arguments, is_new = calls.take(one)
        assert is_new is (call.key not in names)
        names[call.key] = call.name
        inputs[call.key] = inputs.get(call.key, "") + arguments
    return [(names[key], inputs[key]) for key in names]


WHOLE = '{"a": 1}'


@pytest.mark.parametrize(("pieces", "calls"), [
    ([piece(0, "x", "f"), piece(0, None, None, '{"a"'), piece(0, None, None, ": 1}")], [("f", WHOLE)]),
    ([piece(0, "x", "f", WHOLE), piece(0, "y", "f", WHOLE)], [("f", WHOLE)] * 2),
    ([piece(0, "x", "f", WHOLE), piece(0, "x", "f", WHOLE)], [("f", WHOLE)]),
    ([piece(None, None, "f", WHOLE), piece(None, None, "f", WHOLE)], [("f", WHOLE)] * 2),
    ([piece(1, "y", "g"), piece(0, "x", "f"), piece(1, None, None, "{}"), piece(0, None, None, WHOLE)],
     [("g", "{}"), ("f", WHOLE)]),
    ([piece(None, "x", "f"), piece(None, "y", "g"), piece(None, "x", None, WHOLE)], [("f", WHOLE), ("g", "")]),
    ([piece(0, "x", "f", {"a": 1})], [("f", '{"a":1}')]),
    ([piece(0, "x", "f", '{"a": '), piece(0, None, None, "1}"), piece(0, "x", "f", '{"a":1}')], [("f", WHOLE)]),
    ([CallPiece()], [("", "")]),
], ids=["in pieces", "one index for all", "said twice", "neither index nor id", "in turns", "by id", "an object",
        "once more as a whole", "nothing at all"])
def test_a_piece_finds_its_call(pieces: list[CallPiece], calls: list[tuple[str, str]]) -> None:
    assert told(*pieces) == calls


def test_what_is_whole() -> None:
    call, _, _ = CallAssembler().take(piece(0, "x", "f", '{"a": '))
    assert not call.is_whole and not call.repeats('{"a": 1}')
    call.input.append("1}")
    assert call.is_whole and call.repeats('{"a":1}') and not call.repeats('{"a":2}') and not call.repeats("{}}")
