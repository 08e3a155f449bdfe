"""Values, asks and pages of servers: what is read leniently, and how a malformed value is named."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.client import (
    PAGE,
    members,
    objects,
    optional_text,
    parse_timestamp,
    read_continuation,
    read_offsets,
    read_pages,
    read_questions,
    read_rollback,
    replace_lone_surrogates,
    require_id,
    require_object,
    require_objects,
    text,
)
from gateway.errors import BackendFailed


@pytest.mark.parametrize("value", [None, 7, True, ["a"], {"a": 1}])
def test_what_is_no_text_is_none(value: Any) -> None:
    assert (text(value), optional_text(value)) == ("", None)


def test_a_text_is_itself() -> None:
    assert (text("a"), optional_text("a"), text(""), optional_text("")) == ("a", "a", "", None)


def test_objects_are_read_and_anything_else_is_passed_over() -> None:
    assert (members({"a": 1}), members([]), members(None)) == ({"a": 1}, {}, {})
    assert objects([{"a": 1}, 2, None, {}]) == [{"a": 1}, {}]
    assert (objects({"a": 1}), objects("ab"), objects(None)) == ([], [], [])


def test_what_must_be_there_is_named_if_it_is_not() -> None:
    assert require_object({"a": 1}, "a turn") == {"a": 1}
    assert require_objects([{"a": 1}], "turns") == [{"a": 1}]
    assert require_objects(None, "turns") == []
    assert require_id({"id": "x"}, "an agent") == "x"
    with pytest.raises(BackendFailed, match=r"^the server sent a turn that is not an object$"):
        require_object([], "a turn")
    with pytest.raises(BackendFailed, match=r"^the server sent turns that are not a list$"):
        require_objects({}, "turns")
    with pytest.raises(BackendFailed, match=r"^the server sent one of turns that is not an object$"):
        require_objects([{}, 3], "turns")
    for body in ({}, {"id": ""}, {"id": 7}):
        with pytest.raises(BackendFailed, match=r"^the server sent an agent that has no id$"):
            require_id(body, "an agent")


@pytest.mark.parametrize(("value", "seconds"), [
    ("1970-01-01T00:01:00Z", 60.0), ("1970-01-01T01:01:00+01:00", 60.0), ("1970-01-01T00:01:00", 60.0),
    ("yesterday", None), (None, None), (60, None),
])
def test_a_time_is_in_utc_unless_it_says_otherwise(value: Any, seconds: float | None) -> None:
    assert parse_timestamp(value) == seconds


@pytest.mark.parametrize(("told", "words"), [
    (r'"\ud83d"', "\ufffd"), (r'"a\ude00b"', "a\ufffdb"), (r'"\ud83d\ude00"', "\U0001f600"),
    (r'"\uD83D\uDE00"', "\U0001f600"),
    (r'"\ud83d\ud83d\ude00"', "\ufffd\U0001f600"), (r'"\\ud83d"', r"\ud83d"), (r'"\\\ud83d"', "\\\ufffd"),
    (r'"\ud83d\n"', "\ufffd\n"), (r'"\u00fc"', "\u00fc"), ('"\U0001f600"', "\U0001f600"),
])
def test_halves_of_characters(told: str, words: str) -> None:
    assert msgspec.json.decode(replace_lone_surrogates(told)) == words


@given(st.text())
def test_whole_characters_stay_as_they_are(text: str) -> None:
    assert replace_lone_surrogates(json.dumps(text)) == json.dumps(text)


@given(st.text(st.characters(categories=("Cs", "Lu"), include_characters='\\\\"ud83')))
def test_halves_anywhere(text: str) -> None:
    found = msgspec.json.decode(replace_lone_surrogates(json.dumps(text)))
    assert found == text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def test_a_choice_keeps_its_place_whatever_it_looks_like() -> None:
    options = [{"label": label, "description": None} for label in ("a", None, 7, [], {})]
    asked = {"question": None, "header": "H", "multi_select": 1, "options": options}
    [question] = read_questions([asked])
    assert (question.question, question.header, question.multi_select) == ("", "H", False)
    assert [choice.label for choice in question.options] == ["a", "", "7", "", ""]
    assert read_questions([{**asked, "options": None}])[0].options == ()


def test_a_rollback_has_states_to_choose_from() -> None:
    states: dict[str, Any] = {"options": [{"id": "a"}], "error": "broke", "reason": ""}
    assert read_rollback(states, "c1") == m.RollbackAsk(task_id="c1", options=({"id": "a"},), error="broke")
    assert read_rollback({**states, "task_id": "t"}, "c1") == m.RollbackAsk(
        task_id="t", options=({"id": "a"},), error="broke")
    assert read_rollback({"options": ["a"]}) is None
    assert read_rollback({}) is None


def test_leave_to_continue_has_a_message() -> None:
    assert read_continuation({"message": "On?", "turn": 3}) == m.ContinuationAsk(message="On?", turn=3)
    assert read_continuation({"message": "On?", "turn": "3"}) == m.ContinuationAsk(message="On?", turn=0)
    assert read_continuation({"turn": 3}) is None


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["options", "label", "message", "turn"]), inner, max_size=4),
)


@given(st.dictionaries(st.sampled_from(["options", "message", "turn", "task_id", "error"]), junk))
def test_no_input_of_a_call_breaks_a_reader(input: dict[str, Any]) -> None:
    rollback, continuation = read_rollback(input), read_continuation(input)
    assert rollback is None or all(isinstance(option, dict) for option in rollback.options)
    assert continuation is None or isinstance(continuation.message, str)


PAGES: dict[str | None, tuple[list[int], str | None]] = {None: ([1, 2], "b"), "b": ([3, 4], "c"), "c": ([5], None)}


class Server:
    """Gives pages, and notes which were asked for."""

    def __init__(self) -> None:
        self.asked: list[str | None] = []

    async def page(self, name: str | None) -> tuple[list[int], str | None]:
        self.asked.append(name)
        return PAGES[name]


@pytest.mark.parametrize(("most", "found", "asked"), [
    (None, [1, 2, 3, 4, 5], [None, "b", "c"]),
    (3, [1, 2, 3], [None, "b"]),
    (2, [1, 2], [None]),
    (9, [1, 2, 3, 4, 5], [None, "b", "c"]),
])
async def test_no_page_is_read_that_is_not_wanted(most: int | None, found: list[int], asked: list[str | None]) -> None:
    server = Server()
    assert await read_pages(server.page, most=most) == found
    assert server.asked == asked


async def test_the_last_item_that_is_wanted_ends_the_list() -> None:
    assert await read_pages(Server().page, is_last=lambda item: item == 4) == [1, 2, 3, 4]


async def test_a_server_that_always_has_another_page_is_not_read_for_ever() -> None:
    async def same(name: str | None) -> tuple[list[int], str | None]:
        return [1], "again"

    async def empty(name: str | None) -> tuple[list[int], str | None]:
        return [], "again"

    assert await read_pages(same, max_pages=7) == [1] * 7
    assert await read_pages(empty, max_pages=10**9) == []


@pytest.mark.parametrize(("most", "kept", "asked"), [
    (250, 1000, [(PAGE, 0), (PAGE, 100), (50, 200)]),
    (250, 120, [(PAGE, 0), (PAGE, 100)]),
    (0, 9, []),
])
async def test_offsets_go_on_while_pages_are_full(most: int, kept: int, asked: list[tuple[int, int]]) -> None:
    wanted: list[tuple[int, int]] = []

    async def page(limit: int, offset: int) -> list[int]:
        wanted.append((limit, offset))
        return list(range(kept))[offset:offset + limit]

    assert await read_offsets(page, most) == list(range(min(most, kept)))
    assert wanted == asked
