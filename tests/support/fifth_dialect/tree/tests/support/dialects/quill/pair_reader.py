"""What a Quill client is told of one turn."""

from typing import Any

from tests.support.pairs.reader import TurnReader


class PairReader(TurnReader):
    """Words, and how they ended."""

    over = False
    deltas = 0

    def hear(self, name: str, body: dict[str, Any]) -> None:
        self.keep(body)
        if name == "words":
            self.texts.append(body["text"])
            self.deltas += 1
        elif name == "closed":
            self.over = True
            self.stop = {"end": "end_turn", "stopped": "interrupted"}.get(body["why"], "error")
            self.interrupted = body["why"] == "stopped"
            self.is_waiting = body["why"] == "waiting"
