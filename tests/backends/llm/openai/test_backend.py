"""The `openai` backend against a real server: what it asks, what it does with calls, and how it fails."""

import asyncio
import socket
import ssl
from typing import Any

import orjson
import pytest
import structlog
import trustme
from pydantic import ValidationError

import gateway.model as m
from gateway.client import events_of
from gateway.errors import BackendFailed, GatewayError, Invalid, Overloaded, RateLimited, TimedOut
from tests.support.backends.model_services import (
    DONE,
    KEY,
    backend_at,
    call,
    calls,
    chat,
    chunk,
    made,
    says,
    talked,
    turn_of,
    usage,
)
from tests.support.backends.turn_driver import FakeTurn, play
from tests.support.client.byte_server import Answer, Server, hangs, head, serving, stream
from tests.support.client.byte_server import chunk as packet
from tests.support.client.byte_server import says as answers_with


async def failing(*answers: Answer, **settings: Any) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await talked("openai", answers, **settings)
    return caught.value


# -- words ------------------------------------------------------------------------------------------------------------

async def test_an_answer_in_words() -> None:
    turn, server = await talked("openai", [chat(
        chunk({"content": "Good "}), chunk({"content": "day."}), chunk(finish="stop"), usage(9, 2),
    )])
    [asked] = server.asked
    assert (turn.text, turn.stops) == ("Good day.", [m.StopReason.END_TURN])
    assert [event.delta for event in turn.all(m.BlockDelta)] == ["Good ", "day."]
    assert turn.all(m.MessageEnded)[0].usage == m.Usage(input_tokens=9, output_tokens=2)
    assert turn.all(m.MessageStarted)[0].model == "m"
    assert (asked.method, asked.path, asked.headers["authorization"]) == (
        "POST", "/chat/completions", f"Bearer {KEY}")
    assert asked.json == {
        "model": "m", "stream": True, "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": "Hi"}],
    }


async def test_what_the_settings_and_the_session_say_is_asked_for() -> None:
    turn = turn_of(settings=m.Settings(system="Be brief.", model="theirs"))
    _, server = await talked(
        "openai", [says("ok")], turn, system="You are kind.", max_tokens=50, headers={"X-Team": "blue"},
        extra={"temperature": 0.5, "stream_options": None}, provider_tools=[{"type": "web_search"}],
    )
    [asked] = server.asked
    assert asked.headers["x-team"] == "blue"
    assert asked.json == {
        "model": "theirs", "stream": True, "temperature": 0.5, "max_tokens": 50, "tools": [{"type": "web_search"}],
        "messages": [{"role": "system", "content": "You are kind.\n\nBe brief."}, {"role": "user", "content": "Hi"}],
    }


async def test_the_model_of_a_message_goes_first() -> None:
    turn = turn_of(settings=m.Settings(model="theirs"))
    turn.command = type(turn.command)(content="Hi", model="this one")  # type: ignore[union-attr, call-arg]
    _, server = await talked("openai", [says("ok")], turn)
    assert server.asked[0].json["model"] == "this one"
    with pytest.raises(Invalid, match="No model was chosen"):
        await talked("openai", [says("ok")], model=None)


async def test_no_key_is_no_header() -> None:
    _, server = await talked("openai", [says("ok")], key=None)
    assert "authorization" not in server.asked[0].headers


async def test_a_schema_becomes_a_response_format() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    _, server = await talked("openai", [says('{"n":1}')], turn_of(output_schema=schema))
    assert server.asked[0].json["response_format"] == {
        "type": "json_schema", "json_schema": {"name": "answer", "schema": schema},
    }


async def test_pictures_and_files() -> None:
    pixel = "data:image/png;base64,iVBORw0KGgo="
    parts = (
        m.TextPart(text="Look:"), m.ImagePart(url="https://example.org/cat.png"), m.ImagePart(url=pixel),
        m.FilePart(name="note.txt", url="data:text/plain;base64,aGVsbG8="),
        m.FilePart(name="a.zip", url="https://example.org/a.zip"), m.FilePart(name="b.bin", url="data:x/y;base64,!!"),
    )
    _, server = await talked("openai", [says("ok")], turn_of(parts))
    assert server.asked[0].json["messages"][0]["content"] == [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}},
        {"type": "image_url", "image_url": {"url": pixel}},
        {"type": "text", "text": "[file note.txt]\nhello"},
        {"type": "text", "text": "[file a.zip at https://example.org/a.zip]"},
        {"type": "text", "text": "[file b.bin at data:x/y;base64,!!]"},
    ]


