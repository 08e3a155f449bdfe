"""Quotas: how much each owner of keys may have, how much they have, and how often a limit refused them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol

from gateway.errors import RateLimited

SYSTEM_OWNER = "house:"
"""The owner of what is stored without a user. The value is stored, no user has this name, and no quota holds for it."""
RETRY_SOON_SECONDS, RETRY_LATER_SECONDS = 5.0, 60.0
"""Seconds for Retry-After: for what ends by itself, and for what somebody has to delete first."""

QuotaName = Literal["turns", "streams", "sessions", "resources", "stored_bytes"]


class QuotaLimits(Protocol):
    """The limits of one owner; None means no limit."""

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
    """Limits that refuse nothing."""

    turns: int | None = None
    streams: int | None = None
    sessions: int | None = None
    resources: int | None = None
    stored_bytes: int | None = None


@dataclass(slots=True)
class QuotaUsage:
    """What one owner has now."""

    turns: int = 0
    streams: int = 0
    sessions: int = 0
    resources: int = 0
    stored_bytes: int = 0


class QuotaSlot:
    """A reserved place that counts against a quota until it is closed; a second close does nothing."""

    __slots__ = ("_at_close", "is_open")

    def __init__(self, give_back: Callable[[], None]) -> None:
        self._at_close, self.is_open = [give_back], True

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call this, too, when the place is closed."""
        self._at_close.append(callback)

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            for callback in self._at_close:
                callback()

    def __enter__(self) -> "QuotaSlot":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


REFUSAL_TEXTS: dict[QuotaName, tuple[str, float]] = {
    "turns": ("you run {has} turns, and may run {most} at once; wait until one has ended", RETRY_SOON_SECONDS),
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


class LimitRefusals:
    """Counts the requests that were refused, by owner and limit."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, ...], int] = {}

    def count(self, owner: str, limit: str) -> None:
        self.counts[owner, limit] = self.counts.get((owner, limit), 0) + 1


class Quotas:
    """Counts what each owner has, and refuses what goes beyond the limits.

    Nothing is awaited between a check and the addition that follows it, so two concurrent requests never both get the
    last free place. If several servers share a store, the store decides, and `set_usage` takes over its numbers.
    """

    def __init__(
        self, quota: Callable[[], QuotaLimits] = NoLimits, refusals: LimitRefusals | None = None
    ) -> None:
        self.quota = quota
        self._refusals = LimitRefusals() if refusals is None else refusals
        self.by_owner: dict[str, QuotaUsage] = {}

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
        """Reserve a place for an open stream or socket; raises `RateLimited`."""
        self.check(owner, "streams")
        self.add(owner, streams=1)
        return QuotaSlot(partial(self.add, owner, streams=-1))

    def set_usage(self, owner: str, counted: QuotaName, number: int) -> None:
        """Take over a number from the store that all servers share."""
        setattr(self.by_owner.setdefault(owner, QuotaUsage()), counted, number)

    def check(self, owner: str, counted: QuotaName, more: int = 1) -> None:
        """Raise `RateLimited` if the owner may not have so many more."""
        most = None if owner == SYSTEM_OWNER else getattr(self.quota(), counted)
        if most is not None and getattr(self.usage_of(owner), counted) + more > most:
            raise self.limit_error(owner, counted)

    def limit_of(self, owner: str, counted: QuotaName) -> int | None:
        most: int | None = None if owner == SYSTEM_OWNER else getattr(self.quota(), counted)
        return most

    def limit_error(self, owner: str, counted: QuotaName) -> RateLimited:
        self._refusals.count(owner, counted)
        text, seconds = REFUSAL_TEXTS[counted]
        has, most = getattr(self.usage_of(owner), counted), self.limit_of(owner, counted)
        return RateLimited(
            text.format(has=has, most=most), retry_after=seconds, details={"retry_after": round(seconds)})


class StoreTally(Protocol):
    """Takes over what each owner has from a store that several servers share."""

    @property
    def quota(self) -> Callable[[], QuotaLimits]: ...
    @property
    def by_owner(self) -> dict[str, QuotaUsage]: ...
    def add(self, owner: str) -> None:
        """Forget the owner if the owner has nothing."""
    def set_usage(self, owner: str, counted: QuotaName, number: int) -> None: ...
    def limit_of(self, owner: str, counted: QuotaName) -> int | None: ...
    def limit_error(self, owner: str, counted: QuotaName) -> RateLimited: ...


class PartQuotas:
    """Takes over the numbers of one partition; the sum of all partitions is what the quotas hold the owner to.

    The numbers of other partitions may be some heartbeats old, so that servers which create at the same time may exceed
    a quota by what they create meanwhile.
    """

    def __init__(self, whole: Quotas) -> None:
        self._whole = whole
        self.quota, self.add, self.limit_error = whole.quota, whole.add, whole.limit_error
        self._here: dict[tuple[str, QuotaName], int] = {}

    @property
    def by_owner(self) -> dict[str, QuotaUsage]:
        return self._whole.by_owner

    def set_usage(self, owner: str, counted: QuotaName, number: int) -> None:
        """Take over how much the owner has in this partition."""
        elsewhere = self._elsewhere(owner, counted)
        self._here[owner, counted] = number
        self._whole.set_usage(owner, counted, elsewhere + number)

    def limit_of(self, owner: str, counted: QuotaName) -> int | None:
        """How much of it the owner may have in this partition."""
        most = self._whole.limit_of(owner, counted)
        return None if most is None else most - self._elsewhere(owner, counted)

    def _elsewhere(self, owner: str, counted: QuotaName) -> int:
        total: int = getattr(self._whole.usage_of(owner), counted)
        return max(0, total - self._here.get((owner, counted), 0))
