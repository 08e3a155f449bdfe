"""AAP, read by its documents alone: the streams of one turn's POSTs, in mode delta."""

from typing import Any

from tests.support.pairs.reader import TurnReader

STOPS = ("end_turn", "tool_use", "max_tokens", "refusal", "error")


class PairReader(TurnReader):
    """What an application was told.

    Of the calls left open when a turn stops for `tool_use`, those of its own tools are to be carried out and those of
    `untrusted` ones to be permitted; any other is the server's affair.
    """

    def __init__(self, own: tuple[str, ...], untrusted: tuple[str, ...]) -> None:
        super().__init__(own)
        self.untrusted = untrusted
        self.pending: dict[str, tuple[str, Any]] = {}
        self.started = False
        self.ending = False
        """Whether the client has ended the turn; AAP has no word to tell it so."""

    def hear(self, event: str, data: dict[str, Any]) -> None:
        self.keep(data)
        assert (event == "turn_start") is not self.started, f"{event} out of its place"
        match event:
            case "turn_start":
                assert data == {}
                self.started = True
            case "text_delta":
                self.texts.append(data["delta"])
            case "thinking_delta":
                self.thoughts.append(data["delta"])
            case "tool_call":
                assert isinstance(data["input"], dict)
                self.call(data["toolCallId"], data["name"], data["input"])
                self.pending[data["toolCallId"]] = (data["name"], data["input"])
            case "tool_result":
                self._returned(data["toolCallId"], words_of(data["content"]))
            case "turn_stop":
                self._stopped(data["stopReason"])
            case _:
                raise AssertionError(f"AAP has no event {event} in mode delta")

    def _returned(self, call_id: str, words: str) -> None:
        name, _ = self.calls[call_id]
        assert name not in self.own, "the client knows what its own tool gave"
        assert (call_id, False) not in self.trace or name not in self.untrusted, "a result twice"
        self.pending.pop(call_id, None)
        self.returned(call_id, words)

    def _stopped(self, reason: str) -> None:
        assert reason in STOPS
        assert reason != "tool_use" or self.pending, "stopped for nothing that the client could do"
        self.stop, self.started = reason, False
        self.interrupted = self.ending and reason == "error"
        for name, given in self.pending.values() if reason == "tool_use" else ():
            if name in (*self.own, *self.untrusted):
                self.asks["client_tools" if name in self.own else "permissions"].append((name, given))

    def answered(self, call_id: str) -> None:
        """The client has given the result itself."""
        del self.pending[call_id]
        self.settled(call_id)


def words_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(
        block["text"] for block in content if block["type"] == "text")
