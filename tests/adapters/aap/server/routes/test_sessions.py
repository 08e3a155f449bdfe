"""AAP over real HTTP: sessions, turns in three modes, tools of three kinds, and every sort of bad input."""

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.support.dialects.aap.client import MINE, Client
from tests.support.gateway_server import serving, until
from tests.support.key_stores import key_store


@pytest.fixture
async def aap(tmp_path: Path) -> AsyncIterator["Client"]:
    async with serving(tmp_path, dialects={"aap": {}}, log="memory") as served:
        yield Client(served)


@pytest.mark.parametrize("stream", ["delta", "message", "none"])
async def test_a_turn_in_every_mode(aap: Client, stream: str) -> None:
    session = await aap.session()
    heard = await aap.turn(session, "/think grüß\ndich \U0001f600", stream=stream)
    assert heard.text == "You said: grüß\ndich \U0001f600"
    assert heard.thinking
    assert heard.stop == "end_turn"


async def test_the_first_thing_on_a_stream_is_a_comment(aap: Client) -> None:
    session = await aap.session()
    body = {"messages": [{"role": "user", "content": "/slow 50"}], "stream": "delta"}
    async with aap.served.http.post(aap.served.url(f"/aap/sessions/{session}/turns"), json=body) as response:
        assert (await response.content.readline()).startswith(b":")
        assert response.headers["Cache-Control"] == "no-cache"


async def test_three_kinds_of_tools_at_once(aap: Client) -> None:
    tools = [{"name": "clock", "trust": True}, {"name": "calc"}]
    session = await aap.session(agent={"tools": tools}, tools=[MINE])
    heard = await aap.turn(session, "/parallel")
    assert heard.stop == "tool_use"
    calls = {name: call_id for call_id, name, _ in heard.calls}
    assert set(calls) == {"clock", "calc", "mine"}
    assert [call_id for call_id, _ in heard.results] == [calls["clock"]]
    heard = await aap.turn(
        session,
        {"role": "tool", "toolCallId": calls["mine"], "content": [{"type": "text", "text": "sunny"}]},
        {"role": "tool_permission", "toolCallId": calls["calc"], "granted": True},
    )
    assert heard.stop == "end_turn"
    assert [call_id for call_id, _ in heard.results] == [calls["calc"]]
    roles = [(m["role"], m.get("toolCallId")) for m in await aap.history(session)]
    assert roles[:2] == [("user", None), ("assistant", None)]
    assert {call_id for role, call_id in roles if role == "tool"} == set(calls.values())


async def test_answers_may_come_one_by_one(aap: Client) -> None:
    session = await aap.session(agent={"tools": [{"name": "calc"}]}, tools=[MINE])
    heard = await aap.turn(session, "/parallel")
    calls = {name: call_id for call_id, name, _ in heard.calls}
    for stream in ("delta", "none"):
        other = await aap.session(agent={"tools": [{"name": "calc"}]}, tools=[MINE])
        asked = {name: call_id for call_id, name, _ in (await aap.turn(other, "/parallel")).calls}
        waiting = await aap.turn(
            other, {"role": "tool_permission", "toolCallId": asked["calc"], "granted": True}, stream=stream)
        assert (waiting.stop, waiting.calls, waiting.results) == ("tool_use", [], [])
    heard = await aap.turn(session, {"role": "tool_permission", "toolCallId": calls["calc"], "granted": True})
    assert heard.stop == "tool_use"
    heard = await aap.turn(session, {"role": "tool", "toolCallId": calls["mine"], "content": "ok"})
    assert heard.stop == "end_turn"


@pytest.mark.parametrize("kind", ["full", "compacted"])
@pytest.mark.parametrize(("words", "name"), [
    ("/ask", "AskUserQuestion"), ("/continue", "confirm_continue"), ("/rollback", "choose_rollback"),
    ("/fork-ask", "AskUserQuestion"),
])
async def test_a_client_can_go_on_from_history_alone(aap: Client, words: str, name: str, kind: str) -> None:
    """What waits for it is at the end of history as it was on the stream, until it is answered."""
    session = await aap.session()
    heard = await aap.turn(session, words)
    [told] = [call for call in heard.calls if call[1] == name]
    *_, last = await aap.history(session, kind)
    blocks = [block for block in last["content"] if block["type"] == "tool_use"]
    assert (last["role"], [(block["toolCallId"], block["name"], block["input"]) for block in blocks]) == (
        "assistant", [told])
    again = await aap.turn(session, {"role": "tool", "toolCallId": told[0], "content": "yes"})
    assert (again.stop, last in await aap.history(session, kind)) == ("end_turn", True)


