"""A dialect that is a table alone is served: sessions, turns, streams, and what its clients get wrong."""

import asyncio
import json
from typing import Any

import pytest

from adapters.plain import plain_dialect
from gateway.composition import load_components
from gateway.ports import ANONYMOUS
from gateway.yaml_positions import Problems
from mappings.language import Vocabulary, load_table, read_plain_table
from tests.support.plain_dialect import NAME, PlainFolder, event_id

HELLO = {"text": "hello"}


async def test_a_session_is_made_listed_shown_and_deleted(plain_folder: PlainFolder) -> None:
    async with plain_folder.serving() as nova:
        status, made = await nova.json("POST", "/sessions", {"title": "first"})
        assert (status, made["agent"], made["title"], made["status"]) == (201, "demo", "first", "idle")
        assert await nova.json("GET", "/sessions") == (200, {"sessions": [made]})
        assert await nova.json("GET", f"/sessions/{made['id']}") == (200, {**made, "messages": []})
        assert await nova.json("DELETE", f"/sessions/{made['id']}") == (204, None)
        status, refused = await nova.json("GET", f"/sessions/{made['id']}")
        assert (status, refused["error"]["code"]) == (404, "not_found")


async def test_agents_are_shown_and_may_be_named(plain_folder: PlainFolder) -> None:
    agents = {"one": {"backend": "demo", "title": "First"}, "two": {"backend": "demo"}}
    async with plain_folder.serving(agents=agents, dialects={NAME: {"agent": "two"}}) as nova:
        _, shown = await nova.json("GET", "/agents")
        assert [(agent["name"], agent["title"]) for agent in shown["agents"]][:1] == [("one", "First")]
        assert (await nova.json("POST", "/sessions", {"agent": "one"}))[1]["agent"] == "one"
        assert (await nova.json("POST", "/sessions"))[1]["agent"] == "two", "the one that the settings name"
        assert await nova.json("POST", "/sessions", {"agent": "three"}) == (400, {"error": {
            "code": "invalid", "message": "there is no agent 'three'; there are one, two", "field": "agent"}})


async def test_a_turn_is_streamed_and_kept(plain_folder: PlainFolder) -> None:
    async with plain_folder.serving() as nova:
        session = await nova.session()
        events = await nova.events("POST", f"/sessions/{session}/messages", HELLO)
        names = [event.splitlines()[1] for event in events]
        assert names == ["event: started", *["event: text"] * (len(events) - 2), "event: ended"]
        said = "".join(json.loads(event.splitlines()[2].removeprefix("data: "))["delta"] for event in events[1:-1])
        assert said == "You said: hello"
        assert events[-1].endswith('data: {"reason":"done"}')
        _, shown = await nova.json("GET", f"/sessions/{session}")
        assert [(one["role"], one["text"]) for one in shown["messages"]] == [
            ("user", "hello"), ("assistant", "You said: hello")]


async def test_a_replay_is_what_was_sent_live_from_any_event_on(plain_folder: PlainFolder) -> None:
    async with plain_folder.serving() as nova:
        session = await nova.session()
        live = await nova.events("POST", f"/sessions/{session}/messages", HELLO)
        live += await nova.events("POST", f"/sessions/{session}/messages", {"text": "again"})
        assert await nova.events("GET", f"/sessions/{session}/events", count=len(live)) == live
        for place, event in enumerate(live[:-1], 1):
            headers = {"Last-Event-ID": event_id(event)}
            rest = await nova.events("GET", f"/sessions/{session}/events", count=len(live) - place, headers=headers)
            assert rest == live[place:]


async def test_an_event_of_several_is_a_place_to_resume_at(plain_folder: PlainFolder) -> None:
    def two_frames(table: dict[str, Any]) -> None:
        only = "one of two"
        table["frames"]["turn.ended"] = [
            {"summary": {"turn": "$turn_id"}, "write-only": only},
            {"ended": {"reason": "$stop_reason | stop_reason"}, "write-only": only}]

    async with plain_folder.serving(two_frames) as nova:
        session = await nova.session()
        live = await nova.events("POST", f"/sessions/{session}/messages", HELLO)
        seq = event_id(live[-1])
        assert event_id(live[-2]) == f"{seq}.1"
        headers = {"Last-Event-ID": f"{seq}.1"}
        assert await nova.events("GET", f"/sessions/{session}/events", count=1, headers=headers) == live[-1:]


