"""What a turn is made of, seen without its words."""

import gateway.model as m
from gateway.backends.shadow import TurnStructure, differences
from gateway.client import EventWriter
from gateway.errors import RateLimited
from gateway.ports import BackendEvent, ScopedEvent


class Ids:
    def __init__(self) -> None:
        self.last = 0

    def mint(self, prefix: str) -> str:
        self.last += 1
        return f"{prefix}_{self.last}"


def facts(*said: BackendEvent | list[BackendEvent]) -> list[str]:
    structure = TurnStructure()
    for one in said:
        for event in one if isinstance(one, list) else [one]:
            structure.add(event)
    return structure.facts


def test_words_do_not_count_and_neither_does_how_they_are_cut() -> None:
    writer, other = EventWriter(Ids()), EventWriter(Ids())
    first = facts(writer.start_message(), writer.text("Hello"), writer.text(" there"), writer.end_message())
    second = facts(
        other.start_message(), other.text("Good day"), other.end_message(),
        other.start_message(), other.text("!"), other.end_message(),
    )
    assert first == second == ["text", "ended: end_turn"]


def test_calls_count_by_name_and_by_the_names_of_what_they_are_given() -> None:
    writer = EventWriter(Ids())
    said = facts(
        writer.start_message(), writer.think("hm"), writer.call("search", {"query": "x", "limit": 1}, call_id="c"),
        writer.end_message(stop_reason=m.StopReason.TOOL_USE), m.ToolReturned(call_id="c", content="y", is_error=True),
    )
    assert said == ["thinking", "call search(limit, query)", "result of search: error", "ended: end_turn"]


def test_results_of_calls_that_ran_side_by_side_come_in_any_order() -> None:
    def told(*order: str) -> list[str]:
        writer = EventWriter(Ids())
        return facts(
            writer.start_message(), writer.call("a", call_id="1"), writer.call("b", call_id="2"), writer.end_message(),
            [m.ToolReturned(call_id=name) for name in order],
            writer.start_message(), writer.text("done"), writer.end_message(stop_reason=m.StopReason.MAX_TOKENS),
        )

    assert told("1", "2") == told("2", "1")
    assert told("1", "2")[-1] == "ended: max_tokens"


def test_sub_agents_asks_and_failures_count() -> None:
    structure = TurnStructure()
    structure.add(ScopedEvent("s", m.ScopeOpened(parent="root")))
    writer = EventWriter(Ids(), "s")
    for said in [writer.start_message(), *writer.text("below"), writer.end_message()]:
        structure.add(said)
    call = m.ToolCall(call_id="c", name="book")
    structure.ask(
        [m.QuestionAsk(questions=(m.Question(question="a"), m.Question(question="b"))), m.PermissionAsk(call=call)]
    )
    structure.ask([m.ClientToolAsk(call=call)], "s")
    structure.add(m.SessionCompacted(compaction_id="x", summary="y"))
    structure.fail(RateLimited("slowly"))
    assert structure.facts == [
        "sub-agent opened", "sub-agent: text", "asked: question (2)", "asked: permission book",
        "sub-agent: asked: client_tool book", "compacted", "failed: rate_limited",
    ]


def test_differences_say_where_and_what() -> None:
    first, second = ["text", "call a()", "ended: end_turn"], ["text", "call b()", "ended: end_turn"]
    assert differences(first, first) == []
    assert differences(first, second) == [{"at": 1, "first": ["call a()"], "second": ["call b()"]}]
    assert differences(first, first[:1]) == [{"at": 1, "first": first[1:], "second": []}]
