"""Human in the loop: the stream stays open until somebody answers, once, by whatever id, from whatever dialect."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.dialects.zenflux.client import Chat, Client, talking


async def respond(client: Client, word: str, response: Any, status: int = 200) -> Any:
    return await client.call("POST", f"/human-confirmation/{word}", json={"response": response}, status=status)


@pytest.mark.parametrize("by", ["session_id", "request_id"])
@pytest.mark.parametrize(("response", "is_error"), [
    ("approve", False), ("yes", False), (True, False), ("reject", True), ("No", True), (False, True),
    ("only on Sundays", True), (["x"], True), ({"why": "x"}, True), ("cancel", True),
])
async def test_a_permission(tmp_path: Path, by: str, response: Any, is_error: bool) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        begun = await chat.send("/permit")
        asked = await chat.asked()
        assert asked["session_id"] == begun["session_id"]
        assert [one["request_id"] for one in await client.call("GET", "/human-confirmation/pending")] == [
            asked["request_id"]]
        told = await respond(client, asked[by], response)
        assert told == {"request_id": asked["request_id"], "response": response}
        run = await chat.over(begun["session_id"])
        [result] = [block for block in run.blocks if block["type"] == "tool_result"]
        assert result["is_error"] is is_error
        assert run.status == "completed"
        assert await client.call("GET", "/human-confirmation/pending") == []
        assert await respond(client, asked[by], "approve", 404)


async def test_a_reason_reaches_the_agent(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        begun = await chat.send("/permit")
        await chat.asked()
        await respond(client, begun["session_id"], "only on Sundays")
        run = await chat.over(begun["session_id"])
        assert "only on Sundays" in run.words("tool_result")[0]


@pytest.mark.parametrize(("words", "description"), [
    ("/permit", 'calc {"expression":"6 * 7"}'), ("/ask", ""), ("/continue", ""),
])
async def test_people_are_shown_what_a_tool_is_called_with(tmp_path: Path, words: str, description: str) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        begun = await chat.send(words)
        pending: list[Any] = []
        while not pending:
            await chat.next()
            pending = await client.call("GET", "/human-confirmation/pending")
        assert [one["description"] for one in pending] == [description]
        assert pending[0]["question"]
        await client.call("POST", f"/session/{begun['session_id']}/stop")


@pytest.mark.parametrize(("response", "heard"), [
    ({"0": "Red", "1": ["Apple", "Cherry"]}, "Colour: Red; Fruits: Apple, Cherry"),
    ({"Colour": "blue", "Which fruits do you want?": "Banana"}, "Colour: Blue; Fruits: Banana"),
    (["Green", ["Apple", "plums"]], "Colour: Green; Fruits: Apple, plums"),
    ({"0": [0], "1": [0, 1]}, "Colour: Red; Fruits: Apple, Banana"),
    ([2, [1]], "Colour: Blue; Fruits: Banana"),
    ("whatever", "Colour: whatever; Fruits: whatever"),
])
async def test_a_form(tmp_path: Path, response: Any, heard: str) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        begun = await chat.send("/ask")
        asked = await chat.asked()
        assert asked["confirmation_type"] == "form"
        assert asked == await client.call("GET", f"/human-confirmation/{asked['request_id']}")
        await respond(client, begun["session_id"], response)
        run = await chat.over(begun["session_id"])
        assert run.words("tool_result") == [heard]


@pytest.mark.parametrize("response", [
    {"0": "Red"}, {"7": "Red", "1": "Apple"}, {"0": 3, "1": [0]}, {"0": 0, "1": [-1]},
    ["a", "b", "c"], ["Red"], {"0": ["Red", "Blue"], "1": "Apple"}, [], {},
    "",
])
async def test_a_form_filled_in_wrongly_can_be_filled_in_again(tmp_path: Path, response: Any) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        begun = await chat.send("/ask")
        await chat.asked()
        assert await respond(client, begun["session_id"], response, 400)
        await respond(client, begun["session_id"], {"0": "Red", "1": "Apple"})
        assert (await chat.over(begun["session_id"])).status == "completed"


@pytest.mark.parametrize("body", [{}, {"response": None}, {"response": 5}, {"response": "approve", "metadata": 5}])
async def test_a_response_that_is_none(tmp_path: Path, body: dict[str, Any]) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        await chat.send("/permit")
        asked = await chat.asked()
        assert await client.call("POST", f"/human-confirmation/{asked['request_id']}", json=body, status=400)


async def test_a_request_is_cancelled(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        begun = await chat.send("/ask")
        asked = await chat.asked()
        told = await client.call("DELETE", f"/human-confirmation/{asked['request_id']}")
        assert told == {"request_id": asked["request_id"]}
        run = await chat.over(begun["session_id"])
        assert "cancelled" in run.words("tool_result")[0]
        assert await client.call("DELETE", f"/human-confirmation/{asked['request_id']}", status=404)
        assert await client.call("GET", f"/human-confirmation/{asked['request_id']}", status=404)


async def test_a_request_that_has_expired_is_gone(tmp_path: Path) -> None:
    async with talking(tmp_path, limits={"ask_seconds": 0.2}) as client, client.chat() as chat:
        begun = await chat.send("/permit")
        asked = await chat.asked()
        assert (await chat.over(begun["session_id"])).status == "completed"
        for word in (asked["request_id"], begun["session_id"]):
            assert await respond(client, word, "approve", 410)
            assert await client.call("GET", f"/human-confirmation/{word}", status=410)


async def test_what_nobody_asks(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        assert await respond(client, "nope", "approve", 404)
        assert await client.call("GET", "/human-confirmation/nope", status=404)
        run = await chat.run("hello")
        assert await respond(client, run.session_id, "approve", 404)


async def test_several_are_answered_one_by_one(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        begun = await chat.send("/parallel")
        asked = await chat.asked()
        pending = await client.call("GET", f"/human-confirmation/pending?session_id={begun['session_id']}")
        assert asked["request_id"] in [one["request_id"] for one in pending]
        for one in pending:
            await respond(client, one["request_id"], "approve")
        assert (await chat.over(begun["session_id"])).status == "completed"


async def test_a_sub_agent_asks_too(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        begun = await chat.send("/fork-ask look")
        await chat.asked()
        await respond(client, begun["session_id"], {"0": "Red", "1": "Apple"})
        assert "Colour: Red" in (await chat.over(begun["session_id"])).words("tool_result")[-1]


async def test_a_tool_of_another_dialects_client_is_answered_with_its_result(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        tools = [{"name": "weather", "description": "Here.", "parameters": {"type": "object"}}]
        made = {"agent": {"name": "demo"}, "tools": tools}
        async with client.served.http.post(client.served.url("/aap/sessions"), json=made) as answer:
            session_id = (await answer.json())["sessionId"]
        begun = await chat.send("/client-tool", conversation_id=session_id)
        asked = await chat.asked()
        assert (asked["tool_name"], asked["confirmation_type"]) == ("weather", "text_input")
        await respond(client, asked["request_id"], "sunny")
        run = await chat.over(begun["session_id"])
        assert run.words("tool_result") == ["sunny"]


async def test_an_ask_may_be_answered_in_another_dialect_once(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        begun = await chat.send("/permit")
        asked = await chat.asked()
        answer = {"role": "tool_permission", "toolCallId": asked["metadata"]["tool_use_id"], "granted": True}
        url = client.served.url(f"/aap/sessions/{begun['conversation_id']}/turns")
        async with client.served.http.post(url, json={"messages": [answer]}) as response:
            assert response.status == 200
        run = await chat.over(begun["session_id"])
        assert not run.blocks[1]["is_error"]
        assert await respond(client, begun["session_id"], "reject", 404)


# -- long and failed runs ---------------------------------------------------------------------------------------------

async def waiting(chat: Chat, message: str, event: str) -> tuple[str, Any]:
    begun = await chat.send(message)
    return begun["session_id"], await chat.until(event)


@pytest.mark.parametrize(("query", "body", "heard"), [
    ("", None, "I went on."), ("?action=background", None, "I went on."), ("", {"action": "stop"}, "I stopped."),
])
async def test_a_long_run(tmp_path: Path, query: str, body: Any, heard: str) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        run_id, asked = await waiting(chat, "/continue", "long_running_confirm")
        assert asked == {"turn": 1, "message": "This may take long. Shall I go on?"}
        options = {} if body is None else {"json": body}
        told = await client.call("POST", f"/session/{run_id}/confirm_continue{query}", **options)
        assert told["session_id"] == run_id
        run = await chat.over(run_id)
        assert heard in "".join(run.words("text"))
        await client.call("POST", f"/session/{run_id}/confirm_continue")


async def test_a_long_run_that_nobody_wants_is_stopped(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        run_id, _ = await waiting(chat, "/continue", "long_running_confirm")
        await client.call("POST", f"/session/{run_id}/stop")
        assert (await chat.over(run_id)).status == "cancelled"


@pytest.mark.parametrize(("body", "chosen"), [
    (None, "step"), ({}, "step"), ({"option": "all"}, "all"), ({"option": 1}, "all"),
    ({"option": "undo_all: the beginning"}, "all"), ({"file_paths": ["a.txt"]}, "step"),
])
async def test_a_rollback(tmp_path: Path, body: Any, chosen: str) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        run_id, offered = await waiting(chat, "/rollback", "rollback_options")
        assert offered["options"] == ["undo_step: the last step", "undo_all: the beginning"]
        options = {} if body is None else {"json": body}
        told = await client.call("POST", f"/session/{run_id}/rollback", **options)
        assert told["session_id"] == run_id
        assert len(told["messages"]) == 1
        run = await chat.over(run_id)
        assert run.other("rollback_completed") == [{}]
        assert f"I rolled back to: {chosen}." in "".join(run.words("text"))
        assert await client.call("POST", f"/session/{run_id}/rollback", status=404)


@pytest.mark.parametrize("body", [{"option": "nope"}, {"option": 7}, {"option": []}, {"file_paths": "x"}])
async def test_a_rollback_to_nowhere(tmp_path: Path, body: Any) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        run_id, _ = await waiting(chat, "/rollback", "rollback_options")
        assert await client.call("POST", f"/session/{run_id}/rollback", json=body, status=400)


async def test_the_other_asks_are_confirmations_as_well(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        run_id, _ = await waiting(chat, "/continue", "long_running_confirm")
        assert await respond(client, run_id, "perhaps", 400)
        await respond(client, run_id, "approve")
        assert "I went on." in "".join((await chat.over(run_id)).words("text"))
        run_id, _ = await waiting(chat, "/rollback", "rollback_options")
        await respond(client, run_id, "undo_all: the beginning")
        assert (await chat.over(run_id)).other("rollback_completed") == [{}]
