"""What a client was told of one turn, in plain words. Readers of each dialect fill it in from the wire alone."""

from collections.abc import Collection, Iterable
from typing import Any

import orjson


def at_once(trace: Iterable[tuple[str, bool]], without: Collection[str] = ()) -> int:
    """How many calls were open together at most; one alone is none."""
    still, most = set[str](), 0
    for call_id, is_opened in trace:
        if is_opened and call_id not in without:
            still.add(call_id)
        elif not is_opened:
            still.discard(call_id)
        most = max(most, len(still))
    return most if most > 1 else 0


class TurnReader:
    """Adds up one turn as a client sees it; knows nothing of any gateway.

    `own` are the names of the tools that the client carries out itself.
    """

    def __init__(self, own: Collection[str] = ()) -> None:
        self.own = own
        self.raw: list[str] = []
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: dict[str, tuple[str, Any]] = {}
        self.results: list[tuple[str, str, bool]] = []
        self.asks: dict[str, list[Any]] = {
            name: [] for name in ("client_tools", "permissions", "questions", "continuations", "rollbacks")
        }
        self.below: list[str] = []
        self.letters: list[str] = []
        self.images: list[str] = []
        self.data: list[Any] = []
        self.annotations: list[Any] = []
        self.notices: list[Any] = []
        self.compactions: list[str] = []
        self.titles: list[str] = []
        self.usage = dict.fromkeys(
            ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "thinking_tokens"), 0,
        )
        self.stop: str | None = None
        self.faults: list[tuple[str, str]] = []
        self.interrupted = False
        self.result: Any = None
        self.trace: list[tuple[str, bool]] = []
        """Which call was opened, or settled, in this order."""

    def keep(self, told: Any) -> None:
        """Whatever came over the wire, as it came."""
        self.raw.append(told if isinstance(told, str) else orjson.dumps(told).decode())

    def call(self, call_id: str, name: str, given: Any) -> None:
        assert call_id not in self.calls, f"{name} is called twice under one id"
        self.calls[call_id] = (name, given)
        self.trace.append((call_id, True))

    def returned(self, call_id: str, text: str, is_error: bool = False) -> None:
        """A server's tool gave this back."""
        name, _ = self.calls[call_id]
        self.settled(call_id)
        if name not in self.own:
            self.results.append((name, text, is_error))

    def settled(self, call_id: str) -> None:
        """Nobody waits for this call any more; a client's own are settled by the client."""
        self.trace.append((call_id, False))

    def spent(self, **tokens: int) -> None:
        for name, count in tokens.items():
            self.usage[name] += count

    def facts(self) -> dict[str, Any]:
        return {
            "text": "".join(self.texts),
            "thinking": "".join(self.thoughts),
            "tool_calls": [*self.calls.values()],
            "tool_results": sorted(self.results),
            "tool_output": [],
            "parallel_tools": at_once(self.trace),
            **self.asks,
            "subagents": [self.below, self.letters] if self.below else [],
            "images_out": self.images,
            "data_blocks": self.data,
            "annotations": self.annotations,
            "notices": self.notices,
            "compaction": self.compactions,
            "titles": self.titles,
            "usage": self.usage,
            "stop_reasons": self.stop,
            "faults": self.faults,
            "interrupts": self.interrupted,
            "structured_output": self.result,
            "custom": [],
        }
