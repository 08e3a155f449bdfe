"""The address of a Redis server, as the settings write it, and as it is shown without its password."""

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from redis.asyncio.connection import AbstractConnection, Connection, parse_url

from gateway.errors import Overloaded

PREFIX = "dragoman"
FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")


@dataclass(frozen=True)
class RedisAddress:
    """A server, a database of it, and the word that every key there begins with."""

    url: str
    prefix: str
    shown: str

    @classmethod
    def read(cls, written: str, base: Path = Path()) -> "RedisAddress":
        """From `redis://host:port/db?prefix=word`, also `rediss://` and `unix://`; raises `ValueError`.

        Files that it names are seen from `base`.
        """
        parts = urlsplit(written)
        words = dict(parse_qsl(parts.query))
        prefix = words.pop("prefix", PREFIX)
        words |= {word: str(base / words[word]) for word in FILES if word in words}
        url = parts._replace(query=urlencode(words)).geturl()
        parse_url(url)
        place = parts.path if parts.scheme == "unix" else f"{parts.hostname}:{parts.port or 6379}{parts.path}"
        return cls(url, f"{prefix}:", f"{parts.scheme}://{place}")

    def connection(self, seconds: float) -> AbstractConnection:
        """Not yet connected; no reply comes within a time of its own, so that many can be waited for at once."""
        options: dict[str, Any] = dict(parse_url(self.url))
        kind: type[AbstractConnection] = options.pop("connection_class", Connection)
        options |= {"socket_timeout": None, "socket_connect_timeout": seconds, "protocol": 2}
        return kind(**options)


UNTRUSTED = "its certificate is not trusted", "name the authority that signed it with `?ssl_ca_certs=FILE` in `log:`"
NO_TLS = "it does not speak TLS there", "write redis:// in `log:`, or the port where it does"
OURS = "if it wants a certificate of ours, name it with `?ssl_certfile=FILE&ssl_keyfile=FILE` in `log:`"
OF_TLS = {
    "CERTIFICATE_VERIFY_FAILED": UNTRUSTED,
    "NO_CERTIFICATE_OR_CRL_FOUND": ("ssl_ca_certs names a file that has none", "name a file in PEM format in `log:`"),
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": ("it wants a certificate of ours", OURS.partition(", ")[2]),
    "WRONG_VERSION_NUMBER": NO_TLS,
    "RECORD_LAYER_FAILURE": NO_TLS,
}
"""By the reason that the library gives: what is wrong, and what to do."""
LOST = ("reset by peer", "Connection lost", "closed by server")
WHEN_SILENT = "start it, or write redis:// in `log:` if it does not speak TLS there"
WHEN_LOST = {"redis": "if it speaks TLS there, write rediss:// in `log:`", "rediss": OURS}


class RedisUnreachable(Overloaded):
    """The server cannot be reached just now, or does not take what it is given."""

    hint = "start it, or name another server or log in `log:`"
    was_sent = False
    """Whether the server may have got the question, and done what it was asked for."""


def unreachable_error(shown: str, error: BaseException | str) -> RedisUnreachable:
    """The error for a server that cannot be reached; `shown` is its address without its password."""
    why, hint = (error, "") if isinstance(error, str) else _explain(error, shown.partition(":")[0])
    made = RedisUnreachable(f"Redis at {shown} cannot be reached: {why}")
    made.hint = hint or RedisUnreachable.hint
    return made


def _explain(error: BaseException, scheme: str) -> tuple[str, str]:
    for one in _chain(error):
        if isinstance(one, ssl.SSLError) and one.reason:
            return _of_tls(one)
    words = str(error).rstrip(".")
    if not words:
        return "it does not answer", WHEN_SILENT if scheme == "rediss" else ""
    return words, WHEN_LOST.get(scheme, "") if any(mark in words for mark in LOST) else ""


def _of_tls(error: ssl.SSLError) -> tuple[str, str]:
    reason = getattr(error, "verify_message", "").rstrip(".") or error.reason.replace("_", " ").lower()
    why, hint = OF_TLS.get(error.reason, ("TLS cannot be spoken with it", ""))
    if "mismatch" in reason:
        why, hint = "its certificate is for another name", "write the name that it was made for in `log:`"
    return f"{why} ({reason})", hint


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
