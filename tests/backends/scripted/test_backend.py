"""A scripted agent does what its scenario says, nonsense included."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from gateway.backends.kinds import BackendContext, kind_of
from gateway.backends.scripted import ScriptedBackend, load_scenario
from gateway.backends.scripted.backend import ERROR_CLASSES, answer_as_text, split_text
from gateway.errors import BackendFailed, GatewayError, Overloaded
from tests.support.backends.turn_driver import FakeTurn, play, tell

FILE = Path(__file__).parent / "scenarios" / "talk.yaml"


def scripted(sleeps: list[float] | None = None) -> ScriptedBackend:
    async def sleep(seconds: float) -> None:
        if sleeps is not None:
            sleeps.append(seconds)

    return ScriptedBackend(load_scenario(FILE), clock=lambda: 0.0, sleep=sleep)


async def talk(message: str, **given: Any) -> FakeTurn:
    return await tell(message, backend=scripted(), **given)


async def test_words_and_thoughts() -> None:
    turn = await talk("Hello, you")
    thought, said = turn.all(m.BlockEnded)
    assert (thought.text, thought.signature) == ("Someone greets me.", "sig")
    assert said.text == "Hello to you, Hello, you"
    assert [delta.delta for delta in turn.all(m.BlockDelta)][-3:] == ["Hello to", " you, He", "llo, you"]


async def test_calls_are_carried_out_unless_their_results_follow() -> None:
    turn = await talk("tools")
    assert turn.results == ["4", "done by the client", "two", "one"]
    assert turn.text == "They gave 4; done by the clientThen one"
    assert [event.origin for event in turn.all(m.ToolReturned)] == ["builtin", "client", "provider", "mcp"]
    assert turn.stops == [m.StopReason.TOOL_USE, m.StopReason.TOOL_USE, m.StopReason.END_TURN]


async def test_asks() -> None:
    turn = await talk("ask")
    assert turn.text == "One momentYou said proceedstep; 0: 1; 1: 0, 2"
    assert [[ask.kind for ask in asks] for asks in turn.asks] == [["continuation"], ["rollback", "question"]]
    assert turn.stops == [m.StopReason.NEEDS_INPUT, m.StopReason.NEEDS_INPUT, m.StopReason.END_TURN]


async def test_pictures_cards_notes_and_pauses() -> None:
    sleeps: list[float] = []
    turn = await tell("show", backend=scripted(sleeps))
    assert turn.stops == [m.StopReason.MAX_STEPS, m.StopReason.END_TURN]
    assert len(turn.all(m.MessageAnnotated)) == 2
    assert turn.text == "againagain"
    assert sleeps == [0.5, 0.5]
    assert "notice.posted" in turn.outline


async def test_a_fork_has_a_voice_of_its_own() -> None:
    turn = await talk("fork")
    assert turn.text == "well, from above"
    assert turn.stops == [m.StopReason.TOOL_USE, m.StopReason.NEEDS_INPUT, m.StopReason.END_TURN]
    assert [mail.content for mail in turn.all(m.ScopeMessage)] == ["fork", "from below"]
    assert [change.stop_reason for change in turn.all(m.ScopeStatusChanged)] == [m.StopReason.REFUSAL]


async def test_stop_ends_the_turn() -> None:
    turn = await talk("stop")
    assert (turn.text, turn.stops) == ("cut", [m.StopReason.MAX_TOKENS])


async def test_failures() -> None:
    with pytest.raises(Overloaded, match="Too much"):
        await talk("fail")
    with pytest.raises(BackendFailed, match="The scenario fails here"):
        await talk("tear")
    with pytest.raises(RuntimeError, match="boom"):
        await talk("raise")
    assert set(ERROR_CLASSES) == set(m.FaultCode)
    assert all(error("x").fault.code is code for code, error in ERROR_CLASSES.items())
    assert all(issubclass(error, GatewayError) for error in ERROR_CLASSES.values())


async def test_hanging_ends_when_the_turn_is_closed() -> None:
    said = scripted().run(FakeTurn(m.SendMessage(content="hang")))
    waiting = asyncio.ensure_future(anext(said))
    done, _ = await asyncio.wait([waiting], timeout=0.01)
    assert not done
    waiting.cancel()
    await asyncio.wait([waiting], timeout=5)
    await said.aclose()


@pytest.mark.parametrize("message", ["nonsense", "orphan", "elsewhere"])
async def test_nonsense_is_said_as_it_stands(message: str) -> None:
    with pytest.raises(m.GrammarError):
        await talk(message)


async def test_turns_are_counted_by_what_the_user_said() -> None:
    said = [
        m.HistoryEntry(role=role, content="x", seq=1, at=0.0) for role in (m.Role.USER, m.Role.ASSISTANT, m.Role.USER)
    ]
    assert (await talk("x", history=said[:1])).text == "First"
    assert (await talk("x", history=said)).text == "Second"


async def test_a_scenario_can_run_out() -> None:
    backend = ScriptedBackend(load_scenario("s.yaml", "rules: [ { when: a, steps: [] } ]"))
    with pytest.raises(BackendFailed, match="no rule for 'b'"):
        await tell("b", backend=backend)
    assert (await tell("a", backend=backend)).outline == ["turn.started", "turn.ended.completed"]


async def test_it_compacts_like_anybody() -> None:
    assert "session.compacted" in (await tell(m.Compact(), backend=scripted())).outline


@pytest.mark.parametrize(("answer", "words"), [
    (m.AnswerQuestion(request_id="r", selections={"0": (1, 2)}, custom={"1": "free"}, message="m"), "0: 1, 2; free; m"),
    (m.DecidePermission(request_id="r", granted=True), "granted"),
    (m.DecidePermission(request_id="r", granted=False), "denied"),
    (m.DecidePermission(request_id="r", granted=False, reason="no"), "denied: no"),
    (m.ReturnResult(request_id="r", content="c"), "c"),
    (m.ContinueTurn(request_id="r", proceed=False), "stop"),
    (m.RollBack(request_id="r"), "no option"),
    (m.Withdraw(request_id="r"), "withdrawn"),
])
def test_answers_in_words(answer: Any, words: str) -> None:
    assert answer_as_text(answer) == words


def test_pieces() -> None:
    assert split_text("", 3) == []
    assert split_text("abc", 5) == ["a", "b", "c"]
    assert split_text(" a b", None) == [" ", "a ", "b"]


async def test_the_registry_makes_one_from_its_file() -> None:
    backend = kind_of("scripted", FILE.parent).make({"scenario": "talk.yaml"}, BackendContext(FILE.parent)).backend
    assert (await play(backend, FakeTurn(m.SendMessage(content="x")))).text == "First"
    await backend.close()
