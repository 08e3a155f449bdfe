"""ZenFlux, read by its documents alone: the events of one run on a chat socket."""

from typing import Any

import orjson

from tests.support.pairs.reader import TurnReader

SPENT = {
    "prompt_tokens": "input_tokens", "completion_tokens": "output_tokens", "cache_read_tokens": "cache_read_tokens",
    "cache_write_tokens": "cache_write_tokens", "thinking_tokens": "thinking_tokens",
}
REMARKS = ("recommended", "preface", "intent", "search", "knowledge")
STOPPED = {"user_requested": "interrupted", "timeout": "timeout", "error": "error"}
ERRORS = ("network_error", "timeout_error", "overloaded_error", "internal_error", "validation_error")
FIELD = {"text": "text", "thinking": "thinking", "tool_result": "content"}


class PairReader(TurnReader):
    """What a front end was told; `waiting` is what its modal windows show."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[tuple[str, Any]] = []
        self.over = False
        self.deltas = 0
        self._blocks: dict[int, dict[str, Any]] = {}

    def hear(self, envelope: dict[str, Any]) -> None:
        self.keep(envelope)
        assert not self.over, f"{envelope['type']} after session_end"
        assert isinstance(envelope["data"], dict)
        getattr(self, f"_{envelope['type']}", lambda data: None)(envelope["data"])

    # -- blocks ---------------------------------------------------------------------------------------------------

    def _content_start(self, data: dict[str, Any]) -> None:
        assert data["index"] not in self._blocks, "a place is taken twice"
        block = self._blocks[data["index"]] = {**data["content_block"], "partial": ""}
        assert block.get(FIELD.get(block["type"], "partial")) == "", "what is to be streamed begins empty"

    def _content_delta(self, data: dict[str, Any]) -> None:
        block = self._blocks[data["index"]]
        block[FIELD.get(block["type"], "partial")] += data["delta"]
        self.deltas += 1

    def _content_stop(self, data: dict[str, Any]) -> None:
        block = self._blocks[data["index"]]
        match block["type"]:
            case "text":
                self.texts.append(block["text"])
            case "thinking":
                self.thoughts.append(block["thinking"])
            case "tool_use" | "server_tool_use":
                self.call(block["id"], block["name"], orjson.loads(block["partial"] or "{}"))
            case "tool_result":
                self.returned(block["tool_use_id"], block["content"], block["is_error"])
            case "image":
                self.images.append(picture_of(block["source"]))
            case kind:
                raise AssertionError(f"ZenFlux has no block {kind}")

    # -- about a message ------------------------------------------------------------------------------------------

    def _message_delta(self, data: dict[str, Any]) -> None:
        kind, content = data["type"], data["content"]
        if kind == "usage":
            self.stop = content["stop_reason"]
        elif kind == "billing":
            self._billed(content)
        elif kind == "confirmation_request":
            self._requested(orjson.loads(content))
        elif kind in REMARKS:
            self.annotations.append((kind, orjson.loads(content) if kind == "recommended" else content))

    def _billed(self, bill: dict[str, Any]) -> None:
        """A bill is of all calls so far: the last one is the run's."""
        self.usage |= {SPENT[name]: count for name, count in bill.items() if name in SPENT}

    # -- what people must settle ----------------------------------------------------------------------------------

    def _requested(self, asked: dict[str, Any]) -> None:
        assert asked["request_id"] and asked["question"]
        self.waiting.append(("confirmation", asked))
        if asked.get("questions"):
            self.asks["questions"].append([
                (one["question"], one["type"] == "multiple_choice", one["options"]) for one in asked["questions"]])
        elif asked["options"] == ["approve", "reject"]:
            self.asks["permissions"].append(self._last_call(asked["tool_name"]))

    def _last_call(self, name: str) -> tuple[str, Any]:
        """A request names the tool; what it is called with was told by the call itself."""
        return next(call for call in reversed(self.calls.values()) if call[0] == name)

    def _long_running_confirm(self, data: dict[str, Any]) -> None:
        self.waiting.append(("continuation", data))
        self.asks["continuations"].append((data["turn"], data["message"]))

    def _rollback_options(self, data: dict[str, Any]) -> None:
        self.waiting.append(("rollback", data))
        self.asks["rollbacks"].append((data["task_id"], data["options"]))

    # -- the conversation and the run -----------------------------------------------------------------------------

    def _conversation_delta(self, data: dict[str, Any]) -> None:
        self.titles += [data["title"]] if "title" in data else []
        self.compactions += [data["compressed"]["summary"]] if "compressed" in data else []

    def _error(self, data: dict[str, Any]) -> None:
        assert data["error"]["type"] in ERRORS
        self.stop = "error"
        self.faults.append((data["error"]["type"], data["error"]["message"]))

    def _session_stopped(self, data: dict[str, Any]) -> None:
        self.stop = STOPPED[data["reason"]]

    def _session_end(self, data: dict[str, Any]) -> None:
        assert data["status"] in ("completed", "failed", "cancelled")
        self.over, self.interrupted = True, data["status"] == "cancelled"
        assert not self.waiting or data["status"] != "completed", "the run ended well and left people waiting"


def picture_of(source: dict[str, Any]) -> str:
    if source["type"] == "base64":
        return f"data:{source['media_type']};base64,{source['data']}"
    return str(source["data"])
