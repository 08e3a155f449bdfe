"""Blade says events by cues of its own: the table says which, and the projector raises no others."""

from typing import Any

import pytest
import yaml
from hypothesis import given

import gateway.model as m
from adapters.blade.server.projector import FrameCueWriter
from mappings.language import builtin_path
from tests.support.dialect_tables import dialect, table
from tests.support.examples import examples
from tests.support.record_streams import sessions

HELD = {"patch.text", "patch.thinking", "fault.passing"}
"""What was held back is sent before the cues of whatever comes next."""
EVENTS: dict[str, list[str]] = yaml.safe_load(builtin_path("blade").read_text())["events"]


@examples(300)
@given(records=sessions())
def test_an_event_raises_only_the_cues_that_the_table_names_for_it(records: list[m.Record]) -> None:
    raised: list[str] = []
    write = FrameCueWriter.write

    def noted(writer: FrameCueWriter, cue: str, *rest: Any, **more: Any) -> None:
        raised.append(cue)
        write(writer, cue, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FrameCueWriter, "write", noted)
        projector = dialect("blade").projector(table("blade"), dialect("blade").default_options)
        for record in records:
            raised.clear()
            projector.feed(record)
            assert set(raised) - HELD <= set(EVENTS[record.event.name]), record.event.name