async def test_a_denial_enters_history_with_its_reason(aap: Client) -> None:
    session = await aap.session(agent={"tools": [{"name": "calc"}]})
    [(call_id, _, _)] = (await aap.turn(session, "/permit")).calls
    denial = {"role": "tool_permission", "toolCallId": call_id, "granted": False, "reason": "too dear"}
    heard = await aap.turn(session, denial)
    assert heard.stop == "end_turn"
    told = [m["content"] for m in await aap.history(session) if m["role"] == "tool"]
    assert told == ["Tool call denied: too dear"]


async def test_every_directive_ends_the_stream_well(aap: Client) -> None:
    asks = {"/ask", "/fork-ask", "/continue", "/rollback", "/permit", "/client-tool", "/parallel"}
    plain = {"/think", "/tool clock", "/fork", "/annotate", "/bridge", "/ui", "/image", "/plan", "/title Trip",
             "/compact", "/json", "/burst 50", "/slow 2"}
    ends = {"/fail": "error", "/fail-start": "error", "/refuse": "refusal", "/max-tokens": "max_tokens"}
    session = await aap.session(agent={"tools": [{"name": "clock", "trust": True}, {"name": "calc"}]}, tools=[MINE])
    for directive in sorted(asks | plain | set(ends)):
        expected = "tool_use" if directive in asks else ends.get(directive, "end_turn")
        heard = await aap.turn(session, directive)
        assert heard.stop == expected, directive
        if directive in asks:
            assert heard.calls, f"{directive}: a client must be able to answer"


@pytest.mark.parametrize("directive", ["/ask", "/fork-ask", "/continue", "/rollback"])
async def test_what_an_agent_asks_can_be_answered_by_a_tool_message(aap: Client, directive: str) -> None:
    session = await aap.session()
    heard = await aap.turn(session, directive)
    [(call_id, name, _)] = [call for call in heard.calls if call[1] != "Agent"]
    heard = await aap.turn(session, {"role": "tool", "toolCallId": call_id, "content": "yes"})
    assert heard.stop == "end_turn", name


async def test_compacted_history_begins_with_the_summary(aap: Client) -> None:
    session = await aap.session()
    await aap.turn(session, "one")
    await aap.turn(session, "/compact two")
    full, compacted = await aap.history(session), await aap.history(session, "compacted")
    assert [m["role"] for m in full] == ["user", "assistant", "user", "assistant"]
    assert compacted[0]["role"] == "system"
    assert compacted[1:] == full[2:]


async def test_the_clients_system_message_is_kept_when_history_is_compacted(aap: Client) -> None:
    system = {"role": "system", "content": "Be kind."}
    session = await aap.session(messages=[system, {"role": "user", "content": "before"}])
    await aap.turn(session, "one")
    await aap.turn(session, "/compact two")
    full, compacted = await aap.history(session), await aap.history(session, "compacted")
    assert (full[0], compacted[0]) == (system, system)
    assert [message["role"] for message in compacted] == ["system", "system", "user", "assistant"]
    assert compacted[2:] == full[4:]


OPEN: list[Any] = [
    {"role": "system", "content": "Be kind."}, {"role": "user", "content": "What is the weather?"},
    {"role": "assistant", "content": [
        {"type": "tool_use", "toolCallId": "call_a", "name": "mine", "input": {"city": "Pera"}},
        {"type": "tool_use", "toolCallId": "call_b", "name": "mine", "input": {"city": "Galata"}},
    ]},
    {"role": "tool", "toolCallId": "call_b", "content": "rain"},
]


@pytest.mark.parametrize("stream", ["delta", "message", "none"])
async def test_a_call_that_the_first_messages_left_open_can_be_answered(aap: Client, stream: str) -> None:
    session = await aap.session(messages=OPEN, tools=[MINE])
    result = {"role": "tool", "toolCallId": "call_a", "content": [{"type": "text", "text": "sunny"}]}
    heard = await aap.turn(session, result, stream=stream)
    assert (heard.stop, heard.text, heard.results) == ("end_turn", "You said: mine returned sunny", [])
    history = await aap.history(session)
    assert history[:-1] == [*OPEN, result]
    assert history[-1]["role"] == "assistant"
    again = await aap.call("POST", f"/sessions/{session}/turns", {"messages": [result]})
    assert again == (409, {"error": "call 'call_a' is not pending"})


