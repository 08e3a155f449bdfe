"""CAS, read by its documents alone: the events of one turn on a session's stream."""

from typing import Any

from tests.support.pairs.reader import TurnReader

CALLS = {"agent.tool_use": "agent.tool_result", "agent.mcp_tool_use": "agent.mcp_tool_result",
         "agent.custom_tool_use": "agent.tool_result"}
STOPS = {"end_turn": "end_turn", "cancelled": "interrupted", "error": "error", "max_tokens": "max_tokens",
         "max_steps": "max_steps", "refusal": "refusal"}
SPENT = {
    "input_tokens": "input_tokens", "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens", "cache_creation_input_tokens": "cache_write_tokens",
}


class PairReader(TurnReader):
    """What a script was told; what it must settle is in `waiting` when the session is idle and the turn is not over."""

    def __init__(self, own: tuple[str, ...]) -> None:
        super().__init__(own)
        self.waiting: list[tuple[str, dict[str, Any]]] = []
        self.over = False
        self.deltas = 0
        self._events: dict[str, dict[str, Any]] = {}
        self.children: list[str] = []
        self._growing: dict[str, str] = {}

    def hear(self, event: dict[str, Any]) -> None:
        self.keep(event)
        assert event["id"] not in self._events, "an event twice"
        kind = event["type"]
        if kind in ("event_start", "event_delta"):
            return self._preview(event)
        self._events[event["id"]] = event
        assert not self.over, f"{kind} after the end of the turn"
        is_child = event.get("session_thread_id") in self.children
        if kind in ("agent.tool_use", "agent.mcp_tool_use", "agent.custom_tool_use"):
            assert isinstance(event["input"], dict)
            assert kind == "agent.custom_tool_use" or event["evaluated_permission"] in ("allow", "ask", "deny")
            if not is_child:
                self.call(event["id"], event["name"], event["input"])
        elif kind in ("agent.tool_result", "agent.mcp_tool_result"):
            self._result(event, kind)
        elif kind in ("agent.message", "agent.thinking"):
            self._words(event, is_child)
        elif kind == "session.status_idle":
            self._idle(event)
        else:
            getattr(self, "_" + kind.replace(".", "_"), lambda event: None)(event)
        return None

    # -- words ----------------------------------------------------------------------------------------------------

    def _preview(self, event: dict[str, Any]) -> None:
        if event["type"] == "event_start":
            self._growing[event["event"]["id"]] = ""
        else:
            assert event["delta"]["type"] == "content_delta"
            self._growing[event["event_id"]] += event["delta"]["content"]["text"]
            self.deltas += 1

    def _words(self, event: dict[str, Any], is_child: bool) -> None:
        is_message = event["type"] == "agent.message"
        words = words_of(event["content"]) if is_message else event["thinking"]
        assert self._growing.pop(event["id"], words) == words, "the deltas do not add up to the event"
        if is_child:
            self.below += [words] if is_message else []
        else:
            (self.texts if is_message else self.thoughts).append(words)

    # -- calls ----------------------------------------------------------------------------------------------------

    def _result(self, event: dict[str, Any], kind: str) -> None:
        call = self._events[event["tool_use_id"]]
        assert CALLS[call["type"]] == kind, "the result of another kind of call"
        if call["id"] in self.calls:
            self.returned(call["id"], words_of(event["content"]), event["is_error"])

    def _user_custom_tool_result(self, event: dict[str, Any]) -> None:
        self.settled(event["custom_tool_use_id"])

    def _idle(self, event: dict[str, Any]) -> None:
        stop = event["stop_reason"]
        assert event["status"] == "idle"
        if stop["type"] != "requires_action":
            self.stop, self.over = STOPS[stop["type"]], True
            self.interrupted = self.stop == "interrupted"
            assert not self._growing, "an event was begun and never came"
            return
        assert stop["event_ids"]
        self.waiting = [(event_id, self._events[event_id]) for event_id in stop["event_ids"]]
        for _, call in self.waiting:
            asked = "client_tools" if call["type"] == "agent.custom_tool_use" else "permissions"
            self.asks[asked].append((call["name"], call["input"]))

    # -- threads --------------------------------------------------------------------------------------------------

    def overhear(self, events: list[dict[str, Any]]) -> None:
        """What a sub-agent said in its own thread, and what the session's stream did not tell."""
        for event in events:
            if event["id"] not in self._events:
                self.keep(event)
                self._events[event["id"]] = event
                assert event["session_thread_id"] in self.children
                if event["type"] == "agent.message":
                    self._words(event, is_child=True)
                elif event["type"] == "span.model_request_end":
                    self._span_model_request_end(event)

    def _session_thread_created(self, event: dict[str, Any]) -> None:
        assert event["role"] == "child"
        assert event["created_by_tool_use_id"] in self._events
        self.children.append(event["session_thread_id"])
        self.below.append("a sub-agent")

    def _agent_thread_message_sent(self, event: dict[str, Any]) -> None:
        assert event["direction"] == "coordinator_to_child"
        assert event["to_session_thread_id"] in self.children
        self.letters.append(words_of(event["content"]))

    def _agent_thread_message_received(self, event: dict[str, Any]) -> None:
        assert event["direction"] == "child_to_parent"
        assert event["from_session_thread_id"] in self.children
        self.letters.append(words_of(event["content"]))

    # -- the rest -------------------------------------------------------------------------------------------------

    def _span_model_request_end(self, event: dict[str, Any]) -> None:
        assert event["model_request_start_id"] in self._events
        self.spent(**{SPENT[name]: count for name, count in event["model_usage"].items()})

    def _session_updated(self, event: dict[str, Any]) -> None:
        self.titles += [event["title"]] if "title" in event else []

    def _session_error(self, event: dict[str, Any]) -> None:
        self.faults.append((event["error"]["type"], event["error"]["message"]))


def words_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(
        block["text"] for block in content if block["type"] == "text")
