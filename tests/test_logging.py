"""The server log is JSON for machines and plain text for people, its events have names, and secrets are masked."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
import structlog

import gateway.model as m
from gateway import logging as journal


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
