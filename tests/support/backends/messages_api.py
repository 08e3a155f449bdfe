"""The Messages API for tests: its events as its documents have them."""

from typing import Any

import orjson

from tests.support.client.byte_server import Answer, stream
from tests.support.client.byte_server import says as answers_with


def event(kind: str, **body: Any) -> bytes:
    return f"event: {kind}\ndata: ".encode() + orjson.dumps({"type": kind, **body}) + b"\n\n"


def start(**usage: int) -> bytes:
    return event("message_start", message={
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 1} | usage,
    })


def end(reason: str = "end_turn", **usage: Any) -> bytes:
    changed = event(
        "message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": 5} | usage)
    return changed + event("message_stop")


def begins(index: int, **block: Any) -> bytes:
    return event("content_block_start", index=index, content_block=block)


def grows(index: int, kind: str, **piece: str) -> bytes:
    return event("content_block_delta", index=index, delta={"type": kind, **piece})


def ends(index: int) -> bytes:
    return event("content_block_stop", index=index)


def text(index: int, *pieces: str) -> list[bytes]:
    grown = [grows(index, "text_delta", text=piece) for piece in pieces]
    return [begins(index, type="text", text=""), *grown, ends(index)]


def thinking(index: int, *pieces: str, signature: str) -> list[bytes]:
    grown = [grows(index, "thinking_delta", thinking=piece) for piece in pieces]
    signed = grows(index, "signature_delta", signature=signature)
    return [begins(index, type="thinking", thinking="", signature=""), *grown, signed, ends(index)]


def redacted(index: int, data: str) -> list[bytes]:
    return [begins(index, type="redacted_thinking", data=data), ends(index)]


def tool(index: int, id: str, name: str, *pieces: str, kind: str = "tool_use") -> list[bytes]:
    grown = [grows(index, "input_json_delta", partial_json=piece) for piece in pieces]
    return [begins(index, type=kind, id=id, name=name, input={}), *grown, ends(index)]


FOUND = [{"type": "web_search_result", "title": "Dragomans", "url": "https://example.org/d",
          "encrypted_content": "Eo8C", "page_age": None}]


def found(index: int, id: str, content: Any = None) -> list[bytes]:
    block = {"type": "web_search_tool_result", "tool_use_id": id, "content": FOUND if content is None else content}
    return [begins(index, **block), ends(index)]


PING = event("ping")


def breaks(kind: str, text: str) -> bytes:
    """An error in the middle."""
    return event("error", error={"type": kind, "message": text})


def refuses(status: int, kind: str, text: str, **headers: str) -> Answer:
    """An error in the place of an answer."""
    body = {"type": "error", "error": {"type": kind, "message": text}, "request_id": "req_1"}
    return answers_with(orjson.dumps(body), status, **headers)


def message(*blocks: list[bytes], reason: str = "end_turn", **usage: Any) -> Answer:
    """A whole answer."""
    return stream(start(), PING, *(piece for block in blocks for piece in block), end(reason, **usage))
