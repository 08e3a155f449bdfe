"""Keys: the rules by which keys are created, removed and verified; only the hash of a key is stored."""

import hmac
import re
import secrets
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import msgspec
import structlog
from msgspec.structs import replace

from gateway.errors import Conflict, Invalid, NotFound
from gateway.ports import KEY_PREFIX, Key, KeyChange, Keys, KeyTable
from gateway.yaml_positions import Position, Problem, Problems, suggest

FILE = "keys.json"
"""The file in which older versions stored keys."""
CARRIED = "keys.json.carried-over"
NAME = re.compile(r"[\w.@+-]{1,128}")
MAX_KEYS = 100
"""How many keys a user may create."""

log = structlog.get_logger("dragoman.keys")
T = TypeVar("T")
KeyRule = Callable[[Keys], tuple[KeyChange, T]]
"""All keys → the change, and what the caller gets; raises if the change is not allowed."""


# -- rules ------------------------------------------------------------------------------------------------------------

def add_key(name: str, user: str | None = None) -> KeyRule[tuple[Key, str]]:
    """The operator creates a key for a user, whose name is by default the name of the key."""
    for word in (name, user or name):
        if not NAME.fullmatch(word):
            raise Invalid(f"'{word}' is not a name for a key or a user: use letters, digits and . @ + _ -")
    token = KEY_PREFIX + secrets.token_urlsafe(32)
    made = _made(token, KEY_PREFIX, name=name, user=user or name)

    def rule(keys: Keys) -> tuple[KeyChange, tuple[Key, str]]:
        if any(key.name == name for key in visible_keys(keys)):
            raise Conflict(f"there is a key '{name}' already; remove it first, or choose another name")
        return KeyChange(put=(made,)), (made, token)

    return rule


def remove_key(name: str) -> KeyRule[Keys]:
    """The operator removes the key of that name, and all keys that were created with it."""
    def rule(keys: Keys) -> tuple[KeyChange, Keys]:
        found = next((key for key in visible_keys(keys) if key.name == name), None)
        if found is None:
            hint = suggest(name, (key.name for key in visible_keys(keys)))
            raise NotFound(f"there is no key '{name}'" + (f"; {hint}" if hint else ""))
        return _removing(keys, found)

    return rule


def issue_key(user: str, label: str, prefix: str = KEY_PREFIX, parent: str = "") -> KeyRule[tuple[Key, str]]:
    """A user creates a key; `parent` is the hash of the key of the request."""
    token = prefix + secrets.token_urlsafe(32)
    made = replace(_made(token, prefix, name="", user=user), label=label, parent=parent)
    made = replace(made, name=made.key_id)

    def rule(keys: Keys) -> tuple[KeyChange, tuple[Key, str]]:
        if sum(key.user == user for key in visible_keys(keys)) >= MAX_KEYS:
            raise Conflict(f"you have {MAX_KEYS} keys already; delete one first")
        return KeyChange(put=(made,)), (made, token)

    return rule


def relabel_key(user: str, key_id: str, label: str) -> KeyRule[Key]:
    def rule(keys: Keys) -> tuple[KeyChange, Key]:
        changed = replace(found(keys, user, key_id), label=label)
        return KeyChange(put=(changed,)), changed

    return rule


def revoke_key(user: str, key_id: str) -> KeyRule[Keys]:
    """A user removes a key, and all keys that were created with it."""
    return lambda keys: _removing(keys, found(keys, user, key_id))


def import_keys(old: Keys) -> KeyRule[int]:
    """The keys of a file, except those that are stored already or were removed."""
    def rule(keys: Keys) -> tuple[KeyChange, int]:
        known = {key.hash for key in keys}
        put = tuple(replace(key, is_carried=True) for key in old if key.hash not in known)
        return KeyChange(put=put), len(put)

    return rule


def visible_keys(keys: Iterable[Key]) -> tuple[Key, ...]:
    """In the order they were made."""
    return tuple(sorted((key for key in keys if not key.is_removed), key=lambda key: (key.created, key.hash)))


