"""The turn that a function has: what it says, asks and may do, from a task and from a thread."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import gateway.model as m
from gateway.backends import Tool, ToolCallResult, ToolExecutor
from gateway.client import EventWriter
from tests.support.backends.function_backends import function_backend
from tests.support.backends.turn_driver import FakeTurn, play, tell


async def asking(turn: Any) -> AsyncIterator[str]:
    yield "Hm. "
    colour = await turn.ask_user("Which colour?", ["Red", "Green"], header="Colour")
    yield f"You like {colour!r}."


def asking_plainly(turn: Any) -> Iterator[str]:
    yield "Hm. "
    colour = turn.ask_user("Which colour?", ["Red", "Green"], header="Colour")
    yield f"You like {colour!r}."


def answering(make: Callable[[str], m.Answer]) -> Callable[[m.AnyAsk, str], m.Answer]:
    return lambda ask, request_id: make(request_id)


@pytest.mark.parametrize("agent", [asking, asking_plainly])
@pytest.mark.parametrize(("answer", "words", "result"), [
    (lambda id: m.AnswerQuestion(request_id=id, selections={"0": (1,)}), "Green", "Green"),
    (lambda id: m.AnswerQuestion(request_id=id, custom={"0": "Blue"}), "Blue", "Blue"),
    (lambda id: m.ReturnResult(request_id=id, content="Mauve"), "Mauve", "Mauve"),
    (lambda id: m.Withdraw(request_id=id), "", "Tool call cancelled"),
])
async def test_a_question_is_answered_in_words(agent: Any, answer: Any, words: str, result: str) -> None:
    turn = await tell("go", backend=function_backend(agent), answering=answering(answer))
    assert turn.text == f"Hm. You like {words!r}."
    assert turn.stops == [m.StopReason.TOOL_USE, m.StopReason.END_TURN], (
        "the message was ended before anybody was asked"
    )
    assert turn.results == [result]
    [[ask]] = turn.asks
    assert ask.questions[0].header == "Colour"  # type: ignore[union-attr]
    assert ask.call.name == "AskUserQuestion"  # type: ignore[union-attr]


async def test_any_ask_ends_the_message_first() -> None:
    async def going_on(turn: Any) -> AsyncIterator[str]:
        yield "So far. "
        [answer] = await turn.ask(m.ContinuationAsk(turn=1, message="Go on?"))
        yield str(answer.proceed)

    turn = await tell("go", backend=function_backend(going_on))
    assert turn.stops == [m.StopReason.NEEDS_INPUT, m.StopReason.END_TURN]
    assert turn.text == "So far. True"


async def permitted(turn: Any) -> str:
    return "yes" if await turn.permission("send_mail", {"to": "Ann"}, title="Send it?") else "no"


def permitted_plainly(turn: Any) -> str:
    return "yes" if turn.permission("send_mail", {"to": "Ann"}, title="Send it?") else "no"


@pytest.mark.parametrize("agent", [permitted, permitted_plainly])
@pytest.mark.parametrize("granted", [True, False])
async def test_a_person_permits_or_does_not(agent: Any, granted: bool) -> None:
    turn = await tell("go", backend=function_backend(agent), answering=answering(
        lambda id: m.DecidePermission(request_id=id, granted=granted, reason=None if granted else "no mail today")))
    assert turn.text == ("yes" if granted else "no")
    [back] = turn.all(m.ToolReturned)
    assert back.content == ("Permission granted" if granted else "Tool call denied: no mail today")


@pytest.mark.parametrize(("permission", "text"), [(m.Permission.ALLOW, "yes"), (m.Permission.DENY, "no")])
async def test_what_the_session_has_settled_is_not_asked(permission: m.Permission, text: str) -> None:
    turn = await tell("go", backend=function_backend(permitted), settings=m.Settings(tools={"send_mail": permission}))
    assert (turn.text, turn.asks) == (text, [])


async def test_where_nobody_is_there_nobody_is_asked() -> None:
    turn = await tell(m.SendMessage(content="go", headless=True), backend=function_backend(permitted))
    assert (turn.text, turn.asks) == ("yes", [])
    turn = await tell(m.SendMessage(content="go", mode="planning"), backend=function_backend(permitted))
    assert (turn.text, turn.asks) == ("no", [])


async def test_a_tool_round_works_beside_strings() -> None:
    async def measure(input: dict[str, Any], out: Any) -> ToolCallResult:
        return ToolCallResult(content=str(len(input["text"])))

    async def surveying(text: str, turn: Any) -> AsyncIterator[Any]:
        tools, writer = {"measure": Tool(m.ToolSpec(name="measure"), measure)}, EventWriter(turn)
        yield "Let me see. "
        yield [writer.start_message(), *writer.call("measure", {"text": text}, permission=m.Permission.ASK)]
        yield writer.end_message(stop_reason=m.StopReason.TOOL_USE)
        round = ToolExecutor(turn, writer, tools)
        async for said in round.run():
            yield said
        [back] = round.results.values()
        yield f"It has {back.content} characters."

    turn = await tell("seven", backend=function_backend(surveying))
    assert turn.text == "Let me see. It has 5 characters."
    assert turn.stops == [m.StopReason.END_TURN, m.StopReason.TOOL_USE, m.StopReason.END_TURN]
    assert len(turn.asks) == 1


async def test_all_that_a_turn_has_can_be_read() -> None:
    async def reading(turn: Any) -> str:
        return f"{turn.session_id} {turn.turn_id} {turn.agent.name} {turn.command.content} {len(turn.history)}"

    turn = FakeTurn(m.SendMessage(content="go"))
    assert (await play(function_backend(reading), turn)).text == "sess_1 turn_1 demo go 0"


async def test_ids_come_in_the_order_of_the_code() -> None:
    """A turn that is run anew must mint the same ids: what strings need is minted where they are said."""
    async def minting(turn: Any) -> AsyncIterator[str]:
        yield "a"
        yield turn.mint("x")

    def minting_plainly(turn: Any) -> Iterator[str]:
        yield "a"
        yield turn.mint("x")

    for agent in (minting, minting_plainly):
        assert (await tell("go", backend=function_backend(agent))).text == "ax_3"
