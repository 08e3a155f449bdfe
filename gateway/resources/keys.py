"""Keys: who may come in, and as whom. A key is shown once; what is stored cannot be turned back into it."""

import hmac
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec
import structlog
from msgspec.structs import replace

from gateway.errors import Conflict, Invalid, NotFound
from gateway.marks import Place, Problem, Problems, nearest

FILE = "keys.json"
"""Where keys were stored before they were stored beside the log."""
CARRIED = "keys.json.carried-over"
PREFIX = "dgm_"
NAME = re.compile(r"[\w.@+-]{1,128}")
MOST = 100
"""How many keys a user may make for themselves."""

log = structlog.get_logger("dragoman.keys")
T = TypeVar("T")


class Use(msgspec.Struct, frozen=True):
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
    masked: str = f"{PREFIX}..."
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


class Change(msgspec.Struct, frozen=True):
    """What is stored, and what is removed, in one step."""

    put: tuple[Key, ...] = ()
    remove: tuple[Key, ...] = ()


Keys = Sequence[Key]
Rule = Callable[[Keys], tuple[Change, T]]
"""All keys there are → what is to change, and what the caller is told; raises if it may not be."""


class KeyTable(Protocol):
    """Where keys are stored, for callers that may wait; a version counts the changes."""

    def load(self) -> tuple[int, Keys]: ...
    def change(self, version: int, change: Change) -> bool:
        """Store a change of the keys of that version; False if they have changed meanwhile."""
    def close(self) -> None:
        """Let go of the store until the next call."""


# -- rules ------------------------------------------------------------------------------------------------------------

def added(name: str, user: str | None = None) -> Rule[tuple[Key, str]]:
    """A key that the operator makes, and its token. Without a user, the key's name is the user's."""
    for word in (name, user or name):
        if not NAME.fullmatch(word):
            raise Invalid(f"'{word}' is no name for a key or a user: use letters, digits and . @ + _ -")
    token = PREFIX + secrets.token_urlsafe(32)
    made = _made(token, PREFIX, name=name, user=user or name)

    def rule(keys: Keys) -> tuple[Change, tuple[Key, str]]:
        if any(key.name == name for key in shown(keys)):
            raise Conflict(f"there is a key '{name}' already; remove it first, or choose another name")
        return Change(put=(made,)), (made, token)

    return rule


def removed(name: str) -> Rule[Keys]:
    """The key of that name and all that were made by it."""
    def rule(keys: Keys) -> tuple[Change, Keys]:
        found = next((key for key in shown(keys) if key.name == name), None)
        if found is None:
            hint = nearest(name, (key.name for key in shown(keys)))
            raise NotFound(f"there is no key '{name}'" + (f"; {hint}" if hint else ""))
        return _removing(keys, found)

    return rule


def issued(user: str, label: str, prefix: str = PREFIX, parent: str = "") -> Rule[tuple[Key, str]]:
    """A key that a user makes for themselves, and its token; `parent` is the hash of the key that they showed."""
    token = prefix + secrets.token_urlsafe(32)
    made = replace(_made(token, prefix, name="", user=user), label=label, parent=parent)
    made = replace(made, name=made.key_id)

    def rule(keys: Keys) -> tuple[Change, tuple[Key, str]]:
        if sum(key.user == user for key in shown(keys)) >= MOST:
            raise Conflict(f"you have {MOST} keys already; delete one first")
        return Change(put=(made,)), (made, token)

    return rule


def relabelled(user: str, key_id: str, label: str) -> Rule[Key]:
    def rule(keys: Keys) -> tuple[Change, Key]:
        changed = replace(found(keys, user, key_id), label=label)
        return Change(put=(changed,)), changed

    return rule


def revoked(user: str, key_id: str) -> Rule[Keys]:
    """A user's own key and all that were made by it."""
    return lambda keys: _removing(keys, found(keys, user, key_id))


def carried(old: Keys) -> Rule[int]:
    """The keys of a file, except those that are stored already or were removed."""
    def rule(keys: Keys) -> tuple[Change, int]:
        known = {key.hash for key in keys}
        put = tuple(replace(key, is_carried=True) for key in old if key.hash not in known)
        return Change(put=put), len(put)

    return rule


