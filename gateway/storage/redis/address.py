"""Where a Redis server is, as the settings write it; and how that may be told without its password."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from redis.asyncio.connection import AbstractConnection, Connection, parse_url

PREFIX = "dragoman"
FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")


@dataclass(frozen=True)
class Address:
    """A server, a database of it, and the word that every key there begins with."""

    url: str
    prefix: str
    shown: str

    @classmethod
    def read(cls, written: str, base: Path = Path()) -> "Address":
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
