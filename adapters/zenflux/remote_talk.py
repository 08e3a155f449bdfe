"""One run that we began at a server, as far as it was heard: each event once, and nobody else's."""

from collections.abc import Awaitable, Callable
from typing import Any

from gateway.errors import BackendFailed, GatewayError, Overloaded
from gateway.ids import Mint
from gateway.upstream import Asked, Ended, Frame, Heard, Upstream

from .hearing import ZenfluxHearing, envelope_of, seq_of
from .hearing_asks import Ref, ref_of
from .hearing_words import members, text
from .remote_socket import Line

GRACE = 2.0
"""Seconds of silence after which we ask whether more is to come, where there may be no more."""
SOON = 0.1
"""The same where more is hardly to come, or where the server has to be told something again."""


class Lost(BackendFailed):
    """A run that was cut, and that the server cannot go on with; it may well go on there."""


class Talk:
    """Frames in, what was heard of them out."""

    def __init__(self, session_id: str, mint: Mint, upstream: Upstream, line: Line, *, run_id: str = "") -> None:
        self.session_id, self.run_id, self.line = session_id, run_id, line
        self.hearing = ZenfluxHearing(mint)
        self.seq = 0
        """The last event that was heard."""
        self.request_id = ""
        self.broken: GatewayError | None = None
        """Why the run had to be taken up again, while it is not known whether it can be."""
        self.stalls = 0
        """How often it was taken up again without hearing anything new."""
        self.silence, self.quiets = 0.0, 0
        self.owed: list[Callable[[], Awaitable[bool]]] = []
        """Answers to questions that the server did not know yet; each tells it again, and says whether it was taken."""
        self.before: str | None = None
        """The run before this one; None where that is not known."""
        self.over = False
        self.asked: list[Ref] = []
        self.expecting = False
        """The server has more questions than it was heard to ask."""
        self.had = 0
        """Events up to this one were heard by others, before us."""
        self.awaited: set[str] = set()
        """Requests that others have heard, and after which we begin to listen."""
        self._upstream = upstream

    @property
    def begun(self) -> bool:
        return bool(self.run_id)

    async def ask(self, method: str, **params: Any) -> None:
        self.request_id = await self.line.ask(method, **params)

    async def resume(self) -> None:
        """Go on after the last event that was heard."""
        await self.ask("session.resume", session_id=self.run_id, after_seq=self.seq)

    def rest(self) -> None:
        """Something was said: silence begins anew."""
        self.silence, self.quiets = 0.0, 0

    def grace(self, *, soon: bool) -> float:
        """Seconds until we ask, longer each time that nothing came of it."""
        return (SOON if soon else GRACE) * (1 << self.quiets)

    def take(self, body: Any) -> list[Heard]:
        if not isinstance(body, dict):
            raise BackendFailed(f"{self._upstream.name} sent a frame that is no object")
        if body.get("type") == "res":
            return self._answered(body)
        envelope = envelope_of(body)
        if envelope is None or not self._is_ours(envelope):
            return []
        seq = seq_of(body)
        if seq and seq <= self.seq:
            return []  # heard before the connection broke
        if seq:
            self.seq, self.stalls, self.broken = seq, 0, None
        return self._news(self.hearing.feed(Frame("", body)), seq)

    def _is_ours(self, envelope: dict[str, Any]) -> bool:
        conversation, run = text(envelope.get("conversation_id")), text(envelope.get("session_id"))
        if conversation and conversation != self.session_id:
            return False
        self.run_id = self.run_id or run
        return not run or run == self.run_id

    def conclude(self) -> list[Heard]:
        return self._news(self.hearing.conclude(), 0)

    def _news(self, heard: Any, seq: int) -> list[Heard]:
        """What others have heard before is taken note of, and not told again."""
        old = bool(self.awaited) or (0 < seq <= self.had)
        refs = [ref_of(one.ref) for one in heard if isinstance(one, Asked)]
        self.awaited -= {ref.request_id for ref in refs}
        self.over = any(isinstance(one, Ended) for one in heard)
        if old:
            return [one for one in heard if isinstance(one, Ended)]
        self.asked += refs
        return list(heard)

    # -- responses ------------------------------------------------------------------------------------------------

    def _answered(self, body: dict[str, Any]) -> list[Heard]:
        if body.get("id") != self.request_id:
            return []
        if body.get("ok") is not True:
            raise self._refusal(members(body.get("error")))
        payload = members(body.get("payload"))
        self.run_id, self.broken = self.run_id or text(payload.get("session_id")), None
        return []

    def _refusal(self, error: dict[str, Any]) -> GatewayError:
        code, said = text(error.get("code")) or "an error", text(error.get("message"))
        words = self._upstream.quoted(f"{code}{': ' + said if said else ''}".encode())
        if self.broken is not None:
            return Lost(f"{self.broken.message}; it cannot be taken up again ({words})")
        kind = Overloaded if code == "OVERLOADED" else BackendFailed
        return kind(f"{self._upstream.name} refused: {words}", details={"upstream_code": code})