def shown(keys: Iterable[Key]) -> tuple[Key, ...]:
    """In the order they were made."""
    return tuple(sorted((key for key in keys if not key.is_removed), key=lambda key: (key.created, key.hash)))


def found(keys: Keys, user: str, key_id: str) -> Key:
    """Other people's keys are not found."""
    one = next((key for key in keys if key.key_id == key_id and key.user == user and not key.is_removed), None)
    if one is None:
        raise NotFound(f"there is no key '{key_id}'")
    return one


def _removing(keys: Keys, first: Key) -> tuple[Change, Keys]:
    gone = [first]
    for one in gone:  # it grows meanwhile: what was made by a key, and what was made by that
        gone += [key for key in shown(keys) if key.parent == one.hash]
    kept = tuple(replace(key, is_removed=True) for key in gone if key.is_carried)
    return Change(put=kept, remove=tuple(key for key in gone if not key.is_carried)), gone


def _made(token: str, prefix: str, *, name: str, user: str) -> Key:
    return Key(
        name=name, user=user, hash=hash_of(token), created=datetime.now(UTC), masked=f"{prefix}...{token[-4:]}",
    )


def hash_of(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def fits(key: Key, hashed: str) -> bool:
    """A dict has compared hashes, of which a guesser can choose no part; comparing once more in constant time costs
    nothing and leaves nothing to argue about."""
    return key.opens and hmac.compare_digest(key.hash, hashed)


# -- without an event loop --------------------------------------------------------------------------------------------

class KeyStore:
    """The keys of one table, for commands; a running server sees what they have changed."""

    def __init__(self, place: "Path | KeyTable", folder: Path | None = None) -> None:
        """`place` is a data folder or a table; a file of keys in the folder is carried over into the table."""
        from .key_tables import SqliteKeyTable

        self._table = SqliteKeyTable(place / "dragoman.db") if isinstance(place, Path) else place
        self._folder = place if isinstance(place, Path) else folder

    def add(self, name: str, user: str | None = None) -> str:
        """Make a key and return it: the only time it can be seen. Without a user, the key's name is the user's."""
        return self._changed(added(name, user))[1]

    def remove(self, name: str) -> Keys:
        """The key and those that were made by it, which are removed with it."""
        return self._changed(removed(name))

    def list(self) -> tuple[Key, ...]:
        """In the order they were made."""
        self._carry_over()
        try:
            return shown(self._table.load()[1])
        finally:
            self._table.close()

    def verify(self, token: str) -> str | None:
        """The user that this key stands for, or None."""
        hashed = hash_of(token)
        return next((key.user for key in self.list() if key.hash == hashed and fits(key, hashed)), None)

    def _changed(self, rule: Rule[T]) -> T:
        self._carry_over()
        return self._commit(rule)

    def _commit(self, rule: Rule[T]) -> T:
        try:
            while True:
                version, keys = self._table.load()
                change, told = rule(keys)
                if self._table.change(version, change):
                    return told
        finally:
            self._table.close()

    def _carry_over(self) -> None:
        if self._folder is not None and (old := read_file(self._folder)) is not None:
            put_away(self._folder, self._commit(carried(old)))


# -- the file of before -----------------------------------------------------------------------------------------------

class KeyFile(msgspec.Struct, frozen=True, kw_only=True):
    version: int = 1
    keys: tuple[Key, ...] = ()


def read_file(folder: Path) -> Keys | None:
    """The keys of the file in the folder; None if there is no file. Raises `Problems` if it cannot be read."""
    file = folder / FILE
    try:
        return _decode(file.read_bytes()).keys
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Problems([Problem(Place(str(file)), f"cannot be read: {error.strerror}")]) from None
    except msgspec.MsgspecError as error:
        hint = "mend it, or move it away and make new keys"
        raise Problems([Problem(Place(str(file)), f"is not a file of keys: {error}", hint)]) from None


def put_away(folder: Path, count: int) -> None:
    """The keys of the file are stored beside the log from now on; the file is not read again."""
    try:
        (folder / FILE).replace(folder / CARRIED)
    except FileNotFoundError:
        return  # another server of the same folder was quicker
    except OSError as error:
        log.warning("keys_file_not_renamed", file=str(folder / FILE), error=error.strerror)
    log.info("keys_carried_over", file=str(folder / FILE), keys=count, renamed_to=CARRIED)


_decode = msgspec.json.Decoder(KeyFile).decode
