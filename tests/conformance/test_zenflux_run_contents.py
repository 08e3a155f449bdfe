"""Stories and runs: events folded into messages, blocks and notes, whatever their order."""

from typing import Any

import pytest

from conformance.kit.expect import Failed, NotTestable
from conformance.zenflux.run import Run
from conformance.zenflux.run_contents import Block, Event, as_blocks, as_object, as_text, fold, plain


def event(kind: str, seq: int = 1, **data: Any) -> Event:
    payload: dict[str, Any] = {"type": kind, "seq": seq, "session_id": "s", "conversation_id": "c", "data": data}
    if kind == "message_start":
        payload["message"] = {"id": data.get("id", "m")}
    return Event(payload)


def start(index: int, kind: str, **more: Any) -> Event:
    return event("content_start", index=index, content_block={"type": kind, **more})


TOLD = [
    event("session_start"),
    event("message_start", id="m1"),
    start(0, "text", text=""),
    event("content_delta", index=0, delta="Hel"),
    event("content_delta", index=0, delta="lo"),
    event("content_stop", index=0),
    start(1, "tool_use", id="t", name="clock", input={}),
    event("content_delta", index=1, delta='{"a":'),
    event("content_delta", index=1, delta=" 1}"),
    event("message_delta", type="usage", content={"stop_reason": "tool_use"}),
    event("message_stop"),
    event("message_start", id="m2"),
    start(2, "tool_result", tool_use_id="t", content="", is_error=False),
    event("content_delta", index=2, delta="noon"),
    event("message_delta", type="confirmation_request", content='{"request_id": "r"}'),
    event("session_end", status="completed"),
]


def told(events: list[Event]) -> Run:
    left = iter(events)

    async def source(run: Run) -> Event | None:
        return next(left, None)

    return Run("the question", source)


def test_messages_are_folded() -> None:
    first, second = fold(TOLD)
    assert (first.id, first.is_stopped, second.id, second.is_stopped) == ("m1", True, "m2", False)
    assert [(block.type, block.said) for block in first.blocks] == [("text", "Hello"), ("tool_use", '{"a": 1}')]
    assert first.blocks[1].input == {"a": 1}
    assert second.blocks[0].content == "noon"


def test_what_has_no_message_is_folded_too() -> None:
    (nameless,) = fold([start(0, "text", text=""), event("content_delta", index=5, delta="?"), event("message_stop")])
    assert (nameless.id, nameless.blocks[0].said, nameless.is_stopped) == (None, "", True)


def test_a_call_without_deltas_has_the_input_of_its_start() -> None:
    assert Block(0, {"type": "tool_use", "input": {"a": 1}}).input == {"a": 1}
    with pytest.raises(Failed, match="to be JSON"):
        _ = Block(0, {"type": "tool_use", "input": {}}, ["{"]).input


@pytest.mark.parametrize("given", [{"a": 1}, '{"a": 1}'])
def test_an_object_may_be_json_in_a_string(given: Any) -> None:
    assert as_object(given, "it") == {"a": 1}


@pytest.mark.parametrize("given", ["[]", 7, None, "{"])
def test_other_things_are_no_objects(given: Any) -> None:
    with pytest.raises(Failed):
        as_object(given, "it")


def test_spelling_does_not_matter() -> None:
    assert plain({"b": 1, "a": [2]}) == plain({"a": [2], "b": 1})


async def test_a_run_is_read_as_far_as_wanted() -> None:
    run = told(TOLD)
    assert (await run.until("content_delta")).data["delta"] == "Hel"
    await run.until_note("usage")
    assert run.names[-1] == "message_delta"
    await run.completed()
    assert run.text == "Hello"
    assert run.request == {"request_id": "r"}
    assert run.one("tool_result").start["tool_use_id"] == "t"


async def test_what_does_not_come_is_missed() -> None:
    with pytest.raises(Failed, match="error in the run of the question") as failure:
        await told(TOLD).until("error", owner="ZF-EV-35")
    assert failure.value.owner == "ZF-EV-35"
    with pytest.raises(NotTestable, match="does not bring about error"):
        await told(TOLD).until("error")
    with pytest.raises(NotTestable, match="does not bring about `search`"):
        (await told(TOLD).completed()).note("search")


def numbered(*given: tuple[int, Event]) -> list[Event]:
    return [Event({**item.payload, "seq": number}) for number, item in given]


STARTED, ENDED = event("session_start"), event("session_end", status="completed")
OPENED, CLOSED = start(0, "text", text=""), event("content_stop", index=0)
DELTA = event("content_delta", index=0, delta="Hello")


@pytest.mark.parametrize(
    ("events", "owner"),
    [
        (numbered((1, STARTED), (2, OPENED), (4, CLOSED)), "ZF-ENV-03"),  # an event is lost
        (numbered((1, STARTED), (2, OPENED), (4, DELTA), (3, OPENED)), "ZF-ENV-03"),  # an event is late
        (numbered((1, STARTED), (2, OPENED), (6, DELTA), (7, CLOSED)), None),  # deltas were merged
        (numbered((1, STARTED), (3, OPENED), (5, CLOSED)), None),  # all numbers are wrong
        (numbered((1, STARTED), (2, DELTA)), "ZF-EV-30"),
        (numbered((1, STARTED), (2, OPENED), (3, ENDED)), "ZF-EV-34"),
    ],
)
async def test_what_is_lost_is_the_cause_of_what_else_fails(events: list[Event], owner: str | None) -> None:
    run = await told(events).finish()
    assert [item.owner for item in run.departures.noted if item.is_misleading] == ([owner] if owner else [])


async def test_a_run_without_its_end_is_read_as_far_as_it_goes() -> None:
    run = await told(TOLD[:-1]).completed()
    assert [item.owner for item in run.departures.noted] == ["ZF-SEQ-08"]
    assert run.text == "Hello"


async def test_a_good_run_that_ends_otherwise_is_noted() -> None:
    run = await told([*TOLD[:-1], event("session_end", status="failed")]).completed()
    assert [item.owner for item in run.departures.noted] == ["ZF-EV-03"]


async def test_a_run_that_broke_shows_nothing_else() -> None:
    broken = [*TOLD[:-1], event("error", error={"type": "internal_error"}), event("session_end", status="failed")]
    with pytest.raises(NotTestable, match="internal_error"):
        await told(broken).completed()


@pytest.mark.parametrize("content", [[{"type": "text", "text": "Hi"}], '[{"type": "text", "text": "Hi"}]', "Hi"])
def test_a_kept_content_is_a_text_or_blocks_in_either_spelling(content: Any) -> None:
    assert as_text(content) == "Hi"


@pytest.mark.parametrize("content", ["[not json", "[1, 2]", "plain"])
def test_other_strings_are_texts(content: str) -> None:
    assert (as_blocks(content), as_text(content)) == (None, content)
