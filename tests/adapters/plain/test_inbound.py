"""Requests of a plain dialect become commands, live or from a recording."""

from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from adapters.plain import plain_dialect
from adapters.plain.inbound import check_command, command_of, image_addresses, message_of, settings_of
from gateway.errors import Conflict, Invalid, Unsupported
from gateway.ports import Dialect, ParsedFrame
from mappings.language import Table, Vocabulary, load_table
from tests.support.plain_dialect import PlainFolder

VIEW = m.SessionView(session_id="ses_1", agent="demo")
CALL = m.ToolCall(call_id="call_1", name="look", input={})


def returning(table: dict[str, Any]) -> None:
    table["inputs"]["returned"] = {
        "command": "return_result", "wire": {"call": "$request_id", "result": "$content"}}
    table["types"]["returned"] = {"request_id": "id!", "content": "text!"}
    table["routes"]["POST /sessions/{session}/results"] = {"input": "returned", "stream": "turn"}


def marked(table: dict[str, Any]) -> None:
    table["inputs"] = {"message.sent": {"command": "send_message", "wire": {"type": "say", "text": "$content"}},
                       "turn.stopped": {"command": "interrupt", "wire": {"type": "stop"}}}


def loaded(file: Path) -> tuple[Dialect, Table]:
    dialect = plain_dialect(file)
    return dialect, load_table(file, Vocabulary.of(dialect))


def test_a_message_is_known_by_its_constants_if_there_are_several(plain_folder: PlainFolder) -> None:
    _, table = loaded(plain_folder.write(marked))
    among = ["message.sent", "turn.stopped"]
    assert message_of({"anything": 1}, ["message.sent"], table) == "message.sent"
    assert message_of({"type": "say", "text": "hi"}, among, table) == "message.sent"
    assert message_of({"type": "stop"}, among, table) == "turn.stopped"
    with pytest.raises(Invalid, match="none of the messages"):
        message_of({"type": "shout"}, among, table)


def test_a_message_is_a_command(plain_folder: PlainFolder) -> None:
    _, table = loaded(plain_folder.write())
    assert command_of("message.sent", {"text": "hi", "more": 1}, VIEW, table) == m.SendMessage(content="hi")
    with pytest.raises(Invalid) as refused:
        command_of("message.sent", {"text": 5}, VIEW, table)
    assert (refused.value.message, refused.value.param) == ("text: should be a text", "text")


@pytest.mark.parametrize("content", [5, {"a": 1}, [1], [{"type": "nothing"}], True])
def test_what_is_no_content_is_refused_where_the_table_says_no_type(plain_folder: PlainFolder, content: Any) -> None:
    _, table = loaded(plain_folder.write(lambda table: table["types"].pop("message.sent")))
    with pytest.raises(Invalid):
        command_of("message.sent", {"text": content}, VIEW, table)


@pytest.mark.parametrize("results", [[5], [{"role": "tool"}], [{"role": "clown", "content": "x"}]])
def test_what_the_model_does_not_have_is_refused_however_deep_it_is(plain_folder: PlainFolder, results: Any) -> None:
    def with_results(table: dict[str, Any]) -> None:
        table["inputs"]["message.sent"]["wire"]["results"] = "$results"

    _, table = loaded(plain_folder.write(with_results))
    with pytest.raises(Invalid):
        command_of("message.sent", {"text": "x", "results": results}, VIEW, table)


@pytest.mark.parametrize("said", [
    {"client_tools": [{"name": 5}]}, {"client_tools": [{"description": "x"}]}, {"options": {"tone": 5}},
    {"permissions": [{"name": "calc", "permission": "perhaps"}]}, {"client_tools": [{"name": "x", "parameters": []}]},
])
def test_settings_of_another_shape_are_refused(said: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        settings_of(said)


def test_settings_are_tools_options_and_permissions() -> None:
    said = {"client_tools": [{"name": "look", "title": None}], "options": {"tone": "plain"},
            "permissions": [
                {"name": "calc", "trust": True}, {"name": "clock"}, {"name": "erase", "permission": "deny"}]}
    assert settings_of(said) == m.Settings(
        client_tools=(m.ToolSpec(name="look"),), options={"tone": "plain"},
        tools={"calc": m.Permission.ALLOW, "clock": m.Permission.ASK, "erase": m.Permission.DENY})
    assert settings_of({}) == m.Settings()


def test_the_result_of_a_call_answers_the_ask_about_the_call(plain_folder: PlainFolder) -> None:
    _, table = loaded(plain_folder.write(returning))
    ask = m.OpenAsk(request_id="req_1", ask=m.ClientToolAsk(call=CALL), call_id="call_1", seq=3, at=1.0,
                    turn_id="turn_1", scope_id=m.ROOT)
    view = m.SessionView(session_id="ses_1", asks={"req_1": ask})
    for named in ("call_1", "req_1"):
        body = {"call": named, "result": "found"}
        assert command_of("returned", body, view, table) == m.ReturnResult(request_id="req_1", content="found")
        with pytest.raises(Conflict, match=f"nothing is asked that is called '{named}'"):
            command_of("returned", body, VIEW, table)


def test_what_the_agent_cannot_take_is_refused() -> None:
    shown = m.SendMessage(content=(m.TextPart(text="see"), m.ImagePart(url="https://example.com/cat.png")))
    assert list(image_addresses(shown)) == [("content.1", "https://example.com/cat.png")]
    check_command(m.SendMessage(content="see"), VIEW, m.AgentCard(name="demo"))
    blind = m.AgentCard(name="demo", capabilities=m.AgentCapabilities(images=()))
    with pytest.raises(Unsupported, match="does not take images"):
        check_command(shown, VIEW, blind)
    with pytest.raises(Conflict, match="no turn runs"):
        check_command(m.Interrupt(), VIEW, blind)


@pytest.mark.parametrize(("name", "body", "command"), [
    ("POST /nova/sessions/ses_1/messages", {"text": "hi"}, m.SendMessage(content="hi")),
    ("POST /sessions/ses_1/messages", {"text": "hi"}, m.SendMessage(content="hi")),
    ("DELETE /nova/sessions/ses_1/turn", None, m.Interrupt()),
    ("POST /nova/sessions/ses_1/messages", {"text": 5}, None),
    ("POST /nova/sessions", {"title": "x"}, None),
    ("GET /nova/sessions/ses_1/messages", {"text": "hi"}, None),
])
def test_a_recorded_request_is_a_command(
    plain_folder: PlainFolder, name: str, body: Any, command: m.AnyCommand | None,
) -> None:
    dialect, table = loaded(plain_folder.write())
    assert dialect.recorded_commands is not None
    assert list(dialect.recorded_commands(ParsedFrame(name, body), VIEW, table)) == ([command] if command else [])
