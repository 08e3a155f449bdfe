"""The `anthropic` backend against a real server: what it asks, what it sends back, and how it fails."""

from pathlib import Path
from typing import Any

import pytest
from anthropic import AsyncAnthropic

import gateway.model as m
from gateway.errors import BackendFailed, GatewayError, Overloaded, RateLimited, TimedOut
from tests.support.backends.messages_api import (
    FOUND,
    end,
    event,
    found,
    message,
    redacted,
    start,
    text,
    thinking,
    tool,
)
from tests.support.backends.model_services import KEY, talked, turn_of
from tests.support.client.byte_server import Answer, Server, hangs, head, serving, stream
from tests.support.client.byte_server import chunk as packet
from tests.support.client.byte_server import says as answers_with
from tests.support.dialect_tables import DIALECTS
from tests.support.dialects.aap.reader import read
from tests.support.gateway_server import serving as gateway


async def failing(*answers: Answer, **settings: Any) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await talked("anthropic", answers, **settings)
    return caught.value


async def test_an_answer_in_words() -> None:
    turn, server = await talked("anthropic", [message(text(0, "Good ", "day."), output_tokens=7)], system="Be kind.")
    [asked] = server.asked
    assert (turn.text, turn.stops) == ("Good day.", [m.StopReason.END_TURN])
    assert turn.all(m.MessageEnded)[0].usage == m.Usage(input_tokens=10, output_tokens=7)
    assert (asked.path, asked.headers["x-api-key"], asked.headers["anthropic-version"]) == (
        "/v1/messages", KEY, "2023-06-01")
    assert asked.json == {
        "model": "m", "max_tokens": 8192, "stream": True, "system": "Be kind.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    }


async def test_the_fake_service_speaks_the_protocol() -> None:
    """The service's own client reads the same from it."""
    answer = message(
        thinking(0, "hm", signature="c2ln"), redacted(1, "ZGF0"), text(2, "Good ", "day."),
        tool(3, "srvtoolu_1", "web_search", '{"query": "x"}', kind="server_tool_use"), found(4, "srvtoolu_1"),
        tool(5, "toolu_1", "calc", '{"expression":', '"1+1"}'), reason="tool_use", output_tokens=9,
    )
    async with serving(answer) as server, AsyncAnthropic(api_key=KEY, base_url=server.url, max_retries=0) as client:
        asking: Any = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}]}
        async with client.messages.stream(**asking) as reading:
            whole = await reading.get_final_message()
    kinds = [block.type for block in whole.content]
    assert kinds == ["thinking", "redacted_thinking", "text", "server_tool_use", "web_search_tool_result", "tool_use"]
    assert (whole.content[2].text, whole.content[5].input) == ("Good day.", {"expression": "1+1"})  # type: ignore
    assert (whole.stop_reason, whole.usage.output_tokens) == ("tool_use", 9)


async def test_thoughts_calls_and_searches_go_back_as_they_came() -> None:
    turn, server = await talked("anthropic", [
        message(
            thinking(0, "Let me see.", signature="c2ln"), redacted(1, "ZGF0YQ=="), text(2, "One moment."),
            tool(3, "srvtoolu_1", "web_search", '{"query": "x"}', kind="server_tool_use"), found(4, "srvtoolu_1"),
            tool(5, "toolu_1", "calc", '{"expression":', '"6*7"}'), tool(6, "toolu_2", "clock"), reason="tool_use",
        ),
        message(text(0, "It is 42.")),
    ], tools=["calc", "clock"], provider_tools=[{"type": "web_search_20250305", "name": "web_search"}],
        extra={"thinking": {"type": "enabled", "budget_tokens": 2048}})
    first, second = (asked.json for asked in server.asked)
    assert turn.text == "One moment.It is 42."
    assert [(one["name"], "input_schema" in one) for one in first["tools"]] == [
        ("calc", True), ("clock", True), ("web_search", False)]
    assert first["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    said, back = second["messages"][1:]
    assert said == {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZGF0YQ=="},
        {"type": "text", "text": "One moment."},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": FOUND},
        {"type": "tool_use", "id": "toolu_1", "name": "calc", "input": {"expression": "6*7"}},
        {"type": "tool_use", "id": "toolu_2", "name": "clock", "input": {}},
    ]}
    assert [(one["tool_use_id"], "is_error" in one) for one in back["content"]] == [
        ("toolu_1", False), ("toolu_2", False)]
    assert back["content"][0] == {"type": "tool_result", "tool_use_id": "toolu_1", "content": "42"}
    assert {one.origin for one in turn.all(m.ToolReturned)} == {m.ToolOrigin.BUILTIN, m.ToolOrigin.PROVIDER}