@pytest.mark.parametrize(("method", "path", "body", "field", "words"), [
    ("POST", "/sessions/{}/messages", {}, "text", "text: is missing"),
    ("POST", "/sessions/{}/messages", {"text": 5}, "text", "text: should be a text"),
    ("POST", "/sessions/{}/messages", {"text": None}, "text", "text: is missing"),
    ("POST", "/sessions/{}/messages", ["text"], None, "the body must be a JSON object, not an array"),
    ("POST", "/sessions/{}/messages", None, None, "the body is empty"),
    ("POST", "/sessions", {"title": 5}, "title", "title: should be a text"),
    ("GET", "/sessions?limit=soon", None, "limit", "limit: should be a whole number"),
    ("GET", "/sessions?limit=0", None, "limit", "a page has 1 to 50 sessions, not 0"),
])
async def test_what_clients_get_wrong_is_refused_in_the_words_of_the_dialect(
    plain_folder: PlainFolder, method: str, path: str, body: Any, field: str | None, words: str,
) -> None:
    async with plain_folder.serving() as nova:
        status, refused = await nova.json(method, path.format(await nova.session()), body)
        expected = {"code": "invalid", "message": words, **({"field": field} if field else {})}
        assert (status, refused) == (400, {"error": expected})


async def test_a_type_that_is_passed_over_refuses_nothing(plain_folder: PlainFolder) -> None:
    def lenient(table: dict[str, Any]) -> None:
        table["types"]["page"] = {"limit": "int?", "after": "text?"}

    async with plain_folder.serving(lenient) as nova:
        await nova.session()
        status, page = await nova.json("GET", "/sessions?limit=soon")
        assert (status, len(page["sessions"])) == (200, 1)


async def test_a_list_has_pages(plain_folder: PlainFolder) -> None:
    async with plain_folder.serving() as nova:
        made = [await nova.session() for _ in range(3)]
        _, first = await nova.json("GET", "/sessions?limit=2")
        _, rest = await nova.json("GET", f"/sessions?limit=2&after={first['next']}")
        assert [one["id"] for one in first["sessions"] + rest["sessions"]] == made[::-1]
        assert "next" not in rest


@pytest.mark.parametrize("cursor", ["soon", "99999", "-1", "1.x"])
async def test_an_event_that_was_never_sent_is_no_place_to_resume_at(plain_folder: PlainFolder, cursor: str) -> None:
    async with plain_folder.serving() as nova:
        path = f"/sessions/{await nova.session()}/events"
        status, refused = await nova.json("GET", path, headers={"Last-Event-ID": cursor})
        assert (status, refused["error"]["field"]) == (400, "Last-Event-ID")


async def test_a_turn_is_stopped(plain_folder: PlainFolder) -> None:
    async with plain_folder.serving() as nova:
        session = await nova.session()
        status, refused = await nova.json("DELETE", f"/sessions/{session}/turn")
        assert (status, refused["error"]["code"]) == (409, "conflict")
        talking = asyncio.create_task(nova.events("POST", f"/sessions/{session}/messages", {"text": "/slow 500"}))
        await nova.events("GET", f"/sessions/{session}/events", count=2)
        assert await nova.json("DELETE", f"/sessions/{session}/turn") == (204, None)
        assert (await talking)[-1].endswith('data: {"reason":"stopped"}')


async def test_a_session_brings_tools_and_messages_of_its_client(plain_folder: PlainFolder) -> None:
    def with_settings(table: dict[str, Any]) -> None:
        table["objects"] |= {
            "session.new": {
                "tools": "$client_tools | each tool", "messages": "$history | each seed", "set": "$options"},
            "session": {"id": "$session_id", "tools": "$client_tools | each tool", "set": "$options"},
            "tool": {"name": "$name", "about": "$description"}, "seed": {"role": "$role", "content": "$content"}}
        table["types"]["session.new"] = {"client_tools": "list", "history": "list", "options": "object"}
        table["types"]["tool"] = {"name": "id!"}

    async with plain_folder.serving(with_settings) as nova:
        tools = [{"name": "look", "about": "Looks."}]
        given = {"tools": tools, "messages": [{"role": "user", "content": "before"}], "set": {}}
        status, made = await nova.json("POST", "/sessions", given)
        assert (status, made["tools"]) == (201, tools)
        _, shown = await nova.json("GET", f"/sessions/{made['id']}")
        assert [(one["role"], one["text"]) for one in shown["messages"]] == [("user", "before")]
        for wrong, words in (
            ({"tools": [{"about": "?"}]}, "tools.0.name: is missing"),
            ({"messages": [{"role": "clown", "content": "x"}]}, None),
            ({"set": {"no-such-option": "x"}}, None),
        ):
            status, refused = await nova.json("POST", "/sessions", wrong)
            assert status in (400, 422)
            assert words in (None, refused["error"]["message"])


