"""docs/server-log.md lists every event that the source logs, with its levels and fields, and no other."""

import io
import json
import re
from pathlib import Path

import pytest
import structlog

from gateway.logging import configure_logging, get_logger
from tests.support.doc_pages import ROOT, Page
from tests.support.logged_events import LoggedEvent, logged_events

PAGE = Page(ROOT / "docs" / "server-log.md")
ROOMS = (ROOT / "gateway", ROOT / "adapters", ROOT / "mappings")
ROW = re.compile(r"^\| `(\w+)` \| ([a-z ]+) \|([^|]*)\| (?=\S)", re.MULTILINE)


def listed() -> dict[str, LoggedEvent]:
    rows = ROW.findall(PAGE.text.partition("\n## Events\n")[2])
    names = [name for name, _, _ in rows]
    assert len(names) == len(set(names)), "an event is listed twice"
    return {name: LoggedEvent(set(levels.split(" or ")), set(re.findall(r"`(\w+)`", fields)))
            for name, levels, fields in rows}


def test_every_event_of_the_source_is_in_the_page_and_no_other() -> None:
    logged, told = logged_events(*ROOMS), listed()
    assert sorted(logged) == sorted(told)
    assert {name: event for name, event in logged.items() if event != told[name]} == {}


@pytest.mark.parametrize(("source", "events"), [
    ("log.info('made', session=1)", {"made": LoggedEvent({"info"}, {"session"})}),
    ("self._log.exception('broke')\nself._limiter.sampled.info('broke', a=1)",
     {"broke": LoggedEvent({"error", "info"}, {"a"})}),
    ("log.error('lost', exc_info=error, **({'why': 1} if error else {}))", {"lost": LoggedEvent({"error"}, {"why"})}),
    ("(log.warning if bad else log.info)('failed' if bad else 'ended', **more)",
     {"failed": LoggedEvent({"warning"}), "ended": LoggedEvent({"info"})}),
    ("task.exception()\nscreen.error('words')\nmath.log(2)", {}),
])
def test_events_are_read_from_calls_of_loggers(source: str, events: dict[str, LoggedEvent], tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(source)
    assert logged_events(tmp_path) == events


@pytest.mark.parametrize("source", ["log.info(f'made_{kind}')", "log.info(name)", "log.info()"])
def test_a_name_that_cannot_be_read_is_an_error(source: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(source)
    with pytest.raises(ValueError, match=r"module.py:1: expected the name of an event as a string"):
        logged_events(tmp_path)


def test_the_line_of_the_page_has_the_form_of_a_line() -> None:
    (example,) = re.findall(r"```json\n(.+)\n```", PAGE.text)
    shown = json.loads(example)
    stream = io.StringIO()
    before = structlog.get_config()
    try:
        configure_logging("json", stream=stream)
        fields = {name: value for name, value in shown.items() if name not in ("event", "level", "logger", "timestamp")}
        get_logger(shown["logger"]).info(shown["event"], **fields)
    finally:
        structlog.configure(**before)
    written = json.loads(stream.getvalue())
    assert list(written) == list(shown)
    assert {**written, "timestamp": shown["timestamp"]} == shown
    traced = listed()[shown["event"]].fields | {"trace_id", "span_id"}
    assert set(fields) <= traced
