"""What clients send, read as commands and written from commands by the same rows."""

from pathlib import Path
from typing import Any

import orjson
import pytest

import gateway.model as m
from gateway.yaml_positions import Problems
from mappings.language import FEATURES, Table, UnreadableBody, Vocabulary, load_table

TABLE = """
dialect: small
spec: "1"
enums: { trigger: { manual: by hand, "*": by itself } }
reads: { verdict: { allow: true, deny: false, refuse: false } }
TYPES
parts:
  text: { type: text, text: $text }
  thinking: []
  tool_use: []
  image: { type: image, url: $url }
  file: []
  data: []
frames: { FRAMES }
errors: { "*": { body: $message } }
support: { SUPPORT }
inputs:
INPUTS
"""
INPUTS = """
  say:
    command: send_message
    wire: { type: say, body: { text: $content | content }, env: $variables | optional, limit: $limit | optional }
    fixed: { headless: true }
    beside: [ limit ]
    also: [ { wire: { message: $content }, of: an older client } ]
  plain: { command: send_message, wire: { text: $content } }
  decide:
    command: decide_permission
    wire: { type: decide, call: $request_id, verdict: $granted | verdict, why: $reason | optional }
    given: [ request_id ]
  answer: { command: answer_question, wire: { id: $request_id, picks: $selections } }
  compact: { command: compact, wire: { type: compact, how: $trigger | trigger } }
  configure: { command: configure, wire: { prompt: $settings.system, model: $settings.model } }
  outcome: { command: custom, wire: { type: outcome, ...: $payload }, fixed: { name: outcome } }
  results: { command: send_message, given: [ content, results ] }
  stop: { command: interrupt }
"""
ROWS = ("say", "plain", "decide", "answer", "compact", "configure", "outcome", "results", "stop")


def load(folder: Path, inputs: str = INPUTS, rows: tuple[str, ...] = ROWS) -> Table:
    frames = ", ".join(f"{event.name}: []" for event in m.EVENTS)
    support = ", ".join(f"{feature}: full" for feature in FEATURES)
    file = folder / "small.yaml"
    types = 'types: { say: { limit: "int?" } }' if inputs == INPUTS else "types: {}"
    words = {"FRAMES": frames, "SUPPORT": support, "INPUTS": inputs, "TYPES": types}
    text = TABLE
    for word, meaning in words.items():
        text = text.replace(word, meaning)
    file.write_text(text)
    return load_table(file, Vocabulary(messages=rows))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return load(tmp_path)


@pytest.mark.parametrize(("row", "body", "command"), [
    ("say", {"type": "say", "body": {"text": "hi"}, "env": {"a": 1}},
     m.SendMessage(content="hi", variables={"a": 1}, headless=True)),
    ("say", {"type": "say", "body": {"text": [{"type": "text", "text": "hi"}, {"type": "image", "url": "u"}]}},
     m.SendMessage(content=(m.TextPart(text="hi"), m.ImagePart(url="u")), headless=True)),
    ("plain", {"text": "hi"}, m.SendMessage(content="hi")),
    ("decide", {"type": "decide", "call": "r", "verdict": "deny", "why": "no"},
     m.DecidePermission(request_id="r", granted=False, reason="no")),
    ("answer", {"id": "r", "picks": {"0": [1, 2]}}, m.AnswerQuestion(request_id="r", selections={"0": (1, 2)})),
    ("compact", {"type": "compact", "how": "by itself"}, m.Compact(trigger=m.CompactionTrigger.AUTO)),
    ("configure", {"prompt": "Be kind.", "model": None}, m.Configure(settings=m.Settings(system="Be kind."))),
    ("outcome", {"type": "outcome", "x": 1}, m.CustomCommand(name="outcome", payload={"x": 1})),
])
def test_a_message_is_a_command_and_the_command_is_the_message(
    table: Table, row: str, body: Any, command: m.AnyCommand
) -> None:
    assert table.read_command(row, body) == command
    bare = {"variables": command.variables or None} if isinstance(command, m.SendMessage) else {}
    assert orjson.loads(orjson.dumps(table.message(row, command, **bare))) == body


def test_what_the_session_gives_wins_over_what_the_client_says(table: Table) -> None:
    body = {"type": "decide", "call": "call_1", "verdict": "refuse"}
    assert table.read_message("decide", body) == {"request_id": "call_1", "granted": False, "reason": None}
    assert table.read_command("decide", body, request_id="r") == m.DecidePermission(request_id="r", granted=False)
    assert table.command("decide", request_id="r", granted=True) == m.DecidePermission(request_id="r", granted=True)


