"""What AAP clients send is taken literally: a wrong type in any field is refused, an unknown member is not."""

import copy
from typing import Any

import pytest
from pydantic import ValidationError

from adapters.aap.wire import AapSettings, ImageBlock, NewSession, NewTurn, ServerToolRef, ToolDeclaration, ToolUseBlock

SESSION: dict[str, Any] = {
    "agent": {"name": "demo", "tools": [{"name": "clock", "trust": True}], "options": {"mood": "plain"}},
    "messages": [
        {"role": "system", "content": "x"}, {"role": "user", "content": "x"},
        {"role": "assistant", "content": [
            {"type": "text", "text": "x"}, {"type": "thinking", "thinking": "x"},
            {"type": "tool_use", "toolCallId": "c", "name": "n", "input": {}}, {"type": "image", "url": "https://x"},
        ]},
        {"role": "tool", "toolCallId": "c", "content": "x"},
    ],
    "tools": [{"name": "mine", "title": "Mine", "description": "x", "parameters": {"type": "object"}}],
}
TURN: dict[str, Any] = {
    "messages": [
        {"role": "user", "content": "x"}, {"role": "tool", "toolCallId": "c", "content": "x"},
        {"role": "tool_permission", "toolCallId": "c", "granted": True, "reason": "x"},
    ],
    "stream": "delta", "agent": {"options": {"mood": "plain"}, "tools": [{"name": "clock", "trust": False}]},
    "tools": [{"name": "mine", "description": "x", "parameters": {}}],
}
WRONG = [0, 1.5, "wrong", True, [7], {"no": 7}]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(leaf for key, inner in inside for leaf in leaves(inner, (*path, key)))][1 if not path else 0:]


def kind(value: Any) -> str:
    return {bool: "bool", int: "number", float: "number", str: "text", list: "list", dict: "object"}[type(value)]


def replaced(whole: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    whole = copy.deepcopy(whole)
    at: Any = whole
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return whole


def at(whole: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        whole = whole[step]
    return whole


FREE = ("input", "parameters")
CASES = [
    (model, whole, path, wrong)
    for model, whole in ((NewSession, SESSION), (NewTurn, TURN))
    for path in leaves(whole) for wrong in WRONG
    if kind(wrong) != kind(at(whole, path)) and not set(FREE) & set(path[:-1])
    and not (path[-1] == "content" and kind(wrong) == "text")
]


@pytest.mark.parametrize("model", [NewSession, NewTurn])
def test_the_right_types_are_taken(model: type) -> None:
    model.model_validate(SESSION if model is NewSession else TURN)


@pytest.mark.parametrize(("model", "whole", "path", "wrong"), CASES, ids=lambda value: str(value)[:40])
def test_a_wrong_type_is_refused_in_every_field(model: Any, whole: Any, path: Any, wrong: Any) -> None:
    with pytest.raises(ValidationError):
        model.model_validate(replaced(whole, path, wrong))


def test_members_nobody_knows_are_ignored() -> None:
    NewSession.model_validate({**SESSION, "colour": "green"})
    NewTurn.model_validate({**TURN, "colour": "green"})


@pytest.mark.parametrize("body", [
    {"messages": []},
    {"messages": [{"role": "system", "content": "x"}]},
    {"messages": [{"role": "wizard", "content": "x"}]},
    {"messages": [{"role": "user"}]},
    {"messages": [{"role": "user", "content": "x"}], "stream": "firehose"},
    {"messages": [{"role": "user", "content": [{"type": "video", "url": "https://x"}]}]},
    {"messages": [{"role": "user", "content": [{"type": "image", "url": "ftp://x"}]}]},
    {},
])
def test_what_the_protocol_does_not_know_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        NewTurn.model_validate(body)


def test_a_turn_is_not_streamed_unless_asked() -> None:
    assert NewTurn.model_validate({"messages": [{"role": "user", "content": "x"}]}).stream == "none"


def test_a_page_has_a_size() -> None:
    assert AapSettings().page_size == 50
    with pytest.raises(ValidationError):
        AapSettings(page_size=0)


def test_a_null_is_a_member_that_is_not_there() -> None:
    made = NewSession.model_validate(
        {"agent": {"name": "a", "tools": [{"name": "t", "trust": None}]}, "messages": None, "tools": None})
    assert (made.messages, made.tools, made.agent.tools) == ([], [], [ServerToolRef(name="t")])
    said = {"messages": [{"role": "user", "content": "x"}], "stream": None, "agent": None, "tools": None}
    assert NewTurn.model_validate(said).stream == "none"
    with pytest.raises(ValidationError):
        NewSession.model_validate({"agent": {"name": None}})
    kept = ToolUseBlock.model_validate({"type": "tool_use", "toolCallId": "c", "name": "n", "input": {"a": None}})
    assert kept.input == {"a": None}


@pytest.mark.parametrize("url", [
    "https://example.com/cat.png", "https://example.com:8443", "https://[::1]/cat.png", "data:image/png;base64,AAAA",
    "data:image/svg+xml;charset=utf-8;base64,AAAA", "data:IMAGE/PNG;base64,AAA=", "data:image/png;base64,AAA",
])
def test_an_address_of_a_picture_is_taken(url: str) -> None:
    assert ImageBlock.model_validate({"type": "image", "url": url}).url == url


@pytest.mark.parametrize("url", [
    "https://", "https:///cat.png", "https://:443/cat.png", "https://[::1/cat.png", "https://host:port/",
    "https://a b/", "http://example.com/cat.png", "file:///cat.png", "", "data:", "data:image/png,AAAA",
    "data:image/png;base64,@@@@", "data:image/png;base64,", "data:image/png;base64,A", "data:image/png;base64,AA=A",
    "data:text/plain;base64,AAAA", "data:;base64,AAAA", "data:image/;base64,AAAA", "data:image/png;base64,äöüß",
])
def test_what_cannot_be_the_address_of_a_picture_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="expected"):
        ImageBlock.model_validate({"type": "image", "url": url})


@pytest.mark.parametrize("parameters", [
    {"type": 5}, {"type": "thing"}, {"properties": []}, {"required": "city"}, {"$ref": "#/$defs/none"},
])
def test_what_is_not_a_json_schema_is_refused(parameters: Any) -> None:
    with pytest.raises(ValidationError, match="expected a JSON Schema: "):
        ToolDeclaration.model_validate({"name": "mine", "description": "x", "parameters": parameters})
