"""Whatever shape a function has, it answers; whatever it does wrong, the turn ends well and the journal knows where."""

import asyncio
import functools
import io
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import pytest

import gateway.model as m
from gateway import logging
from gateway.client import EventWriter
from gateway.errors import RateLimited, Unsupported
from tests.support.backends.function_backends import PATIENCE, FunctionTurns, function_backend
from tests.support.backends.turn_driver import FakeTurn, play, tell
from tests.support.gateway_server import until

# -- every shape ------------------------------------------------------------------------------------------------------

async def async_generator(text: str) -> AsyncIterator[str]:
    for word in text.split():
        yield word.upper()


async def coroutine(text: str) -> str:
    return text.upper().replace(" ", "")


def generator(text: str) -> Iterator[str]:
    for word in text.split():
        yield word.upper()


def function(text: str) -> str:
    return text.upper().replace(" ", "")


def returning_a_list(text: str) -> list[Any]:
    return [word.upper() for word in text.split()] + [m.NoticePosted(topic="t", title="t")]


def returning_an_iterator(text: str) -> Iterator[str]:
    return map(str.upper, text.split())


async def saying(text: str, turn: Any) -> None:
    await turn.say(*text.upper().split())


def saying_in_a_thread(text: str, turn: Any) -> None:
    turn.say(*text.upper().split())


def decorated(kind: Any) -> Any:
    @functools.wraps(kind)
    def call(*given: Any, **named: Any) -> Any:
        return kind(*given, **named)
    return call


@pytest.mark.parametrize("agent", [
    async_generator, coroutine, generator, function, returning_a_list, returning_an_iterator, saying,
    saying_in_a_thread, decorated(async_generator), decorated(coroutine),
])
async def test_every_shape_answers(agent: Any) -> None:
    assert (await tell("one two", backend=function_backend(agent))).text == "ONETWO"


async def test_strings_stream() -> None:
    turn = await tell("one two", backend=function_backend(async_generator))
    assert [event.delta for event in turn.all(m.BlockDelta)] == ["ONE", "TWO"]
    assert turn.stops == [m.StopReason.END_TURN]


async def test_the_message_names_the_model_of_the_card() -> None:
    turn = await tell("one", backend=function_backend(function))
    assert turn.all(m.MessageStarted)[0].model == turn.agent.model


async def test_more_strings_than_may_be_on_the_way() -> None:
    def many() -> Iterator[str]:
        for number in range(1000):
            yield f"{number} "

    async def many_async() -> AsyncIterator[str]:
        for number in range(1000):
            yield f"{number} "

    expected = "".join(many())
    assert (await tell("go", backend=function_backend(many))).text == expected
    assert (await tell("go", backend=function_backend(many_async))).text == expected


async def test_after_an_event_the_function_goes_on_when_it_is_said() -> None:
    seen = []

    async def rename(turn: Any) -> AsyncIterator[Any]:
        yield "a"
        yield m.SessionUpdated(metadata={"colour": "red"})
        seen.append(dict(turn.metadata))

    async with FunctionTurns(function_backend(rename)) as turn:
        assert (await turn.end()).outcome is m.Outcome.COMPLETED
    assert seen == [{"colour": "red"}]


async def test_history_is_not_compacted_behind_the_functions_back() -> None:
    with pytest.raises(Unsupported, match="'demo' cannot compact"):
        await play(function_backend(function), FakeTurn(m.Compact()))


# -- blocking, and not ending -----------------------------------------------------------------------------------------

async def test_a_plain_function_that_blocks_blocks_nobody() -> None:
    entered, may_go = threading.Event(), threading.Event()

    def slow() -> str:
        entered.set()
        assert may_go.wait(300)
        return "done"

    async with FunctionTurns(function_backend(slow)) as turn:
        await until(entered.is_set)
        await asyncio.sleep(0)  # the loop turns
        may_go.set()
        assert (await turn.end()).outcome is m.Outcome.COMPLETED


