"""Seals secrets before they are stored, with a key that is stored apart from them."""

import os
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import structlog

from gateway.json_values import JsonObject, JsonValue
from gateway.private_files import make_private_folder

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

log = structlog.get_logger("dragoman.seal")

SEALED_PREFIX = "sealed:"
"""The beginning of every sealed value."""
FILE = "secrets.key"
"""The file with the key of a data folder; it is made with the first secret, and only its owner may read it."""
KEY_LOST = (
    "a secret was sealed with another key and is left out; name that key in `secrets_key:`, or give the secret again"
)


class Seal(Protocol):
    """Makes secrets unreadable for whoever finds them in a store, and readable again."""

    def seal(self, values: Mapping[str, object]) -> dict[str, Any]:
        """The values by their names, each of them sealed."""
    def unseal(self, values: Mapping[str, JsonValue]) -> JsonObject:
        """The values as they were given, without those whose key is unknown; values that are not sealed stay."""
    def seal_bytes(self, content: bytes) -> bytes: ...
    def unseal_bytes(self, content: bytes) -> bytes | None:
        """The bytes as they were given; None if their key is unknown."""


class FernetSeal:
    """Encrypts secrets. Of several keys the first encrypts, and each decrypts what it has encrypted."""

    def __init__(self, keys: Callable[[], Sequence[str]]) -> None:
        """`keys` is called once, with the first secret."""
        self._keys = keys
        self._lock = Lock()
        self._has_warned = False

    def seal(self, values: Mapping[str, object]) -> dict[str, Any]:
        return {name: SEALED_PREFIX + self._fernet.encrypt(msgspec.json.encode(value)).decode()
                for name, value in values.items()}

    def unseal(self, values: Mapping[str, Any]) -> dict[str, Any]:
        found = {name: self._opened(value) if is_sealed(value) else value for name, value in values.items()}
        return {name: value for name, value in found.items() if value is not _GONE}

    def seal_bytes(self, content: bytes) -> bytes:
        return SEALED_PREFIX.encode() + self._fernet.encrypt(content)

    def unseal_bytes(self, content: bytes) -> bytes | None:
        from cryptography.fernet import InvalidToken

        if not content.startswith(SEALED_PREFIX.encode()):
            return content
        try:
            return self._fernet.decrypt(content[len(SEALED_PREFIX):])
        except InvalidToken:
            self._warn()
            return None

    def _warn(self) -> None:
        """Warn once, however often the secret is read."""
        if not self._has_warned:
            self._has_warned = True
            log.warning("secret_key_unknown", advice=KEY_LOST)

    def _opened(self, value: str) -> object:
        content = self.unseal_bytes(value.encode())
        return _GONE if content is None else msgspec.json.decode(content)

    @property
    def _fernet(self) -> "MultiFernet":
        with self._lock:  # the log is written in one thread and read in another
            return self._made

    @cached_property
    def _made(self) -> "MultiFernet":
        from cryptography.fernet import Fernet, MultiFernet  # not before there is a secret: a start should be quick

        return MultiFernet([Fernet(urlsafe_b64encode(sha256(key.encode()).digest())) for key in self._keys()])


class NoSeal:
    """Leaves secrets as they are, for stores that never leave the process."""

    def seal(self, values: Mapping[str, object]) -> dict[str, Any]:
        return dict(values)

    unseal = seal

    def seal_bytes(self, content: bytes) -> bytes:
        return content

    unseal_bytes = seal_bytes


UNSEALED: Seal = NoSeal()
_GONE = object()


def is_sealed(value: object) -> bool:
    return isinstance(value, str) and value.startswith(SEALED_PREFIX)


def load_or_create_key(folder: Path) -> str:
    """The key of a data folder, which is made if there is none; servers that share the folder share the key."""
    file = folder / FILE
    if not file.exists():
        make_private_folder(folder)
        beside = folder / f".{FILE}.{secrets.token_hex(6)}"
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as new:
            new.write(secrets.token_urlsafe(48))
        try:
            os.link(beside, file)
        except FileExistsError:
            pass  # another server has made the key
        finally:
            beside.unlink()
    return file.read_text().strip()
