"""History only grows: what a client has read of it stays as it was, whatever is asked, answered and returned later."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import gateway.model as m
from adapters.aap.server import history
from gateway.http import dumps
from tests.support.dialect_tables import table
from tests.support.dialects.aap.client import MINE, Client
from tests.support.gateway_server import serving


@pytest.fixture
async def aap(tmp_path: Path) -> AsyncIterator[Client]:
    async with serving(tmp_path, dialects={"aap": {}}, log="memory") as served:
        yield Client(served)


async def asked(aap: Client) -> tuple[str, dict[str, str]]:
    """A session that waits for a result and a permission."""
    session = await aap.session(agent={"tools": [{"name": "calc"}]}, tools=[MINE])
    heard = await aap.turn(session, "/parallel")
    return session, {name: call_id for call_id, name, _ in heard.calls}


@pytest.mark.parametrize("kind", ["full", "compacted"])
async def test_a_result_is_in_history_before_the_turn_goes_on(aap: Client, kind: str) -> None:
    session, calls = await asked(aap)
    before = await aap.history(session, kind)
    result = {"role": "tool", "toolCallId": calls["mine"], "content": [{"type": "text", "text": "«ok»"}]}
    assert (await aap.turn(session, result)).stop == "tool_use"
    between = await aap.history(session, kind)
    assert between == [*before, result]
    granted = {"role": "tool_permission", "toolCallId": calls["calc"], "granted": True}
    assert (await aap.turn(session, granted)).stop == "end_turn"
    after = await aap.history(session, kind)
    assert after[:len(between)] == between
    assert [message for message in after if message.get("toolCallId") == calls["mine"]] == [result]


async def test_a_decision_is_no_message(aap: Client) -> None:
    session, calls = await asked(aap)
    before = await aap.history(session)
    denied = {"role": "tool_permission", "toolCallId": calls["calc"], "granted": False}
    assert (await aap.turn(session, denied)).stop == "tool_use"
    assert await aap.history(session) == before


async def test_the_result_of_a_late_decision_comes_after_an_earlier_result(aap: Client) -> None:
    session, calls = await asked(aap)
    result = {"role": "tool", "toolCallId": calls["mine"], "content": "first"}
    await aap.turn(session, result)
    between = await aap.history(session)
    denied = {"role": "tool_permission", "toolCallId": calls["calc"], "granted": False, "reason": "no"}
    assert (await aap.turn(session, denied)).stop == "end_turn"
    after = await aap.history(session)
    assert after[:len(between)] == between
    assert [(message["toolCallId"], message["content"]) for message in after if message["role"] == "tool"] == [
        (calls["mine"], "first"), (calls["calc"], "Tool call denied: no")]


async def test_results_stay_in_the_order_in_which_they_were_returned(aap: Client) -> None:
    session, calls = await asked(aap)
    await aap.turn(session, {"role": "tool", "toolCallId": calls["mine"], "content": "first"})
    between = await aap.history(session)
    await aap.call("DELETE", f"/sessions/{session}/turns/current")
    after = await aap.history(session)
    assert after[:len(between)] == between
    assert [message["toolCallId"] for message in after if message["role"] == "tool"] == [calls["mine"], calls["calc"]]


ANSWERS: dict[str, Any] = {
    "/ask": '{"Colour": "Red", "Fruits": ["Apple", "Fig"]}', "/fork-ask": [{"type": "text", "text": "Green"}],
    "/continue": "Yes, please.", "/rollback": "step",
}


@pytest.mark.parametrize("stream", ["delta", "message", "none"])
@pytest.mark.parametrize("words", list(ANSWERS))
async def test_what_a_client_answered_stays_in_history_as_it_was_sent(aap: Client, words: str, stream: str) -> None:
    session = await aap.session()
    *_, (call_id, name, _) = (await aap.turn(session, words, stream=stream)).calls
    before = await aap.history(session)
    answer = {"role": "tool", "toolCallId": call_id, "content": ANSWERS[words]}
    heard = await aap.turn(session, answer, stream=stream)
    assert heard.stop == "end_turn"
    assert call_id not in [returned for returned, _ in heard.results], "the client knows what it returned"
    after = await aap.history(session)
    assert after[:len(before) + 1] == [*before, answer]
    assert [message for message in after if message.get("toolCallId") == call_id] == [answer]
    blocks = [block for message in after if message["role"] == "assistant" for block in message["content"]]
    assert [block["name"] for block in blocks if block.get("toolCallId") == call_id] == [name]


async def test_each_of_two_questions_has_its_own_answer(aap: Client) -> None:
    for said, told in [
        ('{"Colour": "Red", "Which fruits do you want?": ["Apple", "Fig"]}', "Colour: Red; Fruits: Apple, Fig"),
        ('["Red", "Fig"]', "Colour: Red; Fruits: Fig"), ("Red", "Colour: Red; Fruits: Red"),
    ]:
        session = await aap.session()
        [(call_id, _, _)] = (await aap.turn(session, "/ask")).calls
        heard = await aap.turn(session, {"role": "tool", "toolCallId": call_id, "content": said})
        assert heard.text == f"AskUserQuestion returned {told}"


@pytest.mark.parametrize(("granted", "words"), [(True, "yes"), (False, "no")])
async def test_a_decision_about_a_continuation_is_told_in_words(aap: Client, granted: bool, words: str) -> None:
    """`tool_permission` has no place in history, and a call without a result would be open."""
    session = await aap.session()
    [(call_id, _, _)] = (await aap.turn(session, "/continue")).calls
    before = await aap.history(session)
    await aap.turn(session, {"role": "tool_permission", "toolCallId": call_id, "granted": granted})
    result = {"role": "tool", "toolCallId": call_id, "content": words}
    assert (await aap.history(session))[:len(before) + 1] == [*before, result]


async def test_what_nobody_answered_is_told_as_cancelled(aap: Client) -> None:
    session = await aap.session()
    [(call_id, _, _)] = (await aap.turn(session, "/continue")).calls
    before = await aap.history(session)
    await aap.turn(session, "never mind")
    after = await aap.history(session)
    assert after[:len(before) + 2] == [
        *before, {"role": "tool", "toolCallId": call_id, "content": "Tool call cancelled"},
        {"role": "user", "content": "never mind"},
    ]


@pytest.mark.parametrize("kind", ["full", "compacted"])
async def test_history_only_grows(aap: Client, kind: str) -> None:
    session = await aap.session(agent={"tools": [{"name": "calc"}]}, tools=[MINE])
    before: list[Any] = []
    for words in ("hello", "/permit", "/parallel", "/client-tool", *ANSWERS, "/think /continue /ask /rollback", "bye"):
        heard = await aap.turn(session, words)
        while heard.stop == "tool_use":
            calls = [call for call in heard.calls if call[1] != "Agent"]
            for number, (call_id, name, _) in enumerate(reversed(calls)):
                now = await aap.history(session, kind)
                assert now[:len(before)] == before
                before, answer = now, {"role": "tool", "toolCallId": call_id, "content": f"step {number}"}
                decision = {"role": "tool_permission", "toolCallId": call_id, "granted": True}
                heard = await aap.turn(session, decision if name == "calc" else answer)
        now = await aap.history(session, kind)
        assert now[:len(before)] == before
        before = now


async def test_a_question_says_in_its_call_that_a_person_must_answer(aap: Client) -> None:
    session = await aap.session()
    body = {"messages": [{"role": "user", "content": "/ask"}]}
    _, told = await aap.call("POST", f"/sessions/{session}/turns", body)
    [block] = told["messages"][-1]["content"]
    assert (block["name"], block["description"].partition(".")[0]) == (
        "AskUserQuestion", "A person must answer these questions")
    assert (await aap.history(session))[-1]["content"] == [block]


async def test_nothing_is_added_to_a_question_that_the_client_brought(aap: Client) -> None:
    call = {"type": "tool_use", "toolCallId": "c", "name": "AskUserQuestion", "input": {"questions": []}}
    seed = [{"role": "assistant", "content": [call]}, {"role": "tool", "toolCallId": "c", "content": "x"}]
    assert await aap.history(await aap.session(messages=seed)) == seed


# -- entries ----------------------------------------------------------------------------------------------------------

AAP = table("aap")


def entry(role: m.Role, content: object, **more: object) -> m.HistoryEntry:
    return m.HistoryEntry(role=role, content=content, seq=1, at=0, **{"turn_id": "t", **more})  # type: ignore[arg-type]


async def told_of(entries: list[m.HistoryEntry]) -> Any:
    told = await history.history_body(AAP, "full", m.SessionView(session_id="s", entries=entries))
    return orjson.loads(dumps(told))["history"]["full"]


async def test_history_keeps_what_clients_said_as_it_was() -> None:
    image = m.ImagePart(url="https://x.test/p.png")
    told = await told_of([
        entry(m.Role.SYSTEM, "be kind"), entry(m.Role.USER, "hi"), entry(m.Role.USER, (m.TextPart(text="see"), image)),
        entry(m.Role.TOOL, "42", call_id="call_1"),
    ])
    assert told == [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "hi"},
        {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image", "url": "https://x.test/p.png"}]},
        {"role": "tool", "toolCallId": "call_1", "content": "42"},
    ]


async def test_what_aap_cannot_say_of_an_agent_is_left_out_as_in_the_stream() -> None:
    shown = (m.ImagePart(url="https://x.test/p.png"), m.DataPart(type="plan"), m.FilePart(name="f"))
    told = await told_of([
        entry(m.Role.ASSISTANT, shown), entry(m.Role.ASSISTANT, (m.DataPart(type="plan"),)),
        entry(m.Role.ASSISTANT, (m.TextPart(text="psst"),), scope_id="kid"),
    ])
    assert told == [{"role": "assistant", "content": [{"type": "text", "text": "![image](https://x.test/p.png)"}]}]


async def test_a_seed_without_words_stays_in_history() -> None:
    empty = [entry(m.Role.ASSISTANT, "", turn_id=None), entry(m.Role.ASSISTANT, (), turn_id=None)]
    assert await told_of(empty) == [{"role": "assistant", "content": ""}, {"role": "assistant", "content": []}]
    assert await told_of([entry(m.Role.ASSISTANT, (), turn_id="t")]) == []


async def test_the_results_of_calls_that_were_given_up_stand_before_what_gave_them_up() -> None:
    told = await told_of([
        entry(m.Role.USER, "go", turn_id="t1"), entry(m.Role.USER, "never mind", turn_id="t2"),
        entry(m.Role.TOOL, "no", call_id="c1", turn_id="t1"), entry(m.Role.TOOL, "no", call_id="c2", turn_id="t1"),
        entry(m.Role.TOOL, "yes", call_id="c3", turn_id="t2"),
    ])
    assert [(message["role"], message.get("toolCallId")) for message in told] == [
        ("user", None), ("tool", "c1"), ("tool", "c2"), ("user", None), ("tool", "c3")]
