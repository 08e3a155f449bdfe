"""Which event is an instance of which feature."""

from typing import Any

import pytest

import gateway.model as m
from mappings.language import FEATURES, feature_of
from mappings.language.scopes import EVENT_CUES


def block(kind: m.BlockKind, **whole: Any) -> m.BlockEnded:
    return m.BlockEnded(block_id="b", message_id="m", kind=kind, **whole)


def said(**given: Any) -> m.InputAccepted:
    return m.InputAccepted(command_id="c", command=m.SendMessage(**{"content": "Hi"} | given))


@pytest.mark.parametrize(("event", "feature"), [
    (block(m.BlockKind.TEXT, text="x"), "text"),
    (block(m.BlockKind.IMAGE), "images_out"),
    (block(m.BlockKind.TOOL_USE, torn=True), None),
    (m.BlockDelta(block_id="b", message_id="m", kind=m.BlockKind.TEXT, delta="x"), None),
    (m.ToolReturned(call_id="c", origin=m.ToolOrigin.MCP), "tool_results"),
    (m.ToolReturned(call_id="c", origin=m.ToolOrigin.CLIENT), None),
    (m.TurnStarted(command_id="c"), None),
    (m.CustomEvent(topic="t"), "custom"),
    (m.InputAccepted(command_id="c", command=m.Interrupt()), "interrupts"),
    (said(), None),
    (said(content=(m.ImagePart(url="u"),)), "images_in"),
    (said(content=(m.FilePart(name="f"), m.ImagePart(url="u"))), "files"),
    (said(output_schema={}), "structured_output"),
    (m.MessageEnded(message_id="m"), None),
    (m.MessageEnded(message_id="m", usage=m.Usage(output_tokens=1)), "usage"),
    (m.SessionUpdated(title="T"), "titles"),
    (m.SessionUpdated(metadata={}), None),
    (m.SessionCreated(agent="a"), None),
    (m.SessionCreated(agent="a", history=(m.SeedMessage(role=m.Role.USER, content="Hi"),)), "history_seed"),
])
def test_an_event_is_an_instance_of(event: Any, feature: str | None) -> None:
    assert feature_of(event) == feature


def test_every_carrier_is_an_event_of_the_house() -> None:
    assert {cue for feature in FEATURES.values() for cue in feature.carriers} <= EVENT_CUES.keys()


def test_every_feature_says_what_it_means() -> None:
    assert all(feature.meaning for feature in FEATURES.values())
