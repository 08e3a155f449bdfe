"""What cannot be read is told apart from mistakes of the examiners' own."""

from collections.abc import Callable
from typing import Any

import pytest

from conformance.aap.exchange import blocks, of_messages
from conformance.kit.secrets import Redactor
from conformance.kit.transcript import Transcript
from conformance.kit.unreadable_answers import Unreadable, reading


def heard(answer: str = '{"messages": 7}') -> Transcript:
    transcript = Transcript(Redactor(key="s3cret"))
    transcript.sent("GET /history")
    transcript.received(answer)
    return transcript


DAMAGED: list[Callable[[], Any]] = [
    lambda: of_messages([{"role": "tool"}]),
    lambda: of_messages(7),  # type: ignore[arg-type]
    lambda: blocks([None]),
    lambda: blocks(None),
    lambda: [][0],
    lambda: int("many"),
    lambda: {[]: 1},  # type: ignore[dict-item]
    lambda: sorted([1, "a"]),  # type: ignore[type-var]
    lambda: 1 / 0,
]


@pytest.mark.parametrize("read", DAMAGED)
def test_a_value_of_another_shape_is_unreadable(read: Callable[[], Any]) -> None:
    with pytest.raises(Unreadable, match=r'could not be read: .*; what came last: {"messages": 7}'), reading(heard()):
        read()


def test_the_words_of_the_case_are_named() -> None:
    with pytest.raises(Unreadable) as caught, reading(heard()):
        of_messages([{"role": "assistant", "content": [{"type": "image"}]}])
    assert "KeyError: 'url', at `block[\"url\"]` (conformance/aap/exchange.py:" in str(caught.value)


async def test_a_search_that_finds_nothing_is_unreadable() -> None:
    async def look() -> Any:
        return next(item for item in [])

    with pytest.raises(Unreadable, match="StopIteration"), reading(heard()):
        await look()


def test_secrets_do_not_come_back() -> None:
    with pytest.raises(Unreadable) as caught, reading(heard("s3cret")):
        blocks(None)
    assert "s3cret" not in str(caught.value)


def _wrong(one: int) -> None:
    raise RuntimeError("of our own")


OWN: list[tuple[Callable[[], Any], type[Exception]]] = [
    (lambda: _wrong(), TypeError),  # type: ignore[call-arg]
    (lambda: _wrong(two=2), TypeError),  # type: ignore[call-arg]
    (lambda: Transcript()(), TypeError),  # type: ignore[operator]
    (lambda: Transcript().nothing, AttributeError),  # type: ignore[attr-defined]
    (lambda: _wrong(1), RuntimeError),
    (lambda: undefined, NameError),  # type: ignore[name-defined]  # noqa: F821
]


@pytest.mark.parametrize(("mistake", "kind"), OWN)
def test_a_mistake_of_our_own_stays_one(mistake: Callable[[], Any], kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught, reading(heard()):
        mistake()
    assert not isinstance(caught.value, Unreadable)


def test_before_any_answer_nothing_can_be_unreadable() -> None:
    transcript = Transcript()
    transcript.sent("GET /meta")
    with pytest.raises(KeyError), reading(transcript):
        {}["version"]
