"""What is remembered of the sessions at an AAP server between one turn and the next; never of more than so many."""

from collections import OrderedDict
from dataclasses import dataclass

from .hearing import AapHearing
from .hearing_asks import Toolbox
from .remote_speech import Chosen

MOST = 4096


@dataclass(kw_only=True, repr=False)
class Known:
    """One session; what is None is not known, and asked of the server where it is needed."""

    chosen: Chosen | None = None
    toolbox: Toolbox | None = None
    hearing: AapHearing | None = None
    """Of a turn that waits for people."""
    said: int | None = None
    """How many messages of people its history has."""
    is_left: bool = False
    """Whether we hung up while a turn ran, which its server may not have noticed yet."""


class Memory:
    """The sessions that were spoken to last; those before them are forgotten."""

    def __init__(self, most: int = MOST) -> None:
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._most = most

    def __len__(self) -> int:
        return len(self._known)

    def of(self, session_id: str) -> Known:
        known = self._known.setdefault(session_id, Known())
        self._known.move_to_end(session_id)
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        return known
