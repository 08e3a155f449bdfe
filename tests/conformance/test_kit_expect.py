"""Expectations: silent when met, and saying both sides when not."""

import pytest

from conformance.kit import expect
from conformance.kit.expect import Failed, NotTestable, Unanswered
from conformance.kit.http import Reply


def reply(status: int, body: bytes = b"{}") -> Reply:
    return Reply("GET /x", status, {"Content-Type": "application/json; charset=utf-8"}, body)


def test_what_is_met_is_silent() -> None:
    expect.that(True, "a", "b")
    expect.equal("x", [1], [1])
    expect.member("x", {"a", "b"}, "a")
    expect.subset("x", ["a"], {"a", "b"})
    assert expect.first("x", [7, 8], "all") == 7
    assert expect.keyed("x", {"a": 1}, "a") == reply(200, b'{"a": 1}').object() == {"a": 1}
    assert expect.status(reply(201), 200, 201).status == 201
    assert expect.refused(reply(422), "it is wrong").status == 422
    assert expect.parsed(b'{"a": 1}', "it") == {"a": 1}


@pytest.mark.parametrize(
    ("attempt", "expected", "seen"),
    [
        (lambda: expect.that(False, "rain", {"sun": 1}), "rain", '{"sun":1}'),
        (lambda: expect.equal("the count", 1, 2), "the count: 1", "2"),
        (lambda: expect.member("the mode", {"b", "a"}, "c"), "the mode to be one of a, b", "c"),
        (lambda: expect.member("the mode", {"b", "a"}, 7), "the mode to be one of a, b", "7"),
        (lambda: expect.subset("it", ["a", "c"], ["a"]), "it to include c", '["a"]'),
        (lambda: expect.subset("it", [{}, 7], [[], "a"]), "it to include 7, {}", '[[],"a"]'),
        (lambda: expect.subset("it", ["a"], 7), "it, a list or an object", "7"),  # type: ignore[arg-type]
        (lambda: expect.subset("it", ["a"], "abc"), "it, a list or an object", "abc"),
        (lambda: expect.first("a word", [], {"words": 0}), "a word", '{"words":0}'),
        (lambda: expect.keyed("it", {"a": 1}, "a", "b"), "it, an object with ['a', 'b']", '{"a":1}'),
        (lambda: reply(200, b"[]").object(), "the answer to GET /x, an object", "[]"),
        (lambda: expect.status(reply(500, b"oops"), 200), "GET /x to be answered with 200", "500 oops"),
        (lambda: expect.refused(reply(500), "no"), "GET /x to be refused with a 4xx, because no", "500 {}"),
        (lambda: expect.refused(reply(200), "no"), "GET /x to be refused with a 4xx, because no", "200 {}"),
    ],
)
def test_what_is_not_met_says_both_sides(attempt: object, expected: str, seen: str) -> None:
    with pytest.raises(Failed) as caught:
        attempt()  # type: ignore[operator]
    assert (caught.value.expected, caught.value.seen) == (expected, seen)


def test_what_is_not_json_is_shown() -> None:
    with pytest.raises(Failed, match=r"the body of the answer to GET /x to be JSON .* seen: <html>"):
        reply(200, b"<html>").json()


def test_long_values_are_shortened() -> None:
    assert expect.show("x" * 5000).endswith("(4400 more characters)")
    assert expect.show({1, 2}) == "{1, 2}"


def test_a_scene_that_cannot_be_set_is_not_testable() -> None:
    with pytest.raises(NotTestable, match="could not prepare a session: expected a; seen: b"), expect.preparing(
        "a session"
    ):
        raise Failed("a", "b")


def test_silence_stays_a_failure() -> None:
    with pytest.raises(Unanswered), expect.preparing("a session"):
        raise Unanswered("an answer", "none came")


async def _over() -> bool:
    return True


async def _running() -> bool:
    return False


async def test_what_comes_too_late_for_a_turn_is_not_testable() -> None:
    with pytest.raises(NotTestable, match=r"over before it could be caught running; .*expected a; seen: b"):
        async with expect.while_it_runs(_over):
            raise Failed("a", "b")


@pytest.mark.parametrize(("is_over", "failure"), [(_running, Failed), (_over, Unanswered)])
async def test_what_fails_while_a_turn_runs_has_failed(is_over: object, failure: type[Failed]) -> None:
    with pytest.raises(failure):
        async with expect.while_it_runs(is_over):  # type: ignore[arg-type]
            raise failure("a", "b")