async def test_a_service_that_pauses_is_asked_again_as_it_is() -> None:
    turn, server = await talked("anthropic", [
        message(tool(0, "srvtoolu_1", "web_search", '{"query": "x"}', kind="server_tool_use"), reason="pause_turn"),
        message(found(0, "srvtoolu_1"), text(1, "Found.")),
    ])
    assert (turn.text, turn.results[0][:10]) == ("Found.", "(TextPart(")
    assert server.asked[1].json["messages"][1:] == [{"role": "assistant", "content": [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}]}]


async def test_arguments_that_are_not_json_and_tools_nobody_has() -> None:
    turn, server = await talked("anthropic", [
        message(tool(0, "a", "calc", '{"half'), tool(1, "b", "nobody"), reason="tool_use"),
        message(text(0, "Pity.")),
    ], tools=["calc"])
    results = {one["tool_use_id"]: one for one in server.asked[1].json["messages"][2]["content"]}
    assert turn.text == "Pity." and all(one["is_error"] for one in results.values())
    assert "not a JSON object" in results["a"]["content"] and results["b"]["content"] == "There is no tool nobody"


async def test_a_turn_has_a_last_step() -> None:
    turn, server = await talked("anthropic", [message(tool(0, "a", "clock"), reason="tool_use")], tools=["clock"],
                                max_steps=2)
    assert (len(server.asked), turn.stops) == (2, [m.StopReason.TOOL_USE, m.StopReason.MAX_STEPS])