def with_route(key: str, *actions: dict[str, Any], **rows: Any) -> Any:
    def change(table: dict[str, Any]) -> None:
        table["routes"][key] = list(actions)
        table["inputs"] |= rows.get("inputs", {})
        table["objects"] |= rows.get("objects", {})

    return change


async def test_a_client_comes_back_to_a_turn(plain_folder: PlainFolder) -> None:
    change = with_route("GET /sessions/{session}/turn", {"stream": "turn"})
    async with plain_folder.serving(change) as nova:
        session = await nova.session()
        assert (await nova.json("GET", f"/sessions/{session}/turn"))[0] == 404, "there was none yet"
        live = await nova.events("POST", f"/sessions/{session}/messages", HELLO)
        assert await nova.events("GET", f"/sessions/{session}/turn") == live
        headers = {"Last-Event-ID": event_id(live[1])}
        assert await nova.events("GET", f"/sessions/{session}/turn", headers=headers) == live[2:]
        headers = {"Last-Event-ID": event_id(live[-1])}
        assert await nova.json("GET", f"/sessions/{session}/turn", headers=headers) == (204, None), "all of it was had"


ASKED = with_route(
    "POST /sessions/{session}/questions", {"input": "message.sent", "object": "answer"},
    objects={"answer": {"answer": "$text", "reason": "$stop_reason | stop_reason"}})


async def test_an_answer_may_be_an_object(plain_folder: PlainFolder) -> None:
    async with plain_folder.serving(ASKED) as nova:
        path = f"/sessions/{await nova.session()}/questions"
        assert await nova.json("POST", path, HELLO) == (200, {"answer": "You said: hello", "reason": "done"})


async def test_a_request_is_done_once_for_one_key(plain_folder: PlainFolder) -> None:
    async with plain_folder.serving(ASKED) as nova:
        headers = {"Idempotency-Key": "once"}
        made = [await nova.json("POST", "/sessions", {}, headers=headers) for _ in range(2)]
        assert made[0] == made[1]
        assert len((await nova.json("GET", "/sessions"))[1]["sessions"]) == 1
        path = f"/sessions/{made[0][1]['id']}/questions"
        for _ in range(2):
            await nova.json("POST", path, HELLO, headers=headers)
        assert len((await nova.json("GET", f"/sessions/{made[0][1]['id']}"))[1]["messages"]) == 2


async def test_a_message_may_make_its_own_session(plain_folder: PlainFolder) -> None:
    change = with_route("POST /chat", {"session": "create", "input": "message.sent", "stream": "turn"})
    async with plain_folder.serving(change) as nova:
        events = await nova.events("POST", "/chat", HELLO)
        assert events[-1].endswith('data: {"reason":"done"}')
        assert (await nova.json("POST", "/chat", {}))[0] == 400
        assert len((await nova.json("GET", "/sessions"))[1]["sessions"]) == 1, "the refused message left none"


async def test_a_request_may_be_one_of_several(plain_folder: PlainFolder) -> None:
    change = with_route(
        "POST /sessions/{session}/messages",
        {"input": "message.live", "stream": "turn"}, {"input": "message.whole", "object": "answer"},
        inputs={"message.live": {"command": "send_message", "wire": {"text": "$content", "mode": "live"}},
                "message.whole": {"command": "send_message", "wire": {"text": "$content", "mode": "whole"}}},
        objects={"answer": {"answer": "$text"}})

    def changed(table: dict[str, Any]) -> None:
        change(table)
        del table["inputs"]["message.sent"], table["types"]["message.sent"]

    async with plain_folder.serving(changed) as nova:
        path = f"/sessions/{await nova.session()}/messages"
        assert len(await nova.events("POST", path, {**HELLO, "mode": "live"})) > 2
        assert await nova.json("POST", path, {**HELLO, "mode": "whole"}) == (200, {"answer": "You said: hello"})
        status, refused = await nova.json("POST", path, {**HELLO, "mode": "odd"})
        assert (status, refused["error"]["message"]) == (
            400, "the body is none of the messages that this request takes: message.live, message.whole")