async def test_all_that_the_first_messages_left_open_is_answered_at_once(aap: Client) -> None:
    session = await aap.session(agent={"tools": [{"name": "calc"}]}, messages=OPEN[:-1], tools=[MINE])
    path, result = f"/sessions/{session}/turns", {"role": "tool", "toolCallId": "call_a", "content": "sunny"}
    permission = {"role": "tool_permission", "toolCallId": "call_b", "granted": True}
    for messages, status, complaint in [
        ([result], 409, "call 'call_b' is open as well; return the results of all open calls in one turn"),
        ([result, permission], 400, "and nothing else"), ([permission], 409, "call 'call_b' is not pending"),
    ]:
        told = await aap.call("POST", path, {"messages": messages})
        assert (told[0], complaint in told[1]["error"]) == (status, True), told
    assert await aap.history(session) == OPEN[:-1]
    await aap.turn(session, "never mind")
    assert (await aap.call("POST", path, {"messages": [result]}))[0] == 409


async def test_a_call_of_a_server_tool_in_the_first_messages_is_not_for_the_client(aap: Client) -> None:
    call = {"type": "tool_use", "toolCallId": "call_a", "name": "calc", "input": {}}
    session = await aap.session(messages=[OPEN[1], {"role": "assistant", "content": [call]}])
    result = {"role": "tool", "toolCallId": "call_a", "content": "42"}
    assert (await aap.call("POST", f"/sessions/{session}/turns", {"messages": [result]}))[0] == 409


async def test_a_client_that_leaves_does_not_stop_the_turn(aap: Client) -> None:
    session = await aap.session()
    body = {"messages": [{"role": "user", "content": "/slow 4 still here"}], "stream": "delta"}
    async with aap.served.http.post(aap.served.url(f"/aap/sessions/{session}/turns"), json=body) as response:
        await response.content.readline()
        response.close()
    status, told = await aap.call("POST", f"/sessions/{session}/turns", body)
    assert status == 409, told
    await until(lambda: not aap.served.gateway.table.turn_count)
    assert "still here" in orjson.dumps(await aap.history(session)).decode()
    assert aap.served.gateway.hub.subscribers == 0


async def test_a_client_that_leaves_stops_the_turn_if_so_set(tmp_path: Path) -> None:
    async with serving(tmp_path, on_disconnect="cancel") as served:
        aap = Client(served)
        for stream in ("delta", "none"):
            session = await aap.session()
            body = {"messages": [{"role": "user", "content": "/slow 10000"}], "stream": stream}
            request = asyncio.create_task(aap.call("POST", f"/sessions/{session}/turns", body))
            await until(lambda: served.gateway.table.turn_count)
            await asyncio.sleep(1)
            request.cancel()
            await until(lambda: not served.gateway.table.turn_count)


async def test_200_clients_at_once(aap: Client) -> None:
    async def talk(number: int) -> None:
        session = await aap.session()
        heard = await aap.turn(session, f"/think I am {number}")
        assert heard.text == f"You said: I am {number}"

    await asyncio.gather(*(talk(number) for number in range(200)))


# -- bad input --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("raw", "complaint"), [
    (b"", "empty"), (b"  ", "empty"), (b"not json", "not JSON"), (b"[]", "JSON object"), (b"[1,2]", "JSON object"),
    (b"7", "JSON object"), (b"null", "JSON object"), (b'{"agent":', "not JSON"),
    (b'{"agent":{"name":"\xff"}}', "not JSON"),
    (b'{"agent":{"name":"\\ud800"}}', "not JSON"), (b'{"agent":null}', "agent"),
])
async def test_malformed_bodies_are_refused_in_words(aap: Client, raw: bytes, complaint: str) -> None:
    session = await aap.session()
    for path in ("/sessions", f"/sessions/{session}/turns"):
        status, body = await aap.call("POST", path, raw=raw)
        assert status == 400
        assert list(body) == ["error"]
        assert complaint in body["error"] or "messages" in body["error"]


async def test_ten_megabytes_are_too_much(aap: Client) -> None:
    status, body = await aap.call("POST", "/sessions", raw=BytesIO(b'{"agent":"' + b"x" * 11_000_000 + b'"}'))
    assert status == 413
    assert "larger than" in body["error"]


