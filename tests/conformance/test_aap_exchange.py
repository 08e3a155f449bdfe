"""Exchanges: the same turn looks the same however it was told."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from conformance.aap.exchange import blocks, exact, of_events, of_messages, plain

CALL = {"toolCallId": "c1", "name": "calc", "input": {"a": 1}}
MESSAGES = [
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "tool_use", **CALL}]},
    {"role": "tool", "toolCallId": "c1", "content": "2"},
    {"role": "assistant", "content": "It is two."},
]
EVENTS = [
    ("turn_start", {}),
    ("thinking_delta", {"delta": "H"}),
    ("thinking_delta", {"delta": "m."}),
    ("tool_call", CALL),
    ("tool_result", {"toolCallId": "c1", "content": [{"type": "text", "text": "2"}]}),
    ("text_delta", {"delta": ""}),
    ("text_delta", {"delta": "It is two."}),
    ("turn_stop", {"stopReason": "end_turn"}),
]


def test_deltas_wholes_and_messages_give_one_exchange() -> None:
    whole = [("thinking", {"thinking": "Hm."}), *EVENTS[3:5], ("text", {"text": "It is two."})]
    assert of_events(EVENTS) == of_messages(MESSAGES) == of_events(whole)


def test_a_different_word_gives_a_different_exchange() -> None:
    other = [*EVENTS[:-2], ("text_delta", {"delta": "It is three."})]
    assert of_events(other) != of_messages(MESSAGES)


def test_runs_are_compared_without_their_ids() -> None:
    again = [(name, {**body, **({"toolCallId": "c9"} if "toolCallId" in body else {})}) for name, body in EVENTS]
    assert of_events(again) != of_events(EVENTS)
    assert of_events(again).renamed() == of_events(EVENTS).renamed()


def test_a_string_is_one_block_and_an_empty_text_is_none() -> None:
    assert blocks("a") == blocks([{"type": "text", "text": "a"}, {"type": "text", "text": ""}])
    assert blocks("") == []
    assert plain([{"type": "text", "text": "a", "extra": 1}]) == plain("a")


def test_two_blocks_are_not_one() -> None:
    assert plain([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]) != plain("ab")


def test_histories_may_cut_assistant_messages_and_order_results_as_they_like() -> None:
    results = [{"role": "tool", "toolCallId": name, "content": name} for name in ("x", "y")]
    cut = [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": [{"type": "text", "text": "b"}]}]
    assert exact([{"role": "user", "content": "q"}, *results, *cut]) == exact(
        [{"role": "user", "content": "q"}, *reversed(results), {"role": "assistant", "content": "ab"}]
    )


def test_histories_may_not_reorder_or_drop_messages() -> None:
    one, other = {"role": "user", "content": "1"}, {"role": "user", "content": "2"}
    assert exact([one, other]) != exact([other, one])
    assert exact([one, other]) != exact([other])
    assert exact([one]) != exact([{"role": "system", "content": "1"}])


@given(st.text(), st.lists(st.integers(min_value=0, max_value=50)))
def test_any_cut_of_a_text_is_the_same_text(text: str, places: list[int]) -> None:
    bounds = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    deltas = [("text_delta", {"delta": text[a:b]}) for a, b in pairwise(bounds)]
    assert of_events(deltas) == of_events([("text", {"text": text})])