async def test_earlier_words_calls_and_results_are_told_in_their_places() -> None:
    one, two = m.ToolCall(call_id="c1", name="get.it", input={"a": 1}), m.ToolCall(call_id="c2", name="lost")
    provided = m.ToolCall(call_id="p1", name="web", origin=m.ToolOrigin.PROVIDER)
    history = [
        m.HistoryEntry(role=m.Role.SYSTEM, content="A summary.", seq=0, at=0.0),
        m.HistoryEntry(role=m.Role.USER, content="Get it", seq=1, at=0.0),
        m.HistoryEntry(
            role=m.Role.ASSISTANT,
            seq=2,
            at=0.0,
            content=(
                m.ThinkingPart(text="hm"),
                m.TextPart(text="Yes."),
                m.ToolUsePart(call=provided),
                m.ToolUsePart(call=one),
                m.ToolUsePart(call=two),
            ),
        ),
        m.HistoryEntry(role=m.Role.TOOL, content="found", call_id="p1", seq=3, at=0.0, origin=m.ToolOrigin.PROVIDER),
        m.HistoryEntry(
            role=m.Role.TOOL,
            content=(m.TextPart(text="no"), m.ImagePart(url="data:image/png;base64,aa")),
            call_id="c1",
            is_error=True,
            seq=4,
            at=0.0,
        ),
        m.HistoryEntry(role=m.Role.TOOL, content="whose?", call_id="c9", seq=5, at=0.0),
        m.HistoryEntry(role=m.Role.ASSISTANT, content=(m.ThinkingPart(text="nothing to say"),), seq=6, at=0.0),
    ]
    silent = m.ToolCall(call_id="c3", name="t")
    history.append(m.HistoryEntry(role=m.Role.ASSISTANT, content=(m.ToolUsePart(call=silent),), seq=7, at=0.0))
    history.append(m.HistoryEntry(role=m.Role.TOOL, content="yes", call_id="c3", seq=8, at=0.0))
    _, server = await talked("openai", [says("ok")], turn_of(history=history), reasoning_field="reasoning_content")
    assert server.asked[0].json["messages"] == [
        {"role": "system", "content": "A summary."},
        {"role": "user", "content": "Get it"},
        {"role": "assistant", "content": "Yes.", "reasoning_content": "hm", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "get_it", "arguments": '{"a":1}'}},
            {"id": "c2", "type": "function", "function": {"name": "lost", "arguments": "{}"}},
        ]},
        {"role": "tool", "tool_call_id": "c1", "content": "Error: no\n[a picture]"},
        {"role": "tool", "tool_call_id": "c2", "content": "Error: What this call gave back is not known."},
        {"role": "user", "content": "A tool gave back: whose?"},
        {"role": "assistant", "content": None, "reasoning_content": "", "tool_calls": [
            {"id": "c3", "type": "function", "function": {"name": "t", "arguments": "{}"}},
        ]},
        {"role": "tool", "tool_call_id": "c3", "content": "yes"},
        {"role": "user", "content": "Hi"},
    ]


# -- calls ------------------------------------------------------------------------------------------------------------

async def test_a_tool_of_the_house_is_carried_out_and_its_result_told() -> None:
    turn, server = await talked(
        "openai", [calls("calc", '{"expression": "6*7"}'), says("It is 42.")], tools=["calc"])
    assert (turn.text, turn.results) == ("It is 42.", ["42"])
    assert turn.stops == [m.StopReason.TOOL_USE, m.StopReason.END_TURN]
    first, second = (asked.json for asked in server.asked)
    assert [tool["function"]["name"] for tool in first["tools"]] == ["calc"]
    assert first["tools"][0]["function"]["parameters"]["required"] == ["expression"]
    assert second["messages"][1:] == [
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "call_a", "type": "function", "function": {"name": "calc", "arguments": '{"expression":"6*7"}'}},
        ]},
        {"role": "tool", "tool_call_id": "call_a", "content": "42"},
    ]