async def test_pictures_files_and_earlier_words() -> None:
    call = m.ToolCall(call_id="call:1", name="look.up")
    lost = m.ToolCall(call_id="srvtoolu_9", name="web_search", origin=m.ToolOrigin.PROVIDER)
    mine = m.ToolCall(call_id="mcptoolu_1", name="echo", origin=m.ToolOrigin.PROVIDER, server="theirs")
    block = {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False, "content": []}
    history = [
        m.HistoryEntry(role=m.Role.SYSTEM, content="A summary.", seq=0, at=0.0),
        m.HistoryEntry(
            role=m.Role.ASSISTANT,
            model="m",
            seq=1,
            at=0.0,
            content=(
                m.ThinkingPart(text="mine", signature="s"),
                m.ThinkingPart(text="unsigned"),
                m.TextPart(text="  "),
                m.ToolUsePart(call=lost),
                m.ToolUsePart(call=mine),
                m.ToolUsePart(call=call),
                m.DataPart(type="card"),
                m.ImagePart(url="https://example.org/made.png"),
            ),
        ),
        m.HistoryEntry(role=m.Role.TOOL, call_id="srvtoolu_9", content="gone", seq=2, at=0.0),
        m.HistoryEntry(
            role=m.Role.TOOL,
            call_id="mcptoolu_1",
            content=(m.DataPart(type="mcp_tool_result", content=block),),
            seq=2,
            at=0.0,
        ),
        m.HistoryEntry(
            role=m.Role.TOOL,
            call_id="call:1",
            seq=3,
            at=0.0,
            content=(m.TextPart(text="a picture"), m.ImagePart(url="data:image/png;base64,aGk=")),
        ),
        m.HistoryEntry(
            role=m.Role.ASSISTANT,
            model="another",
            seq=4,
            at=0.0,
            content=(m.ThinkingPart(text="theirs", signature="s"), m.TextPart(text="So.")),
        ),
        m.HistoryEntry(role=m.Role.USER, content="", seq=5, at=0.0),
    ]
    parts = (
        m.TextPart(text="Look:"), m.ImagePart(url="https://example.org/cat.png"),
        m.FilePart(name="a.pdf", url="https://example.org/a.pdf", media_type="application/pdf"),
        m.FilePart(name="b.pdf", url="data:application/pdf;base64,aGk="), m.FilePart(name="c.zip"),
    )
    turn = turn_of(parts, history=history, settings=m.Settings(system="Be brief."), output_schema={"type": "object"})
    _, server = await talked("anthropic", [message(text(0, "{}"))], turn)
    asked = server.asked[0].json
    assert asked["system"].startswith("Be brief.\n\nA summary.\n\nAnswer with JSON only")
    assert [one["role"] for one in asked["messages"]] == ["user", "assistant", "user", "assistant", "user"]
    assert asked["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "mine", "signature": "s"},
        {"type": "mcp_tool_use", "server_name": "theirs", "id": "mcptoolu_1", "name": "echo", "input": {}}, block,
        {"type": "tool_use", "id": "call_1", "name": "look_up", "input": {}},
        {"type": "text", "text": "![image](https://example.org/made.png)"},
    ]
    assert asked["messages"][2]["content"] == [{"type": "tool_result", "tool_use_id": "call_1", "content": [
        {"type": "text", "text": "a picture"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
    ]}]
    assert asked["messages"][3]["content"] == [{"type": "text", "text": "So."}]
    assert asked["messages"][4]["content"] == [
        {"type": "text", "text": "(An empty message.)"}, {"type": "text", "text": "Look:"},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/cat.png"}},
        {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}, "title": "a.pdf"},
        {"type": "document", "title": "b.pdf",
         "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}},
        {"type": "text", "text": "[file c.zip]"},
    ]


async def test_client_tools_are_offered_under_names_the_service_takes() -> None:
    turn = turn_of(settings=m.Settings(client_tools=(m.ToolSpec(name="look.around"),)))
    turn, server = await talked("anthropic", [
        message(tool(0, "a", "look_around", "{}"), reason="tool_use"), message(text(0, "Nice."))], turn)
    assert server.asked[0].json["tools"] == [
        {"name": "look_around", "description": "", "input_schema": {"type": "object", "properties": {}}}]
    assert (turn.asks[0][0].call.name, turn.results) == ("look.around", ["done by the client"])  # type: ignore


@pytest.mark.parametrize(("status", "kind"), [
    (400, BackendFailed), (401, BackendFailed), (404, BackendFailed), (429, RateLimited), (500, Overloaded),
    (529, Overloaded),
])
async def test_a_status_becomes_a_fault_without_the_key(status: int, kind: type[GatewayError]) -> None:
    body = f'{{"type": "error", "error": {{"type": "x", "message": "Bad key {KEY}"}}}}'.encode()
    error = await failing(answers_with(body, status))
    assert type(error) is kind and "Bad key ***" in error.message


@pytest.mark.parametrize(("answer", "words"), [
    (stream(start(), *text(0, "x")), "ended before it was whole"),
    (stream(start(), *text(0, "x"), ends=False), "broke"),
    (stream(start(), event("error", error={"type": "overloaded_error", "message": "Overloaded"})), "Overloaded"),
    (stream(b"event: message_start\ndata: {\n\n"), "cannot be read"),
    (answers_with(b"", 307, Location="http://127.0.0.1:1/"), "with a redirect"),
])
async def test_streams_that_break(answer: Answer, words: str) -> None:
    assert words in (await failing(answer)).message


async def test_a_service_that_hangs() -> None:
    error = await failing(hangs(Server(), head(), packet(start())), idle_seconds=0.05)
    assert isinstance(error, TimedOut)


async def test_an_end_without_a_stop_event_is_an_end() -> None:
    turn, _ = await talked("anthropic", [stream(start(), *text(0, "x"), end().partition(b"event: message_stop")[0])])
    assert turn.text == "x"


async def test_a_search_and_a_thought_are_kept_across_turns_and_a_restart(tmp_path: Path) -> None:
    answers = [
        message(thinking(0, "Search.", signature="c2ln"), redacted(1, "ZGF0YQ=="),
                tool(2, "srvtoolu_1", "web_search", "{}", kind="server_tool_use"), found(3, "srvtoolu_1"),
                tool(4, "toolu_1", "weather"), reason="tool_use"),
        message(text(0, "Sunny.")), message(text(0, "Still.")),
    ]
    async with serving(*answers) as server:
        agents = {"llm": {"backend": "anthropic", "settings": {"url": server.url, "key": KEY, "model": "m"}}}
        async with gateway(tmp_path, log="sqlite", agents=agents) as served:
            async with served.http.post(served.url("/aap/sessions"), json={
                "agent": {"name": "llm"}, "tools": [{"name": "weather", "description": "", "parameters": {}}],
            }) as response:
                one = (await response.json())["sessionId"]
            async with served.http.post(served.url(f"/aap/sessions/{one}/turns"), json={
                "messages": [{"role": "user", "content": "Weather?"}],
            }) as response:
                assert read(await response.json()).stop == "tool_use"
        async with gateway(tmp_path, log="sqlite", agents=agents, dialects={name: {} for name in DIALECTS}) as served:
            for said, words in (({"role": "tool", "toolCallId": "toolu_1", "content": "sunny"}, "Sunny."),
                                ({"role": "user", "content": "And now?"}, "Still.")):
                async with served.http.post(served.url(f"/aap/sessions/{one}/turns"), json={
                    "messages": [said]}) as response:
                    assert read(await response.json()).text == words
            for dialect in DIALECTS:
                chunks = [chunk async for chunk in await served.gateway.sessions.read(
                    "", one, dialect, served.gateway.components.dialects[dialect].default_options)]
                assert b"Still." in b"".join(frame.body for chunk in chunks for frame in chunk.frames), dialect
    told = server.asked[2].json["messages"]
    assert told[1]["content"] == [
        {"type": "thinking", "thinking": "Search.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZGF0YQ=="},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": FOUND},
        {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}},
    ]
    assert told[2]["content"] == [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}]
