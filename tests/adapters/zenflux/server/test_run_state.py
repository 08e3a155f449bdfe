"""What a run costs is counted over its messages; changes of its conversation wait for its first message."""

from typing import Any

import orjson

import gateway.model as m
from adapters.zenflux.server.frame_writer import FrameWriter
from adapters.zenflux.server.run_state import ConversationChanges, RunUsage
from adapters.zenflux.server.stream_options import StreamOptions
from tests.support.dialect_tables import table


def record(event: Any) -> m.Record:
    return m.Record(seq=1, at=1.5, session_id="sess_1", turn_id="turn_1", event=event)


STARTED = record(m.TurnStarted(command_id="cmd_1"))
TITLED = m.SessionUpdated(title="New")


def written(writer: FrameWriter) -> list[str]:
    return [orjson.loads(frame.body)["payload"]["type"] for frame in writer.take()]


def changes(**options: Any) -> tuple[FrameWriter, ConversationChanges]:
    writer = FrameWriter(table("zenflux").encoder("json"))
    return writer, ConversationChanges(writer, StreamOptions(**options))


def test_a_change_waits_for_the_first_message_of_its_run() -> None:
    writer, conversation = changes()
    writer.begin(STARTED, "json")
    conversation.begin_run(STARTED)
    assert written(writer) == ["conversation_start"]
    conversation.updated(record(TITLED), TITLED)
    assert written(writer) == []
    conversation.open_message(STARTED)
    assert written(writer) == ["conversation_delta"]
    conversation.updated(record(TITLED), TITLED)
    assert written(writer) == ["conversation_delta"]


def test_a_change_between_runs_is_known_to_the_next_run() -> None:
    writer, conversation = changes(title="Old")
    conversation.updated(record(TITLED), TITLED)
    writer.begin(STARTED, "json")
    conversation.begin_run(STARTED)
    [opened] = [orjson.loads(frame.body)["payload"] for frame in writer.take()]
    assert "New" in str(opened)
    conversation.open_message(STARTED)
    assert written(writer) == []


def test_metadata_that_stays_the_same_is_no_change() -> None:
    writer, conversation = changes(metadata={"a": 1})
    writer.begin(STARTED, "json")
    conversation.open_message(STARTED)
    for metadata, expected in (({"a": 1}, []), ({"a": 2}, ["conversation_delta"])):
        event = m.SessionUpdated(metadata=metadata)
        conversation.updated(record(event), event)
        assert written(writer) == expected


def test_tokens_are_counted_for_the_run_and_for_the_message() -> None:
    usage = RunUsage()
    for tokens in (1, 2):
        usage.start_message("model_1" if tokens == 1 else None)
        usage.end_message(m.Usage(input_tokens=tokens))
    assert (usage.total.input_tokens, usage.of_message.input_tokens) == (3, 3)
    assert (usage.llm_calls, usage.model) == (2, "model_1")
    usage.annotate(m.MessageAnnotated(message_id="m", topic=m.AnnotationTopic.BILLING, content={"total_tokens": 9}))
    assert usage.is_billed
    usage.start_message(None)
    assert not usage.is_billed
    usage.reset()
    assert (usage.total, usage.llm_calls, usage.model) == (m.Usage(), 0, "")
