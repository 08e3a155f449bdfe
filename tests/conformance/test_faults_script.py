"""The reference agent: directives become moves, in the order written."""

import pytest

from conformance.faults.script import Break, Call, Fork, Move, Show, Speak, Stop, script, words


def test_plain_words_are_repeated_word_by_word() -> None:
    assert script("Hi there").moves == [Speak("text", ("You ", "said: ", "Hi ", "there")), Stop("end_turn")]


@pytest.mark.parametrize("text", ["", "one", " two  words ", "tabs\tand\nlines"])
def test_words_add_up(text: str) -> None:
    assert "".join(words(text)) == text


@pytest.mark.parametrize(
    ("directive", "move"),
    [
        ("/tool", Call((("clock", {}),))),
        ('/tool calc {"a": 1}', Call((("calc", {"a": 1}),))),
        ("/client-tool", Call(((None, {"word": "dragoman"}),))),
        ("/permit", Call((("search", {"query": "dragoman"}),))),
        ("/refuse", Stop("refusal")),
        ("/fail-start", Break()),
        ("/image", Show("https://example.com/picture.png")),
        ("/fork", Fork(asking=False)),
        ("/fork-ask", Fork(asking=True)),
        ("/slow 2", Speak("text", ("tick 0 ", "tick 1 "), pause=0.05)),
        ("/burst 2", Speak("text", ("tick 0 ", "tick 1 "))),
    ],
)
def test_a_directive_is_a_move(directive: str, move: Move) -> None:
    assert script(directive).moves[0] == move


def test_directives_are_obeyed_in_the_order_written() -> None:
    moves = script("/think /max-tokens /fail").moves
    assert [type(move) for move in moves] == [Speak, Speak, Stop, Speak, Break, Speak, Stop]


def test_three_tools_are_called_at_once() -> None:
    (call, *_) = script("/parallel").moves
    assert isinstance(call, Call)
    assert [name for name, _ in call.tools] == ["clock", "calc", None]


def test_unknown_directives_are_text() -> None:
    assert script("/dance").moves[0] == Speak("text", ("You ", "said: ", "/dance"))
