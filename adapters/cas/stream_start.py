"""Where a stream without a cursor begins: at the newest turn that no stream has carried, or at what comes next."""

from collections.abc import Callable

from gateway.errors import Invalid
from gateway.model import SessionStatus, SessionView
from gateway.web import Context

WAYS = ("turn", "tail", "replay")
MOST = 100_000
"""How many streams' places are remembered; the oldest are forgotten first."""

Key = tuple[str, str | None]
"""A session and, where one thread of it is read, the thread's scope."""


class StreamStart:
    """Remembers how far the streams of each session have come; what was told before the server started is carried."""

    def __init__(self, house: Context) -> None:
        self._house = house
        self._carried: dict[Key, int] = {}

    async def after(self, view: SessionView, thread: str | None, said: str | None) -> int:
        """After which record a stream without a cursor begins; `said` is the client's own wish."""
        way = said or self._house.settings.stream_start
        if way not in WAYS:
            raise Invalid(f"stream_start: say 'turn', 'tail' or 'replay', not '{way[:64]}'", param="stream_start")
        if way == "replay":
            return 0
        if way == "tail" or not view.turn_starts or await self._is_carried(view, thread):
            return view.head
        carried = self._carried.get((view.session_id, thread), 0)
        return max((stop for stop in view.stops if stop < view.turn_starts[-1] or stop <= carried), default=0)

    async def _is_carried(self, view: SessionView, thread: str | None) -> bool:
        """Whether a stream has had the last turn up to its end or its pause, where it now is."""
        if view.status is SessionStatus.RUNNING or not view.stops:
            return False
        carried = self._carried.get((view.session_id, thread))
        if carried is not None:
            return carried >= view.stops[-1]
        if view.status is SessionStatus.SUSPENDED:
            return False
        last = await self._house.sessions.records(view.owner, view.session_id, view.stops[-1] - 1, 1)
        return bool(last) and last[0].at < self._house.started_at  # an end that is not stored yet was told just now

    def told(self, session_id: str, thread: str | None) -> Callable[[int], None]:
        """To be called with the number of the last record that a stream has carried."""
        key = session_id, thread

        def take(seq: int) -> None:
            self._carried[key] = max(seq, self._carried.pop(key, 0))
            if len(self._carried) > MOST:
                del self._carried[next(iter(self._carried))]

        return take
