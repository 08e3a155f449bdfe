"""What is lost is found, and what only comes in other clothes is not called lost."""

from collections.abc import Callable

import pytest

import gateway.model as m
from mappings.language import FEATURES, SupportLevel
from tests.support.pairs.comparison import Comparison
from tests.support.pairs.facts import FactCounter
from tests.support.pairs.reader import TurnReader

CALC = m.ToolCall(call_id="c1", name="calc", input={"expression": "6*7"})
GO_ON = m.ContinuationAsk(turn=1, message="Shall I go on?")
URL = "https://pictures.example/1.png"


def ended(tokens: int) -> m.MessageEnded:
    return m.MessageEnded(
        message_id="m",
        outcome=m.Outcome.COMPLETED,
        stop_reason=m.StopReason.END_TURN,
        usage=m.Usage(input_tokens=tokens),
    )


def original() -> FactCounter:
    """A call, its permission and its result, a word or two, a picture, and what it cost."""
    tally = FactCounter()
    block = {"block_id": "b", "message_id": "m"}
    tally.say(m.BlockEnded(**block, kind=m.BlockKind.TOOL_USE, call=CALC))
    tally.ask(m.PermissionAsk(call=CALC))
    tally.say(m.ToolReturned(call_id="c1", content="42"))
    tally.say(m.BlockEnded(**block, kind=m.BlockKind.IMAGE, image=m.ImagePart(url=URL)))
    tally.say(m.BlockEnded(**block, kind=m.BlockKind.TEXT, text="It is 42."))
    tally.say(ended(5))
    tally.end(m.StopReason.END_TURN, m.Outcome.COMPLETED, None, None)
    return tally


def arrived() -> TurnReader:
    reading = TurnReader()
    reading.call("c1", "calc", {"expression": "6*7"})
    reading.asks["permissions"].append(("calc", {"expression": "6*7"}))
    reading.returned("c1", "42")
    reading.images.append(URL)
    reading.texts.append("It is 42.")
    reading.spent(input_tokens=5)
    reading.stop = "end_turn"
    return reading


def lost(was: FactCounter, now: TurnReader, **lesser: SupportLevel) -> set[str]:
    levels = {name: {lesser.get(name, SupportLevel.FULL)} for name in FEATURES}
    return {name for name, _, _ in Comparison(was, now, levels, None).lost()}


def test_what_arrives_as_it_was_is_not_lost() -> None:
    assert lost(original(), arrived()) == set()


LOSSES: dict[str, Callable[[TurnReader], object]] = {
    "text": lambda now: now.texts.append("!"),
    "thinking": lambda now: now.thoughts.append("Hm."),
    "tool_calls": lambda now: now.calls.update(c1=("calc", {})),
    "tool_results": lambda now: now.results.clear(),
    "permissions": lambda now: now.asks["permissions"].clear(),
    "questions": lambda now: now.asks["questions"].append([("What?", False, [])]),
    "images_out": lambda now: now.images.clear(),
    "notices": lambda now: now.notices.append(("a", "b", "info")),
    "usage": lambda now: now.spent(output_tokens=1),
    "stop_reasons": lambda now: setattr(now, "stop", "refusal"),
    "faults": lambda now: now.faults.append(("backend", "broken")),
    "interrupts": lambda now: setattr(now, "interrupted", True),
    "titles": lambda now: now.titles.append("Trip"),
}


@pytest.mark.parametrize("feature", LOSSES)
def test_whatever_differs_is_found_and_nothing_else(feature: str) -> None:
    now = arrived()
    LOSSES[feature](now)
    assert lost(original(), now) == {feature}


def test_calls_that_are_open_together_are_told_so() -> None:
    was, now = original(), arrived()
    clock = m.ToolCall(call_id="c2", name="clock")
    was.say(m.BlockEnded(block_id="b", message_id="m", kind=m.BlockKind.TOOL_USE, call=clock))
    was.trace[:] = [("c1", True), ("c2", True), ("c1", False)]
    now.call("c2", "clock", {})
    assert lost(was, now) == {"parallel_tools"}


def test_a_stand_in_is_known_by_its_words_and_only_where_it_is_declared() -> None:
    was, now = original(), arrived()
    was.ask(GO_ON)
    now.call("c2", "confirm_continue", {"message": GO_ON.message})
    now.returned("c2", "yes")
    assert lost(was, now, continuations=SupportLevel.FALLBACK) == {"continuations"}
    assert lost(was, now) == {"continuations", "tool_calls", "tool_results"}
    now.call("c3", "rm", {"path": "/"})
    assert lost(was, now, continuations=SupportLevel.FALLBACK) >= {"tool_calls"}


def test_what_sub_agents_ask_is_the_agents_own_where_they_are_not_heard() -> None:
    was, now = original(), arrived()
    was.ask(m.QuestionAsk(questions=(m.Question(question="Which one?"),)), "child")
    now.call("c2", "AskUserQuestion", {"questions": [{"question": "Which one?"}]})
    now.asks["questions"].append([("Which one?", False, [])])
    assert lost(was, now, subagents=SupportLevel.DROPPED) == set()
    assert lost(was, now) == {"tool_calls"}


def test_what_sub_agents_cost_is_not_told_where_they_are_not_heard() -> None:
    was = original()
    was.say(ended(2), "child")
    assert lost(was, arrived(), subagents=SupportLevel.DROPPED) == set()
    assert lost(was, arrived()) == {"usage"}


def test_a_picture_may_be_told_in_words_where_that_is_declared() -> None:
    now = arrived()
    now.texts.insert(0, f"![image]({URL})")
    now.images.clear()
    assert lost(original(), now, images_out=SupportLevel.FALLBACK) == {"images_out"}
    assert lost(original(), now) == {"images_out", "text"}


def test_lesser_forms_are_looked_for_on_the_wire() -> None:
    was = original()
    was.ask(GO_ON)
    found = Comparison(was, arrived(), {name: {SupportLevel.FULL} for name in FEATURES}, None)
    assert found.untold("nothing of it", "continuations")
    assert not found.untold('{"message": "Shall I go on?"}', "continuations")
    assert found.untold("", "images_out")
    assert not found.untold(URL, "images_out")
    assert found.leaked("usage")
    assert not found.leaked("titles")
