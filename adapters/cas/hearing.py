"""CAS, heard: the events of a server in, words of the house out. No clock, no socket."""

from collections.abc import Callable
from typing import Any

from gateway.errors import BackendFailed
from gateway.ids import Mint
from gateway.model import Outcome, StopReason
from gateway.upstream import Frame, Heard, Hearing

from .hearing_frames import event_id_of, type_of
from .hearing_reading import Told
from .hearing_turn import STEPS, HeardTurn
from .hearing_voice import Voice

PREVIEWS: dict[str, Callable[[Voice, Told], list[Any]]] = {
    "event_start": Voice.announced,
    "event_delta": Voice.grown,
    "agent.message_start": Voice.raw_started,
    "agent.content_block_start": Voice.raw_block,
    "agent.content_block_delta": Voice.raw_delta,
    "agent.content_block_stop": Voice.raw_block_ended,
    "agent.message_delta": Voice.raw_stop,
}
BEGINNING = ("user.message", "session.status_running")
"""After the end of a turn, these begin the next."""
OPENING = (*BEGINNING, "session.updated", "error")
"""All that is heard between turns."""
STILL = ("session.status_idle", "session.updated", "session.error", "agent.thread_context_compacted")
"""What a server may say and still wait."""
ENDING = ("session.status_idle", "session.status_terminated", "session.deleted", "session.updated")
"""What a fault may be followed by and still have been the end of the turn."""


class CasHearing(Hearing):
    """One session heard. An event is heard once, however many streams tell it: its id is how it is known.

    The words of sub-agents stand in their threads: whoever has those feeds them too, each event before it is due.
    What is told of a message while it is written is said at once, and the event that follows adds what is missing.
    """

    def __init__(self, mint: Mint) -> None:
        self._mint = mint
        self._begin()

    def _begin(self) -> None:
        self._turn = HeardTurn(self._mint)
        self._had: set[str] = set()

    @property
    def paused(self) -> bool:
        return self._turn.paused

    @property
    def over(self) -> bool:
        """Whether the turn has ended, and the next has not begun."""
        return self._turn.over

    def answered(self) -> None:
        """The answers are on their way: the server does not wait any more."""
        self._turn.paused = False

    def interrupted(self) -> None:
        """The line was cut, and is taken up again after the last event that was whole."""
        for voice in self._turn.threads.voices.values():
            voice.interrupted()

    def feed(self, frame: Frame) -> list[Heard]:
        if not isinstance(frame.body, dict):
            raise BackendFailed("the upstream sent an event that is no object")
        kind = type_of(frame)
        told, step = Told(kind, event_id_of(frame), frame.body), STEPS.get(kind)
        if kind in PREVIEWS:
            return self._previewed(told)
        if step is None or told.id in self._had:
            return []
        if self._turn.over:
            if kind not in OPENING:
                return []
            if kind in BEGINNING:
                self._begin()
        turn = self._turn
        self._had |= {told.id} if told.id else set()
        turn.paused = turn.paused and kind in STILL
        return [*([] if kind in ENDING else turn.mentioned()), *step(turn, told)]

    def _previewed(self, told: Told) -> list[Heard]:
        turn, voice = self._turn, self._turn.threads.voice(told)
        if turn.over or voice.over:
            return []
        turn.paused = False
        return [*PREVIEWS[told.type](voice, told)]

    def end(self) -> list[Heard]:
        return [] if self._turn.over else self._turn.close(Outcome.COMPLETED, StopReason.END_TURN)