@pytest.mark.parametrize(("body", "complaint"), [
    ({"agent": {"name": "nobody"}}, "no agent 'nobody'"),
    ({"agent": {"name": "demo", "tools": [{"name": "hammer"}]}}, "no tool 'hammer'"),
    ({"agent": {"name": "demo", "options": {"volume": "11"}}}, "no option 'volume'"),
    ({"agent": {"name": "demo", "options": {"mood": "odd"}}}, "'mood'"),
    ({"agent": {"name": "demo", "tools": [{"name": "calc"}]}, "tools": [{**MINE, "name": "calc"}]}, "server tool"),
    ({"agent": {"name": "demo"}, "tools": [MINE, MINE]}, "two client tools"),
    ({"agent": {"name": "demo"}, "tools": [{**MINE, "parameters": {"type": 5}}]},
     "tools.0.parameters: expected a JSON Schema: 5 is not valid"),
    *(({"agent": {"name": "demo"}, "messages": [{"role": "user", "content": [{"type": "image", "url": url}]}]},
       f"messages.0.content.0.url: expected {complaint}") for url, complaint in [
        ("https://", "an https:// address with a host"), ("data:image/png,AAAA", "a data: URI of the form"),
        ("data:image/png;base64,@@@@", "base64 after"), ("data:text/plain;base64,AAAA", "a data: URI of the form"),
    ]),
])
async def test_what_does_not_exist_is_named(aap: Client, body: dict[str, Any], complaint: str) -> None:
    status, told = await aap.call("POST", "/sessions", body)
    assert 400 <= status < 500
    assert complaint in told["error"]


async def test_unknown_sessions_paths_and_methods_are_refused_in_aaps_shape(aap: Client) -> None:
    turn = {"messages": [{"role": "user", "content": "x"}]}
    for method, path, body, status in [
        ("GET", "/sessions/sess_none", None, 404), ("DELETE", "/sessions/sess_none", None, 404),
        ("GET", "/sessions/sess_none/history?type=full", None, 404), ("POST", "/sessions/sess_none/turns", turn, 404),
        ("GET", "/nothing/here", None, 404), ("PUT", "/sessions", {}, 405), ("GET", "/sessions?after=%00", None, 400),
        ("GET", "/sessions?after=nonsense", None, 400),
    ]:
        got, told = await aap.call(method, path, body)
        assert got == status, path
        assert list(told) == ["error"]


async def test_a_refused_turn_changes_nothing(aap: Client) -> None:
    session = await aap.session(agent={"tools": [{"name": "calc"}]})
    await aap.turn(session, "/permit")
    before, info = await aap.history(session), await aap.call("GET", f"/sessions/{session}")
    for body in [
        {"messages": []}, {"messages": [{"role": "tool", "toolCallId": "call_none", "content": "x"}]},
        {"messages": [{"role": "wizard", "content": "x"}]}, {"messages": "x"},
        {"messages": [{"role": "user", "content": "x"}, {"role": "user", "content": "y"}]},
        {"messages": [{"role": "user", "content": "x"}], "agent": {"options": {"nope": "1"}}},
        {"messages": [{"role": "user", "content": "x"}], "agent": {"name": "other"}},
        {"messages": [{"role": "user", "content": "x"}], "tools": [{**MINE, "name": "calc"}]},
        {"messages": [{"role": "user", "content": "x"}], "stream": "telepathy"},
    ]:
        status, told = await aap.call("POST", f"/sessions/{session}/turns", body)
        assert 400 <= status < 500, body
        assert list(told) == ["error"]
    assert await aap.history(session) == before
    assert await aap.call("GET", f"/sessions/{session}") == info


async def test_history_needs_a_kind_the_agent_keeps(tmp_path: Path) -> None:
    agents = {"demo": {"backend": "demo", "capabilities": {"history": ["full"]}}}
    async with serving(tmp_path, agents=agents) as served:
        aap = Client(served)
        session = await aap.session()
        for query, status in [("?type=full", 200), ("?type=compacted", 404), ("?type=odd", 400), ("", 400)]:
            assert (await aap.call("GET", f"/sessions/{session}/history{query}"))[0] == status


# -- who may see what -------------------------------------------------------------------------------------------------

