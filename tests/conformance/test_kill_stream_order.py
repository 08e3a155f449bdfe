"""What a injector does to a stream: its order, its numbers, its framing."""

from typing import Any

import pytest
from multidict import CIMultiDict

from conformance.faults.kill.flaw import Flaw
from conformance.faults.kill.framing import ALLOWED, FRAMINGS
from conformance.faults.kill.injector import Injector, other_type
from conformance.faults.kill.orders import Order, Orders
from conformance.faults.kill.stream_order import DISORDERS
from conformance.faults.proxy.interceptor import Answer, Cut, PassedMessage, StreamInterceptor
from conformance.kit.sse import SseParser

ORDERS = Orders(streams={"sse": Order(last=("end",))}, masks=("***",))
TURN = ["start", "a", "a", "b", "end"]


def injector(*flaws: Flaw) -> Injector:
    return Injector(flaws, ORDERS, lambda name, json: name)


def left(stream: StreamInterceptor, names: list[str]) -> list[str]:
    """The names that are passed on, each occurrence numbered so that order can be seen."""
    seen: dict[str, int] = {}
    found: list[str] = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        passed = stream.message(PassedMessage("sse", name, {"n": seen[name]}))
        found += [f"{message.name}{message.json['n']}" for message in passed]
    return found + [f"{message.name}{message.json['n']}" for message in stream.ended()]


@pytest.mark.parametrize(
    ("kind", "event", "path", "expected"),
    [
        ("lose", "a", "", "start1 b1 end1"),
        ("first-lost", "a", "", "start1 a2 b1 end1"),
        ("double", "a", "", "start1 a1 a1 a2 b1 end1"),
        ("swap", "a", "b", "start1 a1 b1 a2 end1"),
        ("swap", "a", "a", "start1 a2 a1 b1 end1"),
        ("late", "a", "", "start1 a2 b1 end1 a1"),
        ("after", "start", "", "start1 a1 a2 b1 end1 start1"),
        ("after", "end", "", "start1 a1 a2 b1 end1 end1"),
    ],
)
def test_disorders(kind: str, event: str, path: str, expected: str) -> None:
    interceptor = injector(Flaw(kind, f"sse {event}", path))
    assert left(interceptor.stream("sse"), TURN) == expected.split()
    assert interceptor.strikes == (2 if (kind, event) == ("lose", "a") else 1)


def test_every_turn_of_a_stream_is_disturbed() -> None:
    twice = left(injector(Flaw("late", "sse b")).stream("sse"), TURN + TURN)
    assert [name for name in twice if name[0] in "be"] == ["end1", "b1", "end2", "b2"]


def test_what_is_held_comes_when_the_stream_ends_early() -> None:
    assert left(injector(Flaw("late", "sse a")).stream("sse"), ["start", "a"]) == ["start1", "a1"]


def test_a_cut_comes_before_its_event() -> None:
    stream = injector(Flaw("cut", "sse end")).stream("sse")
    left(stream, TURN[:-1])
    with pytest.raises(Cut):
        stream.message(PassedMessage("sse", "end", {}))


def test_other_channels_are_left_alone() -> None:
    message = PassedMessage("ws", "a", {"n": 1})
    assert [*injector(Flaw("lose", "sse a")).stream("ws").message(message)] == [message]


@pytest.mark.parametrize(("kind", "expected"), [("gap", [1, 3, 4]), ("repeat", [1, 1, 2])])
def test_numbers_have_a_gap_or_a_repeat(kind: str, expected: list[int]) -> None:
    stream = injector(Flaw(kind, "sse *", "n,deep.n")).stream("sse")
    message = [stream.message(PassedMessage("sse", "a", {"n": n, "deep": {"n": n}}))[0].json for n in (1, 2, 3)]
    assert [item["n"] for item in message] == [item["deep"]["n"] for item in message] == expected


BLOCK = 'event: a\ndata: {"text": "ä中"}\n\n'.encode()


def read(pieces: Any) -> list[tuple[str, str]]:
    parser = SseParser()
    return [(event.event, event.data) for piece in pieces for event in parser.feed(piece)]


@pytest.mark.parametrize("kind", FRAMINGS)
def test_framings_keep_the_event_if_and_only_if_they_are_allowed(kind: str) -> None:
    stream = injector(Flaw(kind, "sse")).stream("sse")
    pieces = [piece for _ in range(2) for piece in stream.framed(BLOCK)]
    found = [(name, "".join(data.split())) for name, data in read(pieces)]
    assert (found == [("a", '{"text":"ä中"}')] * 2) == (kind in ALLOWED)
    assert b"".join(pieces) != BLOCK * 2


def test_utf8_is_cut_within_characters() -> None:
    pieces = FRAMINGS["utf8"](BLOCK, True)
    with pytest.raises(UnicodeDecodeError):
        [piece.decode() for piece in pieces]


def test_every_kind_of_disorder_says_what_it_is() -> None:
    assert all(kind.__doc__ for kind in DISORDERS.values())


# -- answers -----------------------------------------------------------------------------------------------------------


def answer(json: Any, status: int = 200) -> Answer:
    headers = CIMultiDict({"Content-Type": "application/json"})
    return Answer("GET /x", status, headers, b"").saying(json)


def test_an_answer_gets_another_status_type_or_half_its_body() -> None:
    assert injector(Flaw("status", "GET /x 200", "500")).answered(answer({})).status == 500
    assert injector(Flaw("mime", "GET /x 200")).answered(answer({})).headers["Content-Type"] == "text/plain"
    assert injector(Flaw("garble", "GET /x 200")).answered(answer({"a": 1})).raw == b'{"a"'
    assert other_type("text/event-stream; charset=utf-8") == "application/json"


def test_an_answer_of_another_place_is_left_alone() -> None:
    interceptor = injector(Flaw("drop", "GET /x 404", "a"))
    assert interceptor.answered(answer({"a": 1})).json == {"a": 1}
    assert interceptor.strikes == 0
    assert interceptor.answered(answer({"a": 1}, 404)).json == {}
    assert interceptor.strikes == 1


def test_a_masked_secret_is_shown() -> None:
    interceptor = injector(Flaw("unmask", "GET /x 200", "options.key"))
    interceptor.asked({"options": [{"key": "hunter2"}]})
    assert interceptor.answered(answer({"options": {"key": "***"}})).json == {"options": {"key": "hunter2"}}
    assert interceptor.answered(answer({"options": {"key": "plain"}})).json == {"options": {"key": "plain"}}
    assert interceptor.strikes == 1


def test_a_cursor_stays_the_first_one() -> None:
    interceptor = injector(Flaw("stale", "GET /x 200", "next"))
    answers = [interceptor.answered(answer({"next": name})) for name in ("one", "two", "three")]
    assert [item.json["next"] for item in answers] == ["one"] * 3
    assert interceptor.strikes == 2