async def test_several_calls_go_their_ways() -> None:
    parameters = {"type": "object", "properties": {"where": {"type": "string"}}}
    settings = m.Settings(client_tools=(m.ToolSpec(name="look.around", parameters=parameters),))
    turn = turn_of(settings=settings)
    turn, server = await talked("openai", [chat(
        chunk({"content": "Let me see."}),
        chunk(call(0, "a", "clock", "")), chunk(call(1, "b", "calc", '{"expression"')),
        chunk(call(2, "c", "look_around", '{"where":')), chunk(call(1, None, None, ':"1+1"}')),
        chunk(call(2, None, None, '"here"}')), chunk(call(3, "d", "nobody_has_this", "{}")),
        chunk(finish="tool_calls"),
    ), says("Done.")], turn, tools={"clock": "allow", "calc": "ask"})
    assert [type(ask) for ask in turn.asks[0]] == [m.PermissionAsk, m.ClientToolAsk]
    assert turn.asks[0][1].call.name == "look.around"  # type: ignore[union-attr]
    back = {event.call_id: (event.content, event.is_error, event.origin) for event in turn.all(m.ToolReturned)}
    assert back["b"] == ("2", False, "builtin") and back["c"] == ("done by the client", False, "client")
    assert back["d"] == ("There is no tool nobody_has_this", True, "builtin") and back["a"][1] is False
    messages = server.asked[1].json["messages"]
    assert [message.get("tool_call_id") for message in messages[2:]] == ["a", "b", "c", "d"]
    assert messages[1]["tool_calls"][2]["function"]["name"] == "look_around"


async def test_a_call_that_is_refused_is_told_so() -> None:
    turn = turn_of(answering=lambda ask, id: m.DecidePermission(request_id=id, granted=False, reason="not today"))
    turn, server = await talked("openai", [calls("clock"), says("Pity.")], turn, tools={"clock": "ask"})
    assert turn.results == ["Tool call denied: not today"]
    assert server.asked[1].json["messages"][-1]["content"] == "Error: Tool call denied: not today"


async def test_arguments_that_are_not_json_are_told_to_the_model() -> None:
    turn, server = await talked("openai", [
        chat(chunk(call(0, "a", "clock", '{"half": ')), chunk(call(1, "b", "clock", "[1]")),
             chunk(call(2, "c", "clock", "{}")), chunk(finish="tool_calls")),
        chat(chunk(call(0, "d", "clock", "not json")), chunk(finish="tool_calls")),
        says("I give up."),
    ], tools=["clock"])
    assert (turn.text, len(turn.results)) == ("I give up.", 1)
    told = [(message["tool_call_id"], "not a JSON object" in message["content"])
            for message in server.asked[2].json["messages"] if message["role"] == "tool"]
    assert sorted(told) == [("a", True), ("b", True), ("c", False), ("d", True)]


async def test_an_id_that_was_used_before_is_exchanged() -> None:
    turn, server = await talked("openai", [calls("clock", id="call_0"), calls("clock", id="call_0"), says("x")],
                                tools=["clock"])
    ids = [event.call_id for event in turn.all(m.ToolReturned)]
    assert len(set(ids)) == 2
    assert [message["tool_call_id"] for message in server.asked[2].json["messages"] if message["role"] == "tool"] == ids


async def test_two_calls_with_one_id_are_both_carried_out() -> None:
    turn, server = await talked("openai", [chat(
        chunk(call(0, "a", "calc", '{"expression": "1"}')), chunk(call(1, "a", "calc", '{"expression": "2"}')),
        chunk(finish="tool_calls"),
    ), says("Done.")], tools=["calc"])
    told = [message for message in server.asked[1].json["messages"] if message["role"] == "tool"]
    assert [message["content"] for message in told] == ["1", "2"] and sorted(turn.results) == ["1", "2"]
    assert len({message["tool_call_id"] for message in told}) == 2


async def test_a_turn_has_a_last_step() -> None:
    turn, server = await talked("openai", [calls("clock")], tools=["clock"], max_steps=3)
    assert len(server.asked) == 3
    assert turn.stops == [m.StopReason.TOOL_USE, m.StopReason.TOOL_USE, m.StopReason.MAX_STEPS]
    assert "limit of steps" in turn.results[-1]


