"""What the golden transcripts have of every dialect fits the documents: bodies of requests and responses, frames."""

import re
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from gateway.app import Gateway
from gateway.composition import load_components
from gateway.config import load_config
from tests.golden.test_transcripts import transcript
from tests.support.api_documents import SSE, DocumentChecker, checker_of
from tests.support.dialect_parts import each
from tests.support.dialect_tables import DIALECTS
from tests.support.gateway_server import write_settings

MASKS = {"<epoch>": "1700000000", "<elapsed>": '"duration_seconds":0.5'}
MASKED_MEMBER = "duration_ms"
"""This member is left out of transcripts."""
NOT_IMPLEMENTED = 501
HEAD = re.compile(r"(GET|POST|PUT|PATCH|DELETE) (/\S*)")
STATUS = re.compile(r"(\d{3})(?: \| Content-Type: ([^;|\s]+))?")


@pytest.fixture(scope="module")
def checker(tmp_path_factory: pytest.TempPathFactory) -> DocumentChecker:
    folder = tmp_path_factory.mktemp("documents")
    write_settings(folder, dialects={name: {} for name in DIALECTS})
    whole = checker_of(Gateway(load_components(load_config(folder / "config.yaml"))))
    return DocumentChecker(_as_masked(whole.openapi), _as_masked(whole.asyncapi))


def _as_masked(value: Any) -> Any:
    """The document, for bodies of which a member is left out."""
    if isinstance(value, list):
        return [_as_masked(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {key: [name for name in one if name != MASKED_MEMBER] if key == "required" and isinstance(one, list)
            else _as_masked(one) for key, one in value.items()}


class Exchange:
    """A request and its response, or a socket, as a transcript has it."""

    def __init__(self, lines: list[str]) -> None:
        head = HEAD.match(lines[0])
        assert head, lines[0]
        self.method, self.path = head[1], lines[0].split(" ", 1)[1]
        self.status, self.media_type = 0, ""
        self.sent: list[str] = []
        self.received: list[str] = []
        for line in lines[1:]:
            if line[:2] == "> ":
                self.sent.append(line[2:])
            elif line[:2] == "< ":
                self.received.append(line[2:])
            elif line[:2] == "  ":
                self.received[-1] += f"\n{line[2:]}"
            elif found := STATUS.match(line):
                self.status, self.media_type = int(found[1]), found[2] or ""


def exchanges(text: str) -> Iterator[Exchange]:
    for mask, value in MASKS.items():
        text = text.replace(mask, value)
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith("### ")]
        if lines and HEAD.match(lines[0]):
            one = Exchange(lines)
            if one.status != NOT_IMPLEMENTED:
                yield one


def problems(checker: DocumentChecker, one: Exchange) -> Iterator[str]:
    template = checker.template(one.method, one.path)
    if one.status == 101:
        yield from socket_problems(checker, one, template)
        return
    if 200 <= one.status < 300 and one.sent and one.sent[0].startswith("{"):
        yield from checker.request(one.method, template, one.sent[0].encode())
    if one.media_type == SSE:
        for event in one.received:
            yield from sse_problems(checker, one, template, event)
    elif one.status:
        body = "\n".join(one.received).encode()
        yield from checker.response(one.method, template, one.status, one.media_type, body)


def sse_problems(checker: DocumentChecker, one: Exchange, template: str, event: str) -> list[str]:
    lines = dict(line.partition(": ")[::2] for line in event.split("\n") if not line.startswith(":"))
    if "data" not in lines:
        return []
    return checker.sent(one.method, template, lines.get("event"), orjson.loads(lines["data"]))


def socket_problems(checker: DocumentChecker, one: Exchange, template: str) -> Iterator[str]:
    """Frames of a WebSocket are JSON; packets of Socket.IO have a number, and a name in a list."""
    for is_sent, text in [*((False, text) for text in one.sent), *((True, text) for text in one.received)]:
        packet = re.fullmatch(r"4[23](\d*)(\[.*)", text, re.DOTALL)
        if text.startswith("{"):
            yield from json_frame_problems(checker, one, template, is_sent, orjson.loads(text))
        elif packet and text.startswith("42"):
            name, value = orjson.loads(packet[2])
            check = checker.sent if is_sent else checker.received
            yield from check(one.method, template, name, value)


def json_frame_problems(
    checker: DocumentChecker, one: Exchange, template: str, is_sent: bool, value: Any,
) -> list[str]:
    if is_sent:
        return checker.sent(one.method, template, None, value)
    return checker.received(one.method, template, value.get("method", value.get("type")), value)


@pytest.mark.parametrize("dialect", each("pair_client"))
@pytest.mark.parametrize("kind", ["conversations", "requests"])
def test_what_was_recorded_fits(checker: DocumentChecker, dialect: str, kind: str) -> None:
    found = dict[str, str]()
    text = transcript(f"{dialect}.{kind}.txt").read_text()
    count = 0
    for one in exchanges(text):
        count += 1
        for problem in problems(checker, one):
            found.setdefault(f"{one.method} {one.path} {one.status}: {problem}", "")
    assert count
    assert not found, "\n".join([str(len(found)), *list(found)[:60]])
