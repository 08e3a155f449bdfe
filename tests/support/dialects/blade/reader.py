"""A Blade client as the documents describe it, and a strict one: it builds its turns from patches alone."""

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import orjson

from gateway.ports import Frame

WORDS = ("text", "thinking")
CHANGES_LATER = ("paused",)


class Page:
    """What a page shows; every event must fit what was said before."""

    def __init__(self, *, snapshots: bool = True) -> None:
        self.snapshots = snapshots
        self.events: list[tuple[str, Any]] = []
        self.turns: dict[str, dict[str, Any]] = {}
        self.ends: dict[str, dict[str, Any]] = {}
        """The last `turn:end` of each turn."""
        self.chatting = False
        self.chats: list[dict[str, Any]] = []
        self.errors: list[dict[str, Any]] = []
        self.deltas: dict[str, str] = {}
        self.size = 0
        self._last = 0
        self._patches: dict[str, int] = {}
        self._growing: dict[str, bool] = {}

    def read(self, frames: Iterable[Frame]) -> "Page":
        for frame in frames:
            self.size += len(frame.body)
            self.hear(frame.name, orjson.loads(frame.body))
        return self

    def hear(self, name: str, payload: dict[str, Any]) -> None:
        self.events.append((name, payload))
        if "stream_sequence" in payload and name != "turn:events":
            assert payload["stream_sequence"] > self._last, "numbers grow"
            self._last = payload["stream_sequence"]
        getattr(self, f"_{name.replace(':', '_')}", lambda payload: None)(payload)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.events]

    @property
    def outline(self) -> list[str]:
        """One word per event: patches by their type, turns by role and status."""
        return [_word(name, payload) for name, payload in self.events]

    @property
    def text(self) -> str:
        return "".join(b["content"] for t in self.turns.values() if t["role"] == "assistant"
                       for b in t["blocks"] if b["type"] == "text")

    @property
    def statuses(self) -> list[str]:
        return [turn["status"] for turn in self.turns.values()]

    def calls(self) -> list[dict[str, Any]]:
        return [call for turn in self.turns.values() for call in turn["tool_calls"]]

    # -- chats ----------------------------------------------------------------------------------------------------

    def _chat_start(self, payload: dict[str, Any]) -> None:
        assert not self.chatting, "one chat at a time"
        self.chatting = True

    def _chat_end(self, payload: dict[str, Any]) -> None:
        assert self.chatting, "a chat ends once"
        assert self.turns == {turn_id: _turn_of(self.ends[turn_id]) for turn_id in self.turns}, "ends tell all"
        self.chatting = False
        self.chats.append(payload)

    def _system_error(self, payload: dict[str, Any]) -> None:
        self.errors.append(payload)

    # -- turns ----------------------------------------------------------------------------------------------------

    def _turn_start(self, payload: dict[str, Any]) -> None:
        assert payload["turn_id"] not in self.turns
        assert payload["status"] == ("completed" if payload["role"] != "assistant" else "streaming")
        sequences = [turn["sequence"] for turn in self.turns.values()]
        assert payload["sequence"] == (sequences[-1] + 1 if sequences else payload["sequence"])
        self.turns[payload["turn_id"]] = _turn_of(payload)

    def _turn_end(self, payload: dict[str, Any]) -> None:
        mine, turn_id = self.turns[payload["turn_id"]], payload["turn_id"]
        assert turn_id not in self.ends or self.ends[turn_id]["status"] in CHANGES_LATER
        self.ends[turn_id] = payload
        assert mine["blocks"] == payload["blocks"]
        assert mine["tool_calls"] == payload["tool_calls"]
        assert payload["status"] != "streaming"
        self.turns[turn_id] = _turn_of(payload)

    def _turn_patch(self, payload: dict[str, Any]) -> None:
        turn_id, change = payload["turn_id"], dict(payload["data"])
        turn = self.turns[turn_id]
        assert turn_id not in self.ends or turn["status"] in CHANGES_LATER, "a turn that is over does not change"
        assert payload["sequence"] == self._patches.get(turn_id, 0) + 1
        self._patches[turn_id] = payload["sequence"]
        assert payload["loop_id"] == turn["loop_id"]
        snapshot = change.pop("turn", None)
        getattr(self, f"_{payload['patch_type']}")(turn, change)
        self._growing[turn_id] = payload["patch_type"] == "add_content" and change["type"] in WORDS
        if self.snapshots:
            assert snapshot is not None
            for key in ("blocks", "tool_calls", "status"):
                assert snapshot[key] == turn[key], key
        else:
            assert snapshot is None

    def _add_content(self, turn: dict[str, Any], change: dict[str, Any]) -> None:
        blocks, kind = turn["blocks"], change["type"]
        if kind not in WORDS:
            about = {key: change[key] for key in ("tool_call_id", "tool_name", "display_name")}
            blocks.append({"type": kind, "content": change["content"], **about})
            return
        key = f"{turn['turn_id']}/{kind}"
        self.deltas[key] = self.deltas.get(key, "") + change["text_delta"]
        if not (self._growing.get(turn["turn_id"]) and blocks[-1]["type"] == kind):
            blocks.append({"type": kind, "content": "", "tool_call_id": None, "tool_name": None, "display_name": None})
        blocks[-1]["content"] += change["text_delta"]
        assert change["content"] == blocks[-1]["content"], "content is all of the block so far"
        assert change["block_index"] == len(blocks) - 1

    def _add_tool_call(self, turn: dict[str, Any], change: dict[str, Any]) -> None:
        given = orjson.loads(change["arguments"])
        assert isinstance(given, dict)
        declared = {"id": change["id"], "name": change["tool_name"], "input": given}
        turn["blocks"].append(_block_about("tool_use", declared, change))
        turn["tool_calls"].append({**change, "result": None, "duration_ms": None, "pending_question_ref": None})

    def _tool_result(self, turn: dict[str, Any], change: dict[str, Any]) -> None:
        call = self._call(turn, change)
        call.update({key: change[key] for key in ("result", "status", "duration_ms")}, pending_question_ref=None)
        turn["blocks"].append(_block_about("tool_result", change["result"], call))

    def _set_status(self, turn: dict[str, Any], change: dict[str, Any]) -> None:
        turn["status"] = change["status"]

    def _set_tool_status(self, turn: dict[str, Any], change: dict[str, Any]) -> None:
        self._call(turn, change).update(
            status=change["status"], pending_question_ref=change["pending_question_ref"],
        )

    def _call(self, turn: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
        [call] = [call for call in turn["tool_calls"] if call["id"] == change["tool_call_id"]]
        found: dict[str, Any] = call
        return found


def _block_about(kind: str, content: Any, call: dict[str, Any]) -> dict[str, Any]:
    """A block that no patch tells, because a patch about its call does."""
    about = {"tool_call_id": call["id"], "tool_name": call["tool_name"], "display_name": call["display_name"]}
    return {"type": kind, "content": content, **about}


def _turn_of(payload: dict[str, Any]) -> dict[str, Any]:
    extra = ("session_id", "solution_id", "template_id", "stream_sequence")
    return {key: deepcopy(value) for key, value in payload.items() if key not in extra}


def _word(name: str, payload: dict[str, Any]) -> str:
    if name == "turn:patch":
        data = payload["data"]
        return f"{payload['patch_type']} {data.get('status') or data.get('type')}"
    if name in ("turn:start", "turn:end"):
        return f"{name} {payload['role']} {payload['status']}"
    return f"{name} {payload['status']}" if name == "chat:end" else name
