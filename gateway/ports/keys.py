"""Callers and keys: who sends a request, with which credential, and where keys are stored."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

ANONYMOUS = ""
"""The user and owner of everything where clients need no key."""
CallerRole = Literal["user", "admin"]


class Caller(Struct, frozen=True, kw_only=True):
    """An authenticated caller. Sessions and resources belong to the `user`, whatever the credential is."""

    user: str = ANONYMOUS
    credential: str = ""
    """The hash of the key or of the token; "" where clients need none."""
    key: str = ""
    """The name of the key, or the issuer of the token."""
    address: str = ""
    role: CallerRole = "user"
    client: str = ""
    """The program of the caller, as it names itself."""
    tags: dict[str, str] = {}
    """The headers of the request that `route` looks at, by name in lower case."""
    expires: float | None = None
    """When the credential expires, in seconds since 1970."""

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
    """The name that its user has given it, which several keys may have."""
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
        """Whether the key is valid: it has a user, and it is not removed. The key of `auth: none` has no user."""
        return bool(self.user) and not self.is_removed


class KeyChange(msgspec.Struct, frozen=True):
    """What is stored, and what is removed, in one step."""

    put: tuple[Key, ...] = ()
    remove: tuple[Key, ...] = ()


Keys = Sequence[Key]


class KeyTable(Protocol):
    """Where keys are stored, for callers without an event loop; a version counts the changes."""

    def load(self) -> tuple[int, Keys]: ...
    def change(self, version: int, change: KeyChange) -> bool:
        """Store a change of the keys of that version; False if they have changed meanwhile."""
    def close(self) -> None:
        """Close the connection until the next call."""


Audit = Callable[[str, Caller | None, str], None]
"""(event, caller, target): writes a line of the audit log."""


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
    """The keys that users create for themselves; the keys of other users are not found."""

    async def issue(self, caller: Caller, label: str, prefix: str = ...) -> tuple[IssuedKey, str]:
        """Create a key; its token is shown only now."""
    async def of(self, user: str) -> Sequence[IssuedKey]: ...
    async def find(self, user: str, key_id: str) -> IssuedKey: ...
    async def relabel(self, caller: Caller, key_id: str, label: str) -> IssuedKey: ...
    async def revoke(self, caller: Caller, key_id: str) -> None:
        """Revoke the key, and the keys that were created with it."""