async def test_an_interrupted_generator_is_stopped_at_its_next_yield() -> None:
    entered, may_go, closed, went_on = (threading.Event() for _ in range(4))

    def chatty() -> Iterator[str]:
        try:
            yield "one"
            entered.set()
            assert may_go.wait(300)
            yield "two"
            went_on.set()
        finally:
            closed.set()

    async with FunctionTurns(function_backend(chatty)) as turn:
        await until(entered.is_set)
        turn.session.submit([m.Interrupt()])
        assert (await turn.end()).outcome is m.Outcome.INTERRUPTED
        may_go.set()
        await until(closed.is_set)
    assert not went_on.is_set()


async def test_a_function_that_hangs_is_not_waited_for_and_told() -> None:
    entered, may_go, ended = threading.Event(), threading.Event(), threading.Event()

    def hanging() -> str:
        entered.set()
        may_go.wait(300)
        ended.set()
        return "too late"

    backend = function_backend(hanging, patience=PATIENCE)
    async with FunctionTurns(backend) as turn:
        await until(entered.is_set)
        turn.session.submit([m.Interrupt()])
        assert (await turn.end()).outcome is m.Outcome.INTERRUPTED
        assert not ended.is_set()
        await until(lambda: turn.of("agent_still_running"))
        [line] = turn.of("agent_still_running")
        assert (line["agent"], line["function"]) == ("agent", "test:hanging")
        assert __file__ in line["at"]
        assert line["at"].endswith("in hanging")
        await backend.close()
        assert not ended.is_set(), "nor does the server wait for it when it stops"
        may_go.set()
        await until(ended.is_set)


async def test_a_task_that_will_not_be_cancelled_is_told() -> None:
    entered, may_go, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def stubborn() -> str:
        entered.set()
        while not may_go.is_set():
            with suppress(asyncio.CancelledError):
                await may_go.wait()
        ended.set()
        return "fine"

    async with FunctionTurns(function_backend(stubborn, patience=PATIENCE)) as turn:
        await until(entered.is_set)
        turn.session.submit([m.Interrupt()])
        assert (await turn.end()).outcome is m.Outcome.INTERRUPTED
        await until(lambda: turn.of("agent_still_running"))
        may_go.set()
        await until(ended.is_set)


async def never() -> AsyncIterator[str]:
    await asyncio.Event().wait()
    yield "never"


async def test_one_that_never_yields_is_interrupted_at_once() -> None:
    async with FunctionTurns(function_backend(never)) as turn:
        turn.session.submit([m.Interrupt()])
        assert turn.session.run is None, "without waiting for anything"
        assert (await turn.end()).outcome is m.Outcome.INTERRUPTED


async def test_one_that_never_yields_is_ended_by_the_limit() -> None:
    async with FunctionTurns(function_backend(never), turn_seconds=0.05) as turn:
        ended = await turn.end()
    assert (ended.outcome, ended.stop_reason) == (m.Outcome.FAILED, m.StopReason.TIMEOUT)


async def test_threads_are_bounded() -> None:
    at_work, may_go = list[str](), threading.Event()

    def working() -> str:
        at_work.append(threading.current_thread().name)
        may_go.wait(300)
        return "done"

    backend = function_backend(working, threads=2)
    turns = asyncio.gather(*(tell("go", backend=backend) for _ in range(8)))
    await until(lambda: len(at_work) >= 2 and len(backend._threads._free._waiters or ()) == 6)
    assert len(at_work) == 2, "the others wait for a place"
    may_go.set()
    assert [turn.text for turn in await turns] == ["done"] * 8


# -- what goes wrong --------------------------------------------------------------------------------------------------

async def raising_async() -> AsyncIterator[str]:
    yield "so far "
    raise ValueError("the secret is 42")


def raising() -> str:
    raise ValueError("the secret is 42")


def raising_stop() -> str:
    return next(iter([]))


async def leaving() -> str:
    raise SystemExit(3)


