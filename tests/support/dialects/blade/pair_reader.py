"""Blade, read by its documents alone: the events of one session, from the first chat:start to the last chat:end."""

from typing import Any

import orjson

from tests.support.pairs.reader import TurnReader

QUESTION = "AskUserQuestion"
TYPED = ("mode_change", "planning_enter", "planning_exit", "plan_status")
STATUSES = ("completed", "paused", "failed", "interrupted")
STOPS = {"completed": "end_turn", "max_turns": "max_steps", "tool_error": "error", None: "error"}


class PairReader(TurnReader):
    """What a page was told. It follows the patches; `turn:end` must say the same."""

    def __init__(self) -> None:
        super().__init__()
        self.chats = 0
        self.deltas = 0
        self.waiting: dict[str, Any] = {}
        self._turns: dict[str, dict[str, Any]] = {}

    def hear(self, event: str, payload: dict[str, Any]) -> None:
        self.keep(payload)
        getattr(self, "_" + event.replace(":", "_"), lambda payload: None)(payload)

    # -- turns ----------------------------------------------------------------------------------------------------

    def _turn_start(self, payload: dict[str, Any]) -> None:
        turn = self._turns[payload["turn_id"]] = {**payload, "text": "", "thinking": "", "calls": {}}
        forked = turn["parent_fork_tool_call_id"]
        if forked is not None and not any(
            other["loop_id"] == turn["loop_id"] for key, other in self._turns.items() if key != payload["turn_id"]
        ):
            self.below.append("a sub-agent")

    def _turn_patch(self, payload: dict[str, Any]) -> None:
        turn, data = self._turns[payload["turn_id"]], payload["data"]
        getattr(self, f"_{payload['patch_type']}")(turn, data)

    def _turn_end(self, payload: dict[str, Any]) -> None:
        turn = self._turns[payload["turn_id"]]
        assert payload["status"] in STATUSES
        if payload["role"] != "assistant":
            return self._summed_up(payload)
        said = {kind: "".join(block["content"] for block in payload["blocks"] if block["type"] == kind)
                for kind in ("text", "thinking")}
        assert said == {kind: turn[kind] for kind in said}, "the patches do not add up to the turn"
        assert {call["id"]: call["status"] for call in payload["tool_calls"]} == turn["calls"]
        if turn.setdefault("ended", payload) is not payload:
            return None  # a turn that waited for a person ends once more
        if payload["parent_fork_tool_call_id"] is None:
            self.texts.append(said["text"])
            self.thoughts.append(said["thinking"])
        elif said["text"]:
            self.below.append(said["text"])
        self._about(payload)
        return None

    def _about(self, turn: dict[str, Any]) -> None:
        for name in ("input_tokens", "output_tokens"):
            self.spent(**{name: (turn["usage"] or {}).get(name, 0)})
        if turn["memory_refs"]:
            self.annotations.append(("memory_refs", turn["memory_refs"]))
        self._summed_up(turn)

    def _summed_up(self, turn: dict[str, Any]) -> None:
        if turn["kind"] == "compaction":
            self.compactions.append(turn["summary_full"])

    # -- patches --------------------------------------------------------------------------------------------------

    def _add_content(self, turn: dict[str, Any], data: dict[str, Any]) -> None:
        if data["type"] in ("text", "thinking"):
            turn[data["type"]] += data["text_delta"]
            self.deltas += 1
        elif data["type"] in TYPED:
            self.data.append((data["type"], data["content"]))

    def _add_tool_call(self, turn: dict[str, Any], data: dict[str, Any]) -> None:
        assert data["status"] in ("pending", "awaiting_answer")
        turn["calls"][data["id"]] = data["status"]
        given = orjson.loads(data["arguments"])
        if data["tool_name"] == QUESTION:
            given.pop("source_loop")  # Blade's own: whose question it is
        if turn["parent_fork_tool_call_id"] is None:
            self.call(data["id"], data["tool_name"], given)
        if data["tool_name"] == QUESTION:
            self.waiting[data["id"]] = given
            self.asks["questions"].append([
                (one["question"], bool(one.get("multiSelect")), [choice["label"] for choice in one["options"]])
                for one in given["questions"]])

    def _tool_result(self, turn: dict[str, Any], data: dict[str, Any]) -> None:
        assert data["status"] in ("done", "error")
        turn["calls"][data["tool_call_id"]] = data["status"]
        self.waiting.pop(data["tool_call_id"], None)
        if data["tool_call_id"] in self.calls:
            self.returned(data["tool_call_id"], words_of(data["result"]), data["status"] == "error")

    def _set_tool_status(self, turn: dict[str, Any], data: dict[str, Any]) -> None:
        turn["calls"][data["tool_call_id"]] = data["status"]
        if data["status"] in ("done", "error", "cancelled"):
            self.waiting.pop(data["tool_call_id"], None)
            self.settled(data["tool_call_id"])

    def _set_status(self, turn: dict[str, Any], data: dict[str, Any]) -> None:
        turn["status"] = data["status"]

    # -- chats, and the rest --------------------------------------------------------------------------------------

    def _chat_end(self, payload: dict[str, Any]) -> None:
        assert payload["status"] in ("completed", "interrupted", "failed")
        self.chats += 1
        self.interrupted = payload["status"] == "interrupted"
        self.stop = "interrupted" if self.interrupted else STOPS[payload["finish_reason"]]
        self.result = (payload["result"] or {}).get("output")

    def _session_updated(self, payload: dict[str, Any]) -> None:
        self.titles += [payload["intent"]] if payload.get("intent") else []

    def _system_error(self, payload: dict[str, Any]) -> None:
        self.faults.append((payload["code"], payload["message"]))

    def _system_notification(self, payload: dict[str, Any]) -> None:
        self.notices.append((payload["notification_type"], payload["title"], payload["status"]))


def words_of(result: Any) -> str:
    """A result may be anything: words, parts, or an object whose words are beside what is for the page."""
    if isinstance(result, dict):
        assert "_meta" in result, result
        [beside] = [value for name, value in result.items() if name != "_meta"]
        return words_of(beside)
    return result if isinstance(result, str) else "".join(
        part["text"] for part in result if part.get("type") == "text")
