"""A bounded memory of sessions: those that were used last are remembered, older ones are forgotten."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

MAX_SESSIONS = 4096
"""So many sessions are remembered, unless a client wants another number."""
State = TypeVar("State")


class SessionMemory(Generic[State]):
    """One state for each session, or for anything else that has a name.

    To read, to make and to replace a state are uses of its session. If there are more than `most` sessions, the one
    that was used longest ago is forgotten. A state that `is_busy` is not forgotten: while so many are, there are more.
    """

    def __init__(self, most: int = MAX_SESSIONS, *, is_busy: Callable[[State], bool] | None = None) -> None:
        self._states: OrderedDict[str, State] = OrderedDict()
        self._most, self._is_busy = most, is_busy

    def __len__(self) -> int:
        return len(self._states)

    def __contains__(self, name: str) -> bool:
        return name in self._states

    def get(self, name: str) -> State | None:
        """The state of this session; None if there is none, or if it was forgotten."""
        if name in self._states:
            self._states.move_to_end(name)
        return self._states.get(name)

    def setdefault(self, name: str, state: State) -> State:
        """The state of this session, which is the given one if there was none."""
        known = self._states.setdefault(name, state)
        self.put(name, known)
        return known

    def put(self, name: str, state: State) -> State | None:
        """Remember a state; returns the state that was forgotten for it, if there is one."""
        self._states[name] = state
        self._states.move_to_end(name)
        if len(self._states) <= self._most:
            return None
        found = next((one for one, held in self._states.items() if not (self._is_busy and self._is_busy(held))), None)
        return None if found is None else self._states.pop(found)

    def pop(self, name: str) -> State | None:
        """Forget the state of this session, and return it."""
        return self._states.pop(name, None)

    def values(self) -> list[State]:
        """All states, that of the session first that was used longest ago."""
        return list(self._states.values())

    def clear(self) -> None:
        self._states.clear()
