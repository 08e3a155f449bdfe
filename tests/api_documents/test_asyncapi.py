"""The AsyncAPI document has every stream and socket, with the frames of the tables and the messages of clients."""

import re
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from gateway.api_documents import ASYNCAPI
from gateway.app import Gateway
from mappings.language import builtin_path
from tests.api_documents.test_openapi import made_gateway
from tests.support.api_documents import broken_references
from tests.support.dialect_tables import DIALECTS

BESIDE_THE_NAME = ("envelope", "write-only", "read-only", "known_by", "also")
"""What a frame of a table may have beside its wire name."""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Gateway:
    return made_gateway(tmp_path_factory.mktemp("asyncapi"))


def names(document: dict[str, Any], kind: str) -> set[str]:
    messages = document["components"]["messages"]
    return {one["name"] for key, one in messages.items() if f".{kind}." in key}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_frame_that_the_table_writes_is_a_message(gateway: Gateway, dialect: str) -> None:
    document = gateway.api_documents.make(ASYNCAPI, dialect)
    table = yaml.safe_load(builtin_path(dialect).read_text("utf-8"))
    written = {wire for frames in table["frames"].values() for frame in frames if "read-only" not in frame
               for wire in frame if wire not in BESIDE_THE_NAME}
    assert written
    constants = set(re.findall(r'{"const":"([^"]*)"}', orjson.dumps(document["components"]["schemas"]).decode()))
    assert written <= names(document, "sent") | constants


@pytest.mark.parametrize("dialect", DIALECTS)
def test_references_lead_somewhere(gateway: Gateway, dialect: str) -> None:
    document = gateway.api_documents.make(ASYNCAPI, dialect)
    assert document["channels"]
    assert broken_references(document) == []
    used = {one["channel"]["$ref"].rpartition("/")[2] for one in document["operations"].values()}
    assert used == set(document["channels"])


def test_a_socket_has_messages_in_both_directions_and_replies(tmp_path: Path) -> None:
    document = made_gateway(tmp_path, dialects={"blade": {}}).api_documents.make(ASYNCAPI, "blade")
    assert names(document, "received") == {
        "session:subscribe", "session:unsubscribe", "chat:send", "chat:stop", "chat:compact"}
    assert names(document, "reply") == names(document, "received")
    [(key, channel)] = document["channels"].items()
    assert channel["address"] == "/socket.io/"
    sent = document["operations"][f"receive_{key}.chat.send"]
    assert sent["reply"]["messages"] == [{"$ref": f"#/channels/{key}/messages/reply.chat.send"}]
