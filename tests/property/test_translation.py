"""Streams nobody wrote, told in one dialect and translated: lawful whatever they are, and with the same words."""

import pytest
from hypothesis import given

import gateway.model as m
from mappings.language import SupportLevel
from tests.support.dialect_tables import DIALECTS, table
from tests.support.engine.engine_fixture import lawful
from tests.support.examples import examples
from tests.support.record_streams import sessions
from tests.support.translate.conversations import told, translated


def words(records: list[m.Record], kind: m.BlockKind) -> str:
    """What the agent itself said, told apart by nothing."""
    ended = [record.event for record in records if record.scope_id == m.ROOT and isinstance(record.event, m.BlockEnded)]
    return "".join(event.text or "" for event in ended if event.kind is kind)


@pytest.mark.parametrize("source", DIALECTS)
@examples(25)
@given(stream=sessions())
def test_a_translation_is_lawful_and_says_the_same_words(source: str, stream: list[m.Record]) -> None:
    records = [m.decode_record(line) for line in translated(told(stream, source), source, None)[0].splitlines()[1:]]
    assert lawful(records).turn is not m.TurnPhase.RUNNING
    if table(source).client_support["thinking"] is SupportLevel.FULL:
        assert words(records, m.BlockKind.THINKING) == words(stream, m.BlockKind.THINKING)
    for target in DIALECTS:
        again = translated(told(records, target), target, None)[0]
        lawful([m.decode_record(line) for line in again.splitlines()[1:]])
