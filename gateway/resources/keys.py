"""Keys: who may come in, and as whom. A key is shown once; what is kept cannot be turned back into it."""

import fcntl
import hmac
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import msgspec
import structlog
from msgspec.structs import replace

from gateway.errors import Conflict, Invalid, NotFound
from gateway.marks import Place, Problem, Problems, nearest
from gateway.private_files import make_folder

FILE = "keys.json"
PREFIX = "dgm_"
NAME = re.compile(r"[\w.@+-]{1,128}")
MOST = 100
"""How many keys a user may make for themselves."""

log = structlog.get_logger("dragoman.keys")


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One key as it is kept.

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

    @property
    def key_id(self) -> str:
        return _id_of(self.hash)


class KeyFile(msgspec.Struct, frozen=True, kw_only=True):
    version: int = 1
    keys: tuple[Key, ...] = ()


Keys = list[Key]


class KeyStore:
    """The keys of one data folder; a running server sees at once what `dragoman keys` has changed."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        self._stamp: tuple[int, ...] = ()
        self._by_hash: dict[str, Key] = {}
        self._used: dict[str, datetime] = {}

    def add(self, name: str, user: str | None = None) -> str:
        """Make a key and return it: the only time it can be seen. Without a user, the key's name is the user's."""
        for word in (name, user or name):
            if not NAME.fullmatch(word):
                raise Invalid(f"'{word}' is no name for a key or a user: use letters, digits and . @ + _ -")
        token = PREFIX + secrets.token_urlsafe(32)
        with self._changing() as keys:
            if any(key.name == name for key in keys):
                raise Conflict(f"there is a key '{name}' already; remove it first, or choose another name")
            keys.append(_made(token, PREFIX, name=name, user=user or name))
        return token

    def remove(self, name: str) -> None:
        with self._changing() as keys:
            kept = [key for key in keys if key.name != name]
            if len(kept) == len(keys):
                hint = nearest(name, (key.name for key in keys))
                raise NotFound(f"there is no key '{name}'" + (f"; {hint}" if hint else ""))
            keys[:] = kept

    def list(self) -> tuple[Key, ...]:
        """In the order they were made."""
        return self._read()

    def verify(self, token: str) -> str | None:
        """The user that this key stands for, or None."""
        self._refresh()
        hashed = _hash(token)
        key = self._by_hash.get(hashed)
        # The dict compares hashes, of which a guesser can choose no part; comparing once more in constant time costs
        # nothing and leaves nothing to argue about.
        if key is None or not hmac.compare_digest(key.hash, hashed):
            return None
        self._used[hashed] = datetime.now(UTC)
        return key.user

    # -- a user's own ---------------------------------------------------------------------------------------------

    def issue(self, user: str, label: str, prefix: str = PREFIX) -> tuple[Key, str]:
        """A key that a user makes for themselves, and its token: the only time it can be seen."""
        token = prefix + secrets.token_urlsafe(32)
        made = _made(token, prefix, name=_id_of(_hash(token)), user=user, label=label)
        with self._changing() as keys:
            if sum(key.user == user for key in keys) >= MOST:
                raise Conflict(f"you have {MOST} keys already; delete one first")
            keys.append(made)
        return made, token

    def of(self, user: str) -> tuple[Key, ...]:
        """A user's keys in the order they were made, each with when it was last used."""
        return tuple(self._marked(key) for key in self._read() if key.user == user)

    def find(self, user: str, key_id: str) -> Key:
        found = next((key for key in self.of(user) if key.key_id == key_id), None)
        if found is None:
            raise NotFound(f"there is no key '{key_id}'")
        return found

    def relabel(self, user: str, key_id: str, label: str) -> Key:
        with self._changing() as keys:
            place = keys.index(self.find(user, key_id))
            keys[place] = replace(keys[place], label=label)
            return keys[place]

    def revoke(self, user: str, key_id: str) -> None:
        """From now on the key opens nothing."""
        with self._changing() as keys:
            keys.remove(self.find(user, key_id))

    def remember_use(self) -> None:
        """Write down when keys were used; while a server runs it knows by heart."""
        if self._used:
            with self._changing():
                pass

    def _marked(self, key: Key) -> Key:
        used = self._used.get(key.hash)
        return key if used is None or (key.used and key.used >= used) else replace(key, used=used)

    # -- the file -------------------------------------------------------------------------------------------------

    def _refresh(self) -> None:
        stamp = self._stamped()
        if stamp == self._stamp:
            return
        try:
            self._by_hash = {key.hash: key for key in self._read()}
        except Problems as problems:
            log.error("the keys were not read again; those from before stay in force", problems=str(problems))
        self._stamp = stamp

    def _stamped(self) -> tuple[int, ...]:
        try:
            stat = self._file.stat()
        except OSError:
            return (0,)
        return stat.st_mtime_ns, stat.st_size, stat.st_ino

    def _read(self) -> tuple[Key, ...]:
        try:
            return _decode(self._file.read_bytes()).keys
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise Problems([Problem(Place(str(self._file)), f"cannot be read: {error.strerror}")]) from None
        except msgspec.MsgspecError as error:
            hint = "mend it, or move it away and make new keys"
            raise Problems([Problem(Place(str(self._file)), f"is not a file of keys: {error}", hint)]) from None

    @contextmanager
    def _changing(self) -> Iterator[Keys]:
        """The keys, to be changed and written back; two that change them at once wait for each other."""
        make_folder(self._file.parent)
        folder = os.open(self._file.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            keys = [self._marked(key) for key in self._read()]
            yield keys
            _write(self._file, _encode(KeyFile(keys=tuple(keys))))
        finally:
            os.close(folder)


def _write(file: Path, content: bytes) -> None:
    """All or nothing, and for the owner's eyes only."""
    beside = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)


def _made(token: str, prefix: str, *, name: str, user: str, label: str = "") -> Key:
    return Key(
        name=name, user=user, hash=_hash(token), created=datetime.now(UTC), label=label,
        masked=f"{prefix}...{token[-4:]}",
    )


def _id_of(hashed: str) -> str:
    return f"key_{hashed[:24]}"


def _hash(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def _encode(content: KeyFile) -> bytes:
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


_decode = msgspec.json.Decoder(KeyFile).decode