async def test_a_question_is_put_and_answered_by_the_table_alone(plain_folder: PlainFolder) -> None:
    def asking(table: dict[str, Any]) -> None:
        asked = {"id": "$request_id", "tool": "$ask.call.name"}
        table["frames"]["input.requested.permission"] = [{"permission": asked}]
        table["frames"]["input.requested"] = []
        table["inputs"]["decided"] = {
            "command": "decide_permission", "wire": {"id": "$request_id", "granted": "$granted"}}
        table["types"]["decided"] = {"request_id": "id!", "granted": "bool!"}
        table["routes"]["POST /sessions/{session}/decisions"] = {"input": "decided", "stream": "turn"}

    async with plain_folder.serving(asking) as nova:
        session = await nova.session()
        events = await nova.events("POST", f"/sessions/{session}/messages", {"text": "/permit"})
        asked = [json.loads(event.splitlines()[2].removeprefix("data: ")) for event in events if "permission" in event]
        assert asked, events
        status, _ = await nova.json("POST", f"/sessions/{session}/decisions", {"id": asked[0]["id"], "granted": "yes"})
        assert status == 400
        rest = await nova.events("POST", f"/sessions/{session}/decisions", {"id": asked[0]["id"], "granted": True})
        assert rest[-1].endswith('data: {"reason":"done"}')


async def test_keys_and_limits_are_those_of_every_dialect(plain_folder: PlainFolder) -> None:
    def open_to_all(table: dict[str, Any]) -> None:
        table["routes"]["GET /agents"]["public"] = True

    async with plain_folder.serving(open_to_all, auth="keys") as nova:
        assert (await nova.json("GET", "/agents"))[0] == 200
        status, refused = await nova.json("GET", "/sessions")
        assert (status, refused["error"]["code"]) == (401, "unauthenticated")
    async with plain_folder.serving(limits={"body_bytes": 200}) as nova:
        path = f"/sessions/{await nova.session()}/messages"
        status, refused = await nova.json("POST", path, {"text": "x" * 300})
        assert (status, refused["error"]["code"]) == (413, "too_large")


async def test_a_table_that_is_changed_is_used_at_once(plain_folder: PlainFolder) -> None:
    """A server that reloads has the new table; routes that were there at its start stay as they were."""
    async with plain_folder.serving() as nova:
        session = await nova.session()

        def renamed(table: dict[str, Any]) -> None:
            table["inputs"]["message.sent"]["wire"] = {"words": "$content"}
            table["frames"]["block.delta.text"] = [{"said": {"words": "$delta"}}]

        plain_folder.write(renamed)
        gateway = nova.served.gateway
        gateway.replace_components(load_components(gateway.components.config, gateway.components))
        events = await nova.events("POST", f"/sessions/{session}/messages", {"words": "hello"})
        assert events[1].splitlines()[1:] == ["event: said", 'data: {"words":"You "}']


async def test_a_stream_that_resumes_in_a_long_turn_has_the_changed_table(plain_folder: PlainFolder) -> None:
    """The server keeps projectors of turns that clients have read; after a reload it must not go on with them."""
    async with plain_folder.serving() as nova:
        session = await nova.session()
        await nova.events("POST", f"/sessions/{session}/messages", {"text": "/burst 1200"})
        gateway = nova.served.gateway

        async def names_near_the_end() -> set[str]:
            chunks = await gateway.sessions.read(ANONYMOUS, session, "nova", after=1180, upto=1190)
            return {frame.name async for chunk in chunks for frame in chunk.frames}

        assert await names_near_the_end() == {"text"}
        assert gateway.hub.snapshots.streams

        def renamed(table: dict[str, Any]) -> None:
            table["frames"]["block.delta.text"] = [{"said": {"words": "$delta"}}]

        plain_folder.write(renamed)
        gateway.replace_components(load_components(gateway.components.config, gateway.components))
        assert await names_near_the_end() == {"said"}


def test_a_dialect_is_found_by_the_name_of_its_file(plain_folder: PlainFolder) -> None:
    file = plain_folder.write(lambda table: table.update(dialect="vela"))
    with pytest.raises(Problems) as told:
        load_table(file, Vocabulary.of(plain_dialect(file)))
    assert str(told.value).endswith(
        "the dialect 'vela' is in a file called 'nova.yaml'; a dialect without code is found by the name of its file")


@pytest.mark.parametrize("text", [
    "", "[]", "a: [", "routes: 5", "routes: {POST /x: {input: 5}}", "objects: {a: $b | each c}",
])
def test_a_file_that_is_no_table_is_a_dialect_without_routes(plain_folder: PlainFolder, text: str) -> None:
    file = plain_folder.write()
    file.write_text(text)
    assert not [action for route in read_plain_table(file).routes for action in route.actions if action.input]
    assert plain_dialect(file).mount == "/nova"