async def test_an_answer_that_was_cut_short_carries_nothing_out() -> None:
    turn, server = await talked("openai", [chat(
        chunk(call(0, "a", "clock", "{}")), chunk(call(1, "b", "calc", '{"expr')), chunk(finish="length"),
    )], tools=["clock", "calc"])
    assert (turn.stops, len(server.asked)) == ([m.StopReason.MAX_TOKENS], 1)
    assert turn.results == ["This call was not carried out: the answer was cut short."]


async def test_calls_are_carried_out_though_the_reason_says_stop() -> None:
    turn, _ = await talked("openai", [chat(chunk(call(0, "a", "clock", "{}")), chunk(finish="stop")), says("x")],
                           tools=["clock"])
    assert (turn.text, len(turn.results)) == ("x", 1)


async def test_what_a_session_did_not_enable_is_not_there() -> None:
    turn = turn_of(settings=m.Settings(tools={"clock": m.Permission.ASK, "calc": m.Permission.ALLOW}))
    _, server = await talked(
        "openai", [says("ok")], turn, tools={"clock": "allow", "calc": "deny", "search": "allow"})
    assert [tool["function"]["name"] for tool in server.asked[0].json["tools"]] == ["clock"]


async def test_a_turn_that_plans_has_no_tools() -> None:
    turn = turn_of(mode="planning", settings=m.Settings(client_tools=(m.ToolSpec(name="x"),)))
    _, server = await talked("openai", [says("ok")], turn, tools=["clock"], provider_tools=[{"type": "w"}])
    assert "tools" not in server.asked[0].json


# -- compaction -------------------------------------------------------------------------------------------------------

async def test_a_history_is_summed_up() -> None:
    turn = FakeTurn(m.Compact(), history=[m.HistoryEntry(role=m.Role.USER, content="Hello", seq=1, at=0.0)])
    answer = chat(chunk({"content": "They said hello."}), chunk(finish="stop"), usage(100, 4))
    async with serving(answer) as server, backend_at("openai", server, tools=["clock"]) as backend:
        await play(backend, turn)
    [compacted] = turn.all(m.SessionCompacted)
    assert (compacted.summary, compacted.archived) == ("They said hello.", 1)
    assert (compacted.tokens_before, compacted.tokens_after) == (100, 4)
    assert "Summarise" in server.asked[0].json["messages"][-1]["content"] and "tools" not in server.asked[0].json
    async with serving(chat(chunk(finish="stop"))) as server, backend_at("openai", server) as backend:
        with pytest.raises(BackendFailed, match="no summary"):
            await play(backend, FakeTurn(m.Compact()))


# -- failures ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("status", "kind"), [
    (400, BackendFailed), (401, BackendFailed), (404, BackendFailed), (429, RateLimited), (500, Overloaded),
    (503, Overloaded),
])
async def test_a_status_becomes_a_fault_without_the_key(status: int, kind: type[GatewayError]) -> None:
    with structlog.testing.capture_logs() as lines:
        error = await failing(answers_with(f'{{"error": {{"message": "Bad key {KEY}"}}}}'.encode(), status))
    assert type(error) is kind and KEY not in str(error.fault) + repr(error) + str(lines)
    assert "Bad key ***" in error.message


async def test_how_long_to_wait_is_passed_on_and_retries_are_made_before_the_first_event_only() -> None:
    error = await failing(answers_with(b"", 429, Retry_After="7"))
    assert error.fault.details == {"upstream_status": 429, "retry_after": 7}
    turn, server = await talked("openai", [answers_with(b"", 429, Retry_After="0"), says("ok")], attempts=2)
    assert (turn.text, len(server.asked)) == ("ok", 2)
    answers = stream(chunk({"content": "x"}), ends=False), says("again")
    async with serving(*answers) as server, backend_at("openai", server, attempts=4) as backend:
        with pytest.raises(BackendFailed, match="broke"):
            await play(backend, turn_of())
    assert len(server.asked) == 1


