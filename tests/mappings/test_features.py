"""Which event is an instance of which feature."""

from typing import Any

import pytest

from gateway.model import (
    BlockDelta,
    BlockEnded,
    BlockKind,
    CustomEvent,
    FilePart,
    ImagePart,
    InputAccepted,
    Interrupt,
    MessageEnded,
    Role,
    SeedMessage,
    SendMessage,
    SessionCreated,
    SessionUpdated,
    ToolOrigin,
    ToolReturned,
    TurnStarted,
    Usage,
)
from mappings.language import FEATURES, feature_of
from mappings.language.scopes import EVENT_CUES


def block(kind: BlockKind, **whole: Any) -> BlockEnded:
    return BlockEnded(block_id="b", message_id="m", kind=kind, **whole)


def said(**given: Any) -> InputAccepted:
    return InputAccepted(command_id="c", command=SendMessage(**{"content": "Hi"} | given))


@pytest.mark.parametrize(("event", "feature"), [
    (block(BlockKind.TEXT, text="x"), "text"),
    (block(BlockKind.IMAGE), "images_out"),
    (block(BlockKind.TOOL_USE, torn=True), None),
    (BlockDelta(block_id="b", message_id="m", kind=BlockKind.TEXT, delta="x"), None),
    (ToolReturned(call_id="c", origin=ToolOrigin.MCP), "tool_results"),
    (ToolReturned(call_id="c", origin=ToolOrigin.CLIENT), None),
    (TurnStarted(command_id="c"), None),
    (CustomEvent(topic="t"), "custom"),
    (InputAccepted(command_id="c", command=Interrupt()), "interrupts"),
    (said(), None),
    (said(content=(ImagePart(url="u"),)), "images_in"),
    (said(content=(FilePart(name="f"), ImagePart(url="u"))), "files"),
    (said(output_schema={}), "structured_output"),
    (MessageEnded(message_id="m"), None),
    (MessageEnded(message_id="m", usage=Usage(output_tokens=1)), "usage"),
    (SessionUpdated(title="T"), "titles"),
    (SessionUpdated(metadata={}), None),
    (SessionCreated(agent="a"), None),
    (SessionCreated(agent="a", history=(SeedMessage(role=Role.USER, content="Hi"),)), "history_seed"),
])
def test_an_event_is_an_instance_of(event: Any, feature: str | None) -> None:
    assert feature_of(event) == feature


def test_every_carrier_is_an_event_of_the_house() -> None:
    assert {cue for feature in FEATURES.values() for cue in feature.carriers} <= EVENT_CUES.keys()


def test_every_feature_says_what_it_means() -> None:
    assert all(feature.meaning for feature in FEATURES.values())
