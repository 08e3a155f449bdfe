"""What a session remembers of its AG-UI agent from turn to turn: the thread, the state, and what is waited for."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import structlog
from msgspec import Struct

from gateway.model import PRIVATE, SessionUpdated
from gateway.ports import Turn

from .wire import Interrupt

log = structlog.get_logger("dragoman.agui")

KEPT = "agui"
"""Under this name it stands in the session's private metadata."""
MOST_STATE = 1024 * 1024
"""State of more bytes than this is not remembered beyond its turn."""
MOST_IDS = 200
"""Of so many messages the agent's own ids are remembered, the latest."""


class Memory(Struct, kw_only=True, omit_defaults=True):
    """Kept with the session, for one address; another agent begins anew."""

    url: str = ""
    thread_id: str = ""
    state: Any = {}
    ids: dict[str, str] = {}
    waiting: list[Interrupt | None] = []
    """What the asks of a turn that waits are about, in their order; None where a client's tool is waited for."""

    @classmethod
    def of(cls, turn: Turn, url: str) -> "Memory":
        kept = (turn.metadata.get(PRIVATE) or {}).get(KEPT)
        try:
            memory = msgspec.convert(kept or {}, cls)
        except msgspec.ValidationError:
            memory = cls()
        return memory if memory.url == url else cls(url=url, thread_id=turn.session_id)

    def learn(self, *, thread_id: str | None, state: Any, ids: Mapping[str, str]) -> None:
        self.thread_id = thread_id or self.thread_id
        self.state = state
        together = {**self.ids, **ids}
        self.ids = dict(list(together.items())[-MOST_IDS:])

    def kept(self, turn: Turn, waiting: Sequence[Interrupt | None] = ()) -> list[SessionUpdated]:
        """What must be said for this to be remembered; nothing where nothing has changed."""
        self.waiting = list(waiting)
        told: dict[str, Any] = msgspec.to_builtins(self)
        if len(msgspec.json.encode(told.get("state"))) > MOST_STATE:
            log.warning("the agent's state is too large to be remembered", session=turn.session_id)
            told.pop("state")
        private = turn.metadata.get(PRIVATE) or {}
        if private.get(KEPT) == told:
            return []
        return [SessionUpdated(metadata={**turn.metadata, PRIVATE: {**private, KEPT: told}})]