@pytest.mark.parametrize(("answer", "words"), [
    (stream(chunk({"content": "x"})), "ended before it was whole"),
    (stream(chunk({"content": "x"}), b'data: {"choices": [{"del\n\n'), "cannot be read"),
    (stream(chunk({"content": "x"}), b'data: {"choices": [{"delta": {"content": "\xc3\x28"}}]}\n\n'), "not UTF-8"),
    (stream(), "ended before it was whole"),
    (stream(DONE[:-1]), "ended before it was whole"),
], ids=["no end", "half a chunk", "no UTF-8", "nothing", "half an end"])
async def test_streams_that_break(answer: Answer, words: str) -> None:
    error = await failing(answer)
    assert isinstance(error, BackendFailed) and words in error.message


@pytest.mark.parametrize(("before", "settings"), [
    ([], {"first_byte_seconds": 0.05}),
    ([head(), packet(chunk({"content": "x"}))], {"idle_seconds": 0.05}),
    ([head(), packet(chunk({"content": "x"}))], {"total_seconds": 0.2}),
])
async def test_a_service_that_hangs(before: list[bytes], settings: dict[str, Any]) -> None:
    error = await failing(hangs(Server(), *before), **settings)
    assert isinstance(error, TimedOut)


async def test_a_whole_answer_is_kept_though_the_service_hangs_afterwards() -> None:
    hung = Server()
    whole = [head(), packet(chunk({"content": "x"})), packet(chunk(finish="stop")), packet(DONE)]
    turn, _ = await talked("openai", [hangs(hung, *whole)])
    assert turn.text == "x"


async def test_a_line_that_never_ends() -> None:
    async def answer(writer: asyncio.StreamWriter, asked: Any) -> None:
        writer.write(head() + packet(b"data: "))
        for _ in range(100):
            writer.write(packet(b"x" * 1_000_000))
            await writer.drain()

    assert "an event of more than" in (await failing(answer)).message


async def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        backend = made("openai", f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(BackendFailed, match="cannot be reached"):
            await play(backend, turn_of())
        await backend.close()


async def test_a_redirect_to_another_host_is_not_followed() -> None:
    async with serving(says("gotcha")) as other:
        error = await failing(answers_with(b"", 308, Location=f"{other.url}/chat/completions"))
        assert "with a redirect" in error.message and (other.asked, other.connections) == ([], 0)


async def test_a_certificate_that_does_not_verify() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    async with serving(says("gotcha"), tls=context) as server, backend_at("openai", server) as backend:
        with pytest.raises(BackendFailed, match="certificate does not verify"):
            await play(backend, turn_of())
        assert server.asked == []


async def test_an_interrupted_turn_lets_the_service_go() -> None:
    hung = Server()
    answer = hangs(hung, head(), packet(chunk({"content": "x"})))
    async with serving(answer) as server, backend_at("openai", server) as backend:
        speech = backend.run(turn_of())
        async for telling in speech:
            if any(isinstance(said, m.BlockDelta) for said in events_of(telling)):
                break
        await speech.aclose()
        async with asyncio.timeout(60):
            await hung.gone.wait()


async def test_a_key_in_the_answer_is_blotted_out() -> None:
    turn, _ = await talked("openai", [chat(chunk({"content": f"Your key is {KEY}."}), chunk(finish="stop"))])
    assert turn.text == "Your key is ***."


# -- settings ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("settings", "words"), [
    ({"tools": ["clokc"]}, "no built-in tool 'clokc'"), ({"urll": "x"}, "urll"), ({"max_steps": 0}, "max_steps"),
    ({"mcp": {"x": {}}}, "a command or a url"),
    ({"mcp": {"x": {"url": "http://h", "args": ["a"]}}}, "belong to a command"),
    ({"mcp": {"x": {"command": "sh", "key": "k"}}}, "belong to a url"), ({"key": "$NO_SUCH_VARIABLE"}, "no variable"),
])
def test_mistakes_in_the_settings(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        made("openai", "http://127.0.0.1:1/v1", **settings)


async def test_the_settings_print_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    backend = made("openai", "http://127.0.0.1:1/v1", key="$MY_KEY")
    assert KEY not in repr(backend._settings) + str(backend.card) and backend._settings.secrets == (KEY,)
    await backend.close()
    assert orjson.loads(backend._settings.model_dump_json())["key"] == "**********"