def test_a_row_without_wire_has_what_code_gives(table: Table) -> None:
    results = (m.SeedMessage(role=m.Role.TOOL, content="x", call_id="c"),)
    assert table.command("results", content="x", results=results) == m.SendMessage(content="x", results=results)
    assert (table.read_message("stop", {"any": 1}), table.command("stop")) == ({}, m.Interrupt())
    with pytest.raises(LookupError, match="does not say how 'results' is sent"):
        table.message("results", content="x")


def test_other_spellings_are_read_and_names_beside_the_command_are_too(table: Table) -> None:
    assert table.read_message("say", {"type": "say", "message": "hi", "limit": 3}) == {
        "content": "hi", "variables": None, "limit": 3}
    assert table.read_command("say", {"message": "hi", "limit": "x"}) == m.SendMessage(content="hi", headless=True)
    assert table.message("say", content="hi", limit=3) == {"type": "say", "body": {"text": "hi"}, "limit": 3}


@pytest.mark.parametrize(("row", "body", "field", "words"), [
    ("say", {"type": "say"}, "body.text", "is missing"),
    ("say", {"type": "shout", "body": {"text": "hi"}}, "type", "should be 'say'"),
    ("say", {"body": {"text": [{"type": "text", "text": "a"}, {"type": "x"}]}}, "body.text.1", "a block of content"),
    ("say", {"body": {"text": 5}}, "body.text", "a text or a list of blocks"),
    ("say", {"body": {"text": "hi"}, "env": []}, "env", "an object"),
    ("say", [], "the body", "an object"),
    ("plain", {"text": [{"type": "text", "text": "a"}]}, "text", "it must be a text"),
    ("decide", {"call": "r", "verdict": "perhaps"}, "verdict", "'perhaps' is not one of allow, deny, refuse"),
    ("decide", {"call": 7, "verdict": "allow"}, "call", "a text"),
    ("answer", {"id": "r", "picks": {"0": ["x"]}}, "picks", "must be a whole number"),
    ("compact", {"how": "never"}, "how", "'never'"),
])
def test_a_message_that_cannot_be_is_refused_by_its_field(
    table: Table, row: str, body: Any, field: str, words: str
) -> None:
    with pytest.raises(UnreadableBody) as refused:
        table.read_command(row, body)
    assert refused.value.field == field
    assert words in str(refused.value)


def test_a_message_is_found_by_its_constants(table: Table) -> None:
    assert table.find_message({"type": "decide", "call": "r", "verdict": "allow"}) == "decide"
    assert table.find_message({"type": "say"}, "decide", "say") == "say"
    assert table.find_message({"type": "whisper"}, "decide", "say") is None


@pytest.mark.parametrize(("row", "problem"), [
    ("{ command: say_it, wire: { a: $content } }", "there is no command 'say_it'"),
    ("{ command: send_message, wire: { a: $contents } }",
     "send_message has no field 'contents', so a client cannot send it; did you mean 'content'?"),
    ("{ command: return_result, wire: { a: $content } }",
     "return_result needs request_id; write it in 'wire', or name it under 'given' if the session's code adds it"),
    ("{ command: interrupt, given: [ turn ] }", "interrupt has no field 'turn'; did you mean 'turn_id'?"),
    ("{ command: interrupt, wire: { a: b }, fixed: { turn: x } }", "interrupt has no field 'turn'"),
    ("{ command: interrupt, wire: { a: b }, fixed: { turn_id: 3 } }", "'turn_id' of interrupt: must be a string"),
    ("{ command: interrupt, wire: { a: b }, beside: [ a ] }", "'a' is not on the wire"),
    ("{ command: interrupt, wire: { a: $turn_id | each turn } }", "there is no object 'turn'"),
    ("{ command: interrupt, wire: { a: $turn_id | words } }", "there is no filter 'words'"),
    ("{ command: interrupt, wire: { a: $turn_id }, given: { turn_id: $x } }", "'given' is a list of the fields"),
])
def test_a_row_that_cannot_work_does_not_load(tmp_path: Path, row: str, problem: str) -> None:
    with pytest.raises(Problems) as told:
        load(tmp_path, f"  one: {row}", ("one",))
    assert problem in str(told.value)
    assert "small.yaml:18:" in str(told.value), "it names the line"