async def test_a_user_sees_only_their_own(tmp_path: Path) -> None:

    keys = key_store(tmp_path / "data")
    ann_key, bob_key = keys.add("ann"), keys.add("bob")
    async with serving(tmp_path, auth="keys") as served:
        ann, bob = Client(served, ann_key), Client(served, bob_key)
        nobody, wrong = Client(served), Client(served, "dgm_x")
        session = await ann.session()
        assert (await bob.call("GET", f"/sessions/{session}"))[0] == 404
        assert (await bob.call("DELETE", f"/sessions/{session}"))[0] == 404
        assert (await bob.call("GET", "/sessions"))[1] == {"sessions": []}
        assert (await ann.call("GET", f"/sessions/{session}"))[0] == 200
        for stranger in (nobody, wrong):
            status, told = await stranger.call("GET", "/sessions")
            assert status == 401
            assert list(told) == ["error"]
            assert (await stranger.call("GET", "/meta"))[0] == 200


@pytest.mark.usefixtures("journal_for_a_while")
async def test_secrets_are_seen_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from gateway import logging

    async with serving(tmp_path) as served:
        logging.configure_logging("json", "debug")
        aap = Client(served)
        session = await aap.session(agent={"options": {"api_key": "hush-hush-1"}})
        await aap.turn(session, "hello", agent={"options": {"api_key": "hush-hush-2"}})
        seen = [await aap.call("GET", f"/sessions/{session}"), await aap.call("GET", "/sessions"),
                await aap.history(session)]
        async with served.http.get(served.url(f"/replay/{session}")) as response:
            seen.append(await response.text())
        assert seen[0][1]["agent"]["options"]["api_key"] == "***"
        captured = capsys.readouterr()
        assert "hush-hush" not in f"{seen}{captured.out}{captured.err}"
        assert (await served.gateway.sessions.get("", session)).settings.secrets == {"api_key": "hush-hush-2"}


async def test_a_mask_that_was_shown_does_not_replace_the_secret(aap: Client) -> None:
    session = await aap.session(agent={"options": {"api_key": "hush-hush", "mood": "loud"}})
    shown = (await aap.call("GET", f"/sessions/{session}"))[1]["agent"]["options"]
    assert shown == {"greeting": "", "mood": "loud", "api_key": "***"}
    heard = await aap.turn(session, "hello", agent={"options": {**shown, "mood": "plain"}})
    settings = (await aap.served.gateway.sessions.get("", session)).settings
    assert (heard.stop, settings.secrets, settings.options["mood"]) == ("end_turn", {"api_key": "hush-hush"}, "plain")
    await aap.turn(session, "hello", agent={"options": {"api_key": "another", "greeting": "***"}})
    settings = (await aap.served.gateway.sessions.get("", session)).settings
    assert (settings.secrets, settings.options["greeting"]) == ({"api_key": "another"}, "***")


async def test_a_mask_without_a_secret_behind_it_is_refused_by_name(aap: Client) -> None:
    options = {"options": {"api_key": "***"}}
    refused = [await aap.call("POST", "/sessions", {"agent": {"name": "demo", **options}})]
    session = await aap.session()
    body = {"messages": [{"role": "user", "content": "hello"}], "agent": options}
    refused.append(await aap.call("POST", f"/sessions/{session}/turns", body))
    complaint = "agent.options.api_key: '***' stands for a secret that is set, and none is; send its value"
    assert refused == [(400, {"error": complaint})] * 2
    assert await aap.history(session) == []


async def test_the_mask_of_a_default_keeps_the_default(tmp_path: Path) -> None:
    option = {"name": "api_key", "type": "secret", "default": "the-house-key"}
    async with serving(tmp_path, agents={"demo": {"backend": "demo", "options": [option]}}) as served:
        aap = Client(served)
        [agent] = (await aap.call("GET", "/meta"))[1]["agents"]
        shown = {option["name"]: option["default"] for option in agent["options"]}
        assert shown == {"api_key": "***"}
        session = await aap.session(agent={"options": shown})
        await aap.turn(session, "hello", agent={"options": shown})
        assert (await served.gateway.sessions.get("", session)).settings.secrets == {}


async def test_pages_hold_while_sessions_come(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects={"aap": {"page_size": 3}}) as served:
        aap = Client(served)
        there = [await aap.session() for _ in range(7)]
        seen, path = [], "/sessions"
        while path:
            status, page = await aap.call("GET", path)
            assert status == 200
            seen += [info["sessionId"] for info in page["sessions"]]
            await aap.session()
            path = f"/sessions?after={page['next']}" if "next" in page else ""
        assert len(set(seen)) == len(seen)
        assert set(there) <= set(seen)
