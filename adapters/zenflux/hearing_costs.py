"""What a run has cost: told per message in one frame, and for the whole run in another, and each counted once."""

from typing import Any

from msgspec.structs import asdict

from gateway.model import Usage

from .hearing_words import bill_of, tokens


class Costs:
    """`take` gives what was told and belongs to no message yet."""

    def __init__(self) -> None:
        self._taken = Usage()
        self._owed = Usage()
        self._bill: Usage | None = None
        self.told = False
        """Whether the message that is being told has had its costs; a bill that follows is the run's, and no remark."""

    def spent(self, content: dict[str, Any]) -> None:
        """The tokens of a message, where the frame that ends it has them."""
        self.told = True
        self._owed += Usage(
            input_tokens=tokens(content.get("input_tokens")), output_tokens=tokens(content.get("output_tokens")),
        )

    def billed(self, content: Any) -> None:
        """A bill is of the whole run: what others have taken of it is not owed again.

        One that comes before the costs of its message may be an agent's remark, and counts only if none follow.
        """
        if not isinstance(content, dict):
            return
        if self.told:
            self._owed = _larger(self._owed, _less(bill_of(content), self._taken))
        else:
            self._bill = bill_of(content)

    def message_over(self) -> None:
        if not self.told and self._bill is not None:
            self._owed = _larger(self._owed, _less(self._bill, self._taken))
        self.told, self._bill = False, None

    def take(self) -> Usage:
        taken, self._owed = self._owed, Usage()
        self._taken += taken
        return taken


def _less(one: Usage, other: Usage) -> Usage:
    taken = asdict(other)
    return Usage(**{name: max(0, count - taken[name]) for name, count in asdict(one).items()})


def _larger(one: Usage, other: Usage) -> Usage:
    counts = asdict(other)
    return Usage(**{name: max(count, counts[name]) for name, count in asdict(one).items()})