def found(keys: Keys, user: str, key_id: str) -> Key:
    """The key of this user; the keys of other users are not found."""
    one = next((key for key in keys if key.key_id == key_id and key.user == user and not key.is_removed), None)
    if one is None:
        raise NotFound(f"there is no key '{key_id}'")
    return one


def _removing(keys: Keys, first: Key) -> tuple[KeyChange, Keys]:
    gone = [first]
    for one in gone:  # the list grows: keys that were created with a key are removed with it
        gone += [key for key in visible_keys(keys) if key.parent == one.hash]
    kept = tuple(replace(key, is_removed=True) for key in gone if key.is_carried)
    return KeyChange(put=kept, remove=tuple(key for key in gone if not key.is_carried)), gone


def _made(token: str, prefix: str, *, name: str, user: str) -> Key:
    return Key(
        name=name, user=user, hash=hash_token(token), created=datetime.now(UTC), masked=f"{prefix}...{token[-4:]}",
    )


def hash_token(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def key_matches(key: Key, hashed: str) -> bool:
    """Whether the key is valid and has this hash. The comparison takes constant time, though the look-up of the key by
    its hash, which came first, does not."""
    return key.opens and hmac.compare_digest(key.hash, hashed)


# -- without an event loop --------------------------------------------------------------------------------------------

class KeyStore:
    """The keys of one table, for the CLI; a running server sees the changes."""

    def __init__(self, table: KeyTable, folder: Path) -> None:
        """A file of keys in the data folder, as older versions wrote it, is carried over into the table."""
        self._table = table
        self._folder = folder

    def add(self, name: str, user: str | None = None) -> str:
        """Create a key and return its token, which is shown only now."""
        return self._changed(add_key(name, user))[1]

    def remove(self, name: str) -> Keys:
        """Remove a key and the keys that were created with it; return all of them."""
        return self._changed(remove_key(name))

    def list(self) -> tuple[Key, ...]:
        """In the order they were made."""
        self._carry_over()
        try:
            return visible_keys(self._table.load()[1])
        finally:
            self._table.close()

    def verify(self, token: str) -> str | None:
        """The user of this key, or None."""
        hashed = hash_token(token)
        return next((key.user for key in self.list() if key.hash == hashed and key_matches(key, hashed)), None)

    def _changed(self, rule: KeyRule[T]) -> T:
        self._carry_over()
        return self._commit(rule)

    def _commit(self, rule: KeyRule[T]) -> T:
        try:
            while True:
                version, keys = self._table.load()
                change, result = rule(keys)
                if self._table.change(version, change):
                    return result
        finally:
            self._table.close()

    def _carry_over(self) -> None:
        if (old := read_key_file(self._folder)) is not None:
            retire_key_file(self._folder, self._commit(import_keys(old)))


# -- the file of before -----------------------------------------------------------------------------------------------

class KeyFile(msgspec.Struct, frozen=True, kw_only=True):
    version: int = 1
    keys: tuple[Key, ...] = ()


def read_key_file(folder: Path) -> Keys | None:
    """The keys of the file in the folder; None if there is no file. Raises `Problems` if it cannot be read."""
    file = folder / FILE
    try:
        return _decode(file.read_bytes()).keys
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Problems([Problem(Position(str(file)), f"cannot be read: {error.strerror}")]) from None
    except msgspec.MsgspecError as error:
        hint = "mend it, or move it away and make new keys"
        raise Problems([Problem(Position(str(file)), f"is not a file of keys: {error}", hint)]) from None


def retire_key_file(folder: Path, count: int) -> None:
    """The keys of the file are stored beside the log from now on; the file is not read again."""
    try:
        (folder / FILE).replace(folder / CARRIED)
    except FileNotFoundError:
        return  # another server of the same folder has renamed it
    except OSError as error:
        log.warning("keys_file_not_renamed", file=str(folder / FILE), error=error.strerror)
    log.info("keys_carried_over", file=str(folder / FILE), keys=count, renamed_to=CARRIED)


_decode = msgspec.json.Decoder(KeyFile).decode
