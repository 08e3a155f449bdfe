"""How much each key may have at once, and how much it has: one tally of all that is counted by owner."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from gateway.errors import RateLimited

SYSTEM_OWNER = "house:"
"""Who keeps what is found without knowing whose it is; no user is called so, and no quota holds for it."""
RETRY_SOON_SECONDS, RETRY_LATER_SECONDS = 5.0, 60.0
"""After how many seconds to try again: what ends by itself, and what somebody has to delete first."""

QuotaName = Literal["turns", "streams", "sessions", "resources", "stored_bytes"]


class QuotaLimits(Protocol):
    """How much one key may have; None where that is not bounded."""

    @property
    def turns(self) -> int | None: ...
    @property
    def streams(self) -> int | None: ...
    @property
    def sessions(self) -> int | None: ...
    @property
    def resources(self) -> int | None: ...
    @property
    def stored_bytes(self) -> int | None: ...


@dataclass(frozen=True)
class NoLimits:
    """No quota at all."""

    turns: int | None = None
    streams: int | None = None
    sessions: int | None = None
    resources: int | None = None
    stored_bytes: int | None = None


@dataclass(slots=True)
class QuotaUsage:
    """What one key has just now."""

    turns: int = 0
    streams: int = 0
    sessions: int = 0
    resources: int = 0
    stored_bytes: int = 0


class QuotaSlot:
    """Room for one: taken before it is needed, and given back once."""

    __slots__ = ("_give_back", "is_open")

    def __init__(self, give_back: Callable[[], None]) -> None:
        self._give_back, self.is_open = give_back, True

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._give_back()

    def __enter__(self) -> "QuotaSlot":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


REFUSAL_TEXTS: dict[QuotaName, tuple[str, float]] = {
    "turns": ("as many of your turns run as may run at once ({most}); wait until one has ended", RETRY_SOON_SECONDS),
    "streams": ("you have {has} open streams, and may have {most} at once; close one", RETRY_SOON_SECONDS),
    "sessions": ("you have {has} sessions, and may have {most}; delete some", RETRY_LATER_SECONDS),
    "resources": (
        "you keep {has} resources and versions of them, and may keep {most}; delete some",
        RETRY_LATER_SECONDS,
    ),
    "stored_bytes": (
        "you store {has} bytes, and may store {most}; delete sessions, files or other resources",
        RETRY_LATER_SECONDS,
    ),
}


class Quotas:
    """Counts by owner, and refuses what goes beyond the quota.

    To check and to add are one step of the event loop where nothing is awaited in between, so that two who come at
    once do not both get the last place. Where several servers share a store, the store decides, and what it says is
    put here.
    """

    def __init__(
        self, quota: Callable[[], QuotaLimits] = NoLimits,
        count_refusal: Callable[[str, str], None] = lambda owner, counted: None,
    ) -> None:
        self.quota = quota
        self.by_owner: dict[str, QuotaUsage] = {}
        self._count_refusal = count_refusal

    def usage_of(self, owner: str) -> QuotaUsage:
        return self.by_owner.get(owner) or QuotaUsage()

    def add(
        self, owner: str, *, turns: int = 0, streams: int = 0, sessions: int = 0, resources: int = 0,
        stored_bytes: int = 0,
    ) -> None:
        kept = self.by_owner.get(owner)
        if kept is None:
            kept = self.by_owner[owner] = QuotaUsage()
        kept.turns += turns
        kept.streams += streams
        kept.sessions += sessions
        kept.resources += resources
        kept.stored_bytes += stored_bytes
        if not (kept.turns or kept.streams or kept.sessions or kept.resources or kept.stored_bytes):
            del self.by_owner[owner]

    def reserve_stream(self, owner: str) -> QuotaSlot:
        """Room for an open stream or socket; raises `RateLimited`."""
        self.check(owner, "streams")
        self.add(owner, streams=1)
        return QuotaSlot(lambda: self.add(owner, streams=-1))

    def set_usage(self, owner: str, counted: QuotaName, number: int) -> None:
        """So many there are, says the store that all servers share."""
        setattr(self.by_owner.setdefault(owner, QuotaUsage()), counted, number)

    def check(self, owner: str, counted: QuotaName, more: int = 1) -> None:
        """Refuse so many more if that is too much; raises `RateLimited`."""
        most = self.limit_of(owner, counted)
        if most is not None and getattr(self.usage_of(owner), counted) + more > most:
            raise self.limit_error(owner, counted)

    def limit_of(self, owner: str, counted: QuotaName) -> int | None:
        most: int | None = None if owner == SYSTEM_OWNER else getattr(self.quota(), counted)
        return most

    def limit_error(self, owner: str, counted: QuotaName) -> RateLimited:
        self._count_refusal(owner, counted)
        words, seconds = REFUSAL_TEXTS[counted]
        has, most = getattr(self.usage_of(owner), counted), self.limit_of(owner, counted)
        return RateLimited(
            words.format(has=has, most=most), retry_after=seconds, details={"retry_after": round(seconds)})
