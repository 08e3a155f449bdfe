"""Which session a turn or an ask belongs to, for those who know only its id."""

MOST = 100_000
"""How many are remembered; the oldest are forgotten first."""


class Places:
    """Ids of turns and asks, and the session each is in."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._sessions: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def note(self, word: str, session_id: str) -> None:
        self._sessions[word] = session_id
        if len(self._sessions) > self._most:
            del self._sessions[next(iter(self._sessions))]

    def session_of(self, word: str) -> str | None:
        return self._sessions.get(word)
