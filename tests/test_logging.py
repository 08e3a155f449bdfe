"""The server log is JSON for machines and plain text for people, its events have names, and secrets are masked."""

import ast
import io
import json
import logging
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
import structlog

import gateway.model as m
from gateway import logging as journal
from tests.support.source_trees import all_nodes


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def written(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_what_is_no_terminal_gets_json_lines() -> None:
    stream = io.StringIO()
    journal.configure_logging("auto", "info", stream)
    journal.get_logger("dragoman.test").info("turn_ended", session="sess_1", seconds=0.5)
    [entry] = written(stream)
    assert entry.pop("timestamp").endswith("Z")
    assert entry == {"event": "turn_ended", "level": "info", "logger": "dragoman.test", "session": "sess_1",
                     "seconds": 0.5}


def test_a_terminal_gets_lines_for_people() -> None:
    stream = Terminal()
    journal.configure_logging("auto", "info", stream)
    journal.get_logger().info("turn_ended")
    assert "turn_ended" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


def test_the_format_can_be_chosen() -> None:
    stream = Terminal()
    journal.configure_logging("json", "info", stream)
    journal.get_logger().info("said")
    assert written(stream)[0]["event"] == "said"


def test_what_is_below_the_level_is_not_said_and_the_level_can_change() -> None:
    stream, log = io.StringIO(), journal.get_logger()
    journal.configure_logging("json", "warning", stream)
    log.info("no")
    log.warning("yes")
    journal.configure_logging("json", "debug", stream)
    log.debug("now")
    assert [entry["event"] for entry in written(stream)] == ["yes", "now"]


def test_libraries_go_the_same_way() -> None:
    stream = io.StringIO()
    journal.configure_logging("json", "info", stream)
    logging.getLogger("aiohttp.server").error("broken %s", "pipe")
    logging.getLogger("aiohttp.access").info("GET /")
    [entry] = written(stream)
    assert (entry["event"], entry["logger"], entry["level"]) == ("broken pipe", "aiohttp.server", "error")


@pytest.mark.parametrize("format", ["json", "console"])
def test_a_traceback_shows_no_variables(format: str) -> None:
    stream = io.StringIO()
    journal.configure_logging(format, "info", stream)
    hunter = "hunter2"
    try:
        raise ValueError(len(hunter))
    except ValueError:
        journal.get_logger().exception("failed")
    assert "ValueError: 7" in stream.getvalue()
    assert "hunter2" not in stream.getvalue().replace('hunter = "hunter2"', "")


@pytest.mark.parametrize("said", [
    {"token": "s3cret"},
    {"Authorization": "Bearer s3cret"},
    {"headers": {"authorization": "Bearer s3cret", "accept": "*/*"}},
    {"many": [{"deep": {"key": "s3cret"}}]},
    {"settings": m.Settings(secrets={"openai": "s3cret"})},
    {"record": m.Record(seq=1, at=0.0, session_id="s", event=m.SessionCreated(agent="a", settings=m.Settings(
        secrets={"openai": "s3cret"})))},
])
def test_secrets_are_never_written(said: dict[str, Any]) -> None:
    stream = io.StringIO()
    journal.configure_logging("json", "info", stream)
    journal.get_logger().info("said", **said)
    assert "s3cret" not in stream.getvalue()
    assert "***" in stream.getvalue()


# -- records ----------------------------------------------------------------------------------------------------------

SETTINGS = m.Settings(options={"tone": "plain"}, secrets={"openai": "s3cret"})


@pytest.mark.parametrize("event", [
    m.SessionCreated(agent="demo", settings=SETTINGS),
    m.SessionUpdated(settings=SETTINGS),
    m.InputAccepted(command_id="cmd_1", command=m.Configure(settings=SETTINGS)),
])
def test_a_masked_record_keeps_everything_but_the_secrets(event: Any) -> None:
    record = m.Record(seq=1, at=1.5, session_id="sess_1", event=event)
    assert m.encode_record(journal.mask_secrets(record)) == m.encode_record(record).replace(b"s3cret", b"***")


def test_a_record_without_secrets_is_left_alone() -> None:
    event = m.InputAccepted(command_id="cmd_1", command=m.SendMessage(content="hi"))
    record = m.Record(seq=1, at=1.5, session_id="sess_1", event=event)
    assert journal.mask_secrets(record) is record


def test_settings_are_nowhere_else() -> None:
    """If the model grows a new place for settings, `masked` has to learn of it."""
    places = {path for event in m.EVENTS for path in ways_to_settings(event)}
    assert places == {("SessionCreated",), ("SessionUpdated",), ("InputAccepted", "Configure")}


def ways_to_settings(struct: type[msgspec.Struct], way: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    way = (*way, struct.__name__)
    hints = get_type_hints(struct)
    for field in struct.__struct_fields__:
        for inner in structs(hints[field]):
            if inner is m.Settings:
                yield way
            else:
                yield from ways_to_settings(inner, way)


def structs(hint: Any) -> Iterator[type[msgspec.Struct]]:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield hint
    for inner in get_args(hint):
        yield from structs(inner)


# -- names of events --------------------------------------------------------------------------------------------------

ROOT = Path(__file__).parents[1]
LEVELS = ("debug", "info", "warning", "error", "exception", "critical")


def event_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The texts of the first argument of every call of a logger."""
    for call in nodes:
        if isinstance(call, ast.Call) and call.args and any(map(is_logger, ast.walk(call.func))):
            yield from (node.value for node in ast.walk(call.args[0])
                        if isinstance(node, ast.Constant) and isinstance(node.value, str))


def is_logger(node: ast.AST) -> bool:
    if not isinstance(node, ast.Attribute) or node.attr not in LEVELS:
        return False
    name = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
    return name == "log" or name.endswith("sampled")


@cache
def all_event_names() -> set[str]:
    return set(event_names(node for _, node in all_nodes("gateway", "adapters", "mappings")))


def test_every_event_has_a_name_instead_of_a_sentence() -> None:
    names = all_event_names()
    assert len(names) > 70
    assert sorted(name for name in names if not re.fullmatch(r"[a-z][a-z0-9_]+", name)) == []


def test_the_page_on_upgrading_gives_names_that_are_written() -> None:
    page = (ROOT / "docs" / "upgrading.md").read_text().partition("## Log events")[2].partition("\n## ")[0]
    shown = set(re.findall(r"\| `(\w+)` \|$", page, re.MULTILINE))
    assert len(shown) > 60
    assert shown - all_event_names() == {"shadow_differs", "shadow_failed"}, "the verdict is a part of these names"
