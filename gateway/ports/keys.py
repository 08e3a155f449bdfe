"""Who asks: the user, what they showed to come in, and whether they may change the server for everybody."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

ANONYMOUS = ""
"""The user where nobody has to say who they are; the owner of everything there."""
CallerRole = Literal["user", "admin"]


class Caller(Struct, frozen=True, kw_only=True):
    """One who was let in. Sessions and resources belong to the `user`, whatever they showed."""

    user: str = ANONYMOUS
    credential: str = ""
    """What they showed, as it can be known again: the hash of a key or of a token; "" where nothing is asked for."""
    key: str = ""
    """What the credential is called: the name of a key, or the issuer of a token."""
    address: str = ""
    role: CallerRole = "user"
    expires: float | None = None
    """When the credential ceases to be good, in seconds since 1970."""

    @property
    def is_admin(self) -> bool:
        return self.role == "admin"


KEY_PREFIX = "dgm_"


class KeyUse(msgspec.Struct, frozen=True):
    """When a key was used last, in seconds since 1970, and from which address."""

    at: float
    address: str = ""


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One key as it is stored.

    A plain SHA-256 is enough: what it hides is 256 random bits, which nobody can try out. Salt and a slow hash are for
    passwords, which people choose, and would make every request pay.
    """

    name: str
    user: str
    hash: str
    created: datetime
    label: str = ""
    """What its user calls it, where that is not its name; several keys may be called the same."""
    masked: str = f"{KEY_PREFIX}..."
    used: datetime | None = None
    used_from: str = ""
    parent: str = ""
    """The hash of the key that made this one; the key is removed with its parent."""
    is_carried: bool = False
    """Whether it comes from a file of keys. If such a key is removed, its hash stays, so that no second file brings the
    key back."""
    is_removed: bool = False

    @property
    def key_id(self) -> str:
        return f"key_{self.hash[:24]}"

    @property
    def opens(self) -> bool:
        """Whether somebody can come in with it; a key that nobody made (under `auth: none`) opens nothing."""
        return bool(self.user) and not self.is_removed


class KeyChange(msgspec.Struct, frozen=True):
    """What is stored, and what is removed, in one step."""

    put: tuple[Key, ...] = ()
    remove: tuple[Key, ...] = ()


Keys = Sequence[Key]


class KeyTable(Protocol):
    """Where keys are stored, for callers that may wait; a version counts the changes."""

    def load(self) -> tuple[int, Keys]: ...
    def change(self, version: int, change: KeyChange) -> bool:
        """Store a change of the keys of that version; False if they have changed meanwhile."""
    def close(self) -> None:
        """Let go of the store until the next call."""


Audit = Callable[[str, Caller | None, str], None]
"""(event, who did it, to what)."""


class AsyncKeyTable(Protocol):
    """Where keys are stored; `version` counts the changes, but not the uses."""

    async def version(self) -> int: ...
    async def load(self) -> tuple[int, Keys]: ...
    async def change(self, version: int, change: KeyChange) -> bool: ...
    async def uses(self, hashes: Iterable[str]) -> dict[str, KeyUse]: ...
    async def touch(self, uses: Mapping[str, KeyUse]) -> None: ...
    async def close(self) -> None: ...


def with_use(key: Key, use: KeyUse | None) -> Key:
    """The key with its last use, if that is later than the one it has."""
    if use is None or not use.at or (key.used is not None and key.used.timestamp() >= use.at):
        return key
    return replace(key, used=datetime.fromtimestamp(use.at, UTC), used_from=use.address or "")


class IssuedKey(Protocol):
    """A key as its user may see it: without the key."""

    @property
    def key_id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def masked(self) -> str: ...
    @property
    def created(self) -> datetime: ...
    @property
    def used(self) -> datetime | None: ...
    @property
    def used_from(self) -> str:
        """The address of the last use; "" if there was none."""


class KeyRing(Protocol):
    """The keys that users make for themselves; other people's are not found."""

    async def issue(self, caller: Caller, label: str, prefix: str = ...) -> tuple[IssuedKey, str]:
        """A new key and its token, which can be seen this once."""
    async def of(self, user: str) -> Sequence[IssuedKey]: ...
    async def find(self, user: str, key_id: str) -> IssuedKey: ...
    async def relabel(self, caller: Caller, key_id: str, label: str) -> IssuedKey: ...
    async def revoke(self, caller: Caller, key_id: str) -> None:
        """From now on the key opens nothing, nor do those that were made by it."""
