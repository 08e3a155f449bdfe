"""How much each key may have at once, and how much it has: one tally of all that is counted by owner."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from gateway.errors import RateLimited

HOUSE = "house:"
"""Who keeps what is found without knowing whose it is; no user is called so, and no quota holds for it."""
SOON, LATER = 5.0, 60.0
"""After how many seconds to try again: what ends by itself, and what somebody has to delete first."""

Counted = Literal["turns", "streams", "sessions", "resources", "stored_bytes"]


class Quota(Protocol):
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
class Unbounded:
    """No quota at all."""

    turns: int | None = None
    streams: int | None = None
    sessions: int | None = None
    resources: int | None = None
    stored_bytes: int | None = None


@dataclass(slots=True)
class Kept:
    """What one key has just now."""

    turns: int = 0
    streams: int = 0
    sessions: int = 0
    resources: int = 0
    stored_bytes: int = 0


class Place:
    """Room for one: taken before it is needed, and given back once."""

    __slots__ = ("_give_back", "is_open")

    def __init__(self, give_back: Callable[[], None]) -> None:
        self._give_back, self.is_open = give_back, True

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._give_back()

    def __enter__(self) -> "Place":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


WORDS: dict[Counted, tuple[str, float]] = {
    "turns": ("as many of your turns run as may run at once ({most}); wait until one has ended", SOON),
    "streams": ("you have {has} open streams, and may have {most} at once; close one", SOON),
    "sessions": ("you have {has} sessions, and may have {most}; delete some", LATER),
    "resources": ("you keep {has} resources and versions of them, and may keep {most}; delete some", LATER),
    "stored_bytes": (
        "you store {has} bytes, and may store {most}; delete sessions, files or other resources", LATER),
}


class Tally:
    """Counts by owner, and refuses what goes beyond the quota.

    To check and to add are one step of the event loop where nothing is awaited in between, so that two who come at
    once do not both get the last place. Where several servers share a store, the store decides, and what it says is
    put here.
    """

    def __init__(self, quota: Callable[[], Quota] = Unbounded) -> None:
        self.quota = quota
        self.by_owner: dict[str, Kept] = {}
        self.on_refusal: Callable[[str, str], None] = lambda owner, counted: None

    def of(self, owner: str) -> Kept:
        return self.by_owner.get(owner) or Kept()

    def add(
        self, owner: str, *, turns: int = 0, streams: int = 0, sessions: int = 0, resources: int = 0,
        stored_bytes: int = 0,
    ) -> None:
        kept = self.by_owner.get(owner)
        if kept is None:
            kept = self.by_owner[owner] = Kept()
        kept.turns += turns
        kept.streams += streams
        kept.sessions += sessions
        kept.resources += resources
        kept.stored_bytes += stored_bytes
        if not (kept.turns or kept.streams or kept.sessions or kept.resources or kept.stored_bytes):
            del self.by_owner[owner]

    def take_stream(self, owner: str) -> Place:
        """Room for an open stream or socket; raises `RateLimited`."""
        self.check(owner, "streams")
        self.add(owner, streams=1)
        return Place(lambda: self.add(owner, streams=-1))

    def put(self, owner: str, counted: Counted, number: int) -> None:
        """So many there are, says the store that all servers share."""
        setattr(self.by_owner.setdefault(owner, Kept()), counted, number)

    def check(self, owner: str, counted: Counted, more: int = 1) -> None:
        """Refuse so many more if that is too much; raises `RateLimited`."""
        most = self.most(owner, counted)
        if most is not None and getattr(self.of(owner), counted) + more > most:
            raise self.refusal(owner, counted)

    def most(self, owner: str, counted: Counted) -> int | None:
        most: int | None = None if owner == HOUSE else getattr(self.quota(), counted)
        return most

    def refusal(self, owner: str, counted: Counted) -> RateLimited:
        self.on_refusal(owner, counted)
        words, seconds = WORDS[counted]
        has, most = getattr(self.of(owner), counted), self.most(owner, counted)
        return RateLimited(
            words.format(has=has, most=most), retry_after=seconds, details={"retry_after": round(seconds)})