RAISING = [
    (raising_async, "ValueError", 2), (raising, "ValueError", 1), (raising_stop, "StopIteration", 1),
    (leaving, "SystemExit", 1),
]


@pytest.mark.parametrize(("agent", "error", "after"), RAISING)
async def test_one_that_raises_is_named_and_its_traceback_is_nobodys_to_read(
    agent: Any, error: str, after: int,
) -> None:
    async with FunctionTurns(function_backend(agent)) as turn:
        ended = await turn.end()
        records = await turn.records()
    assert ended.fault is not None
    assert ended.fault.message == "The agent 'agent' failed unexpectedly."
    assert ended.fault.code is m.FaultCode.INTERNAL
    told = [str(record.event) for record in records]
    assert not any("42" in event or error in event or __file__ in event for event in told)


@pytest.mark.parametrize(("agent", "error", "after"), RAISING)
async def test_the_journal_has_the_line_that_raised(
    journal_for_a_while: None, agent: Any, error: str, after: int,
) -> None:
    stream = io.StringIO()
    logging.configure_logging("json", "info", stream)
    async with FunctionTurns(function_backend(agent), captured=False) as turn:
        await turn.end()
    line = next(line for line in stream.getvalue().splitlines() if "agent_failed" in line)
    entry, code = json.loads(line), agent.__code__
    assert entry["agent"] == "agent"
    assert f'{code.co_filename}", line {code.co_firstlineno + after}, in {agent.__name__}' in entry["exception"]
    assert error in entry["exception"]


async def test_a_fault_of_ones_choice_is_told_as_it_is() -> None:
    def limited() -> str:
        raise RateLimited("Come again tomorrow.")

    async with FunctionTurns(function_backend(limited)) as turn:
        ended = await turn.end()
    assert ended.fault is not None
    assert (ended.fault.code, ended.fault.message) == (m.FaultCode.RATE_LIMITED, "Come again tomorrow.")


async def yielding_none() -> AsyncIterator[Any]:
    yield "fine "
    yield None


def yielding_none_plainly() -> Iterator[Any]:
    yield "fine "
    yield None


async def returning_none() -> None:
    pass


def returning_a_number() -> int:
    return 7


@pytest.mark.parametrize(("agent", "kind", "after"), [
    (yielding_none, "NoneType", 2), (yielding_none_plainly, "NoneType", 2), (returning_none, "NoneType", 0),
    (returning_a_number, "int", 0),
])
async def test_nonsense_is_told_with_its_type_and_the_agent(agent: Any, kind: str, after: int) -> None:
    async with FunctionTurns(function_backend(agent)) as turn:
        ended = await turn.end()
        [line] = turn.of("agent_output_unsupported")
    assert ended.fault is not None
    assert ended.fault.message.startswith(f"The agent 'agent' sent a value of type {kind}; it may send strings")
    code = agent.__code__
    assert line["at"].startswith(f"{code.co_filename}:{code.co_firstlineno + after}")
    assert (line["agent"], line["type"]) == ("agent", kind)


async def test_an_event_that_breaks_a_law_is_a_fault() -> None:
    async def unlawful(turn: Any) -> AsyncIterator[Any]:
        writer = EventWriter(turn)
        yield [writer.start_message(), writer.start(), writer.delta("x")]
        yield m.MessageStarted(message_id="another")

    async with FunctionTurns(function_backend(unlawful)) as turn:
        ended = await turn.end()
    assert ended.fault is not None
    assert "broke the laws" in ended.fault.message


async def test_to_ask_within_a_message_of_ones_own_is_told() -> None:
    async def hasty(turn: Any) -> AsyncIterator[Any]:
        yield EventWriter(turn).start_message()
        with pytest.raises(m.GrammarError, match="must be ended before anybody is asked"):
            await turn.ask_user("Now?")
        raise RateLimited("seen")

    async with FunctionTurns(function_backend(hasty)) as turn:
        ended = await turn.end()
    assert ended.fault is not None
    assert ended.fault.message == "seen"
