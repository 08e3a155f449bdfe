"""Where Redis is: one server, the sentinels that know which server is the primary, or the nodes of a Redis Cluster."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, parse_url

PREFIX = "dragoman"
FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
SENTINEL_SCHEMES = ("redis+sentinel", "rediss+sentinel")
CLUSTER_SCHEMES = ("redis+cluster", "rediss+cluster")
SENTINEL_PORT, NODE_PORT = 26379, 6379
PARTITIONS, MOST_PARTITIONS = 64, 1024
"""In how many partitions a cluster keeps its data by default, and at most."""
REPLICAS_TO_WAIT_FOR = 1
"""How many replicas must have a change behind sentinels or in a cluster, unless `?wait=` says another number."""

Place = tuple[str, int]
"""The host and the port of a server."""


@dataclass(frozen=True)
class RedisAddress:
    """A server, a group behind sentinels or a cluster; and the word that every key there begins with."""

    url: str
    prefix: str
    shown: str
    sentinels: tuple[Place, ...] = ()
    group: str = ""
    """The name that the sentinels know the primary by."""
    sentinel_login: tuple[str, str] = ("", "")
    wait: int = 0
    """How many replicas must have a change before anybody is told of it."""
    nodes: tuple[Place, ...] = ()
    """Some nodes of a cluster, which know all others."""
    partitions: int = 1
    """In how many parts the data are divided, each of which is in one slot of a cluster."""

    @classmethod
    def read(cls, written: str, base: Path = Path()) -> "RedisAddress":
        """From `redis://host:port/db?prefix=word`, `rediss://`, `unix://`, `redis+sentinel://h1,h2/name`, `redis+cluster://h1,h2`.

        Raises `ValueError`. Files that it names are seen from `base`.
        """
        parts = urlsplit(written)
        words = dict(parse_qsl(parts.query))
        prefix = f"{words.pop('prefix', PREFIX)}:"
        words |= {word: str(base / words[word]) for word in FILES if word in words}
        if parts.scheme in SENTINEL_SCHEMES:
            return cls._behind_sentinels(parts, words, prefix)
        if parts.scheme in CLUSTER_SCHEMES:
            return cls._of_cluster(parts, words, prefix)
        url = parts._replace(query=urlencode(words)).geturl()
        parse_url(url)
        place = parts.path if parts.scheme == "unix" else f"{parts.hostname}:{parts.port or 6379}{parts.path}"
        return cls(url, prefix, f"{parts.scheme}://{place}")

    @classmethod
    def _behind_sentinels(cls, parts: SplitResult, words: dict[str, str], prefix: str) -> "RedisAddress":
        login, sentinels = read_places(parts, SENTINEL_PORT)
        group = unquote(parts.path.strip("/"))
        sentinel_login = words.pop("sentinel_username", ""), words.pop("sentinel_password", "")
        wait = int(words.pop("wait", REPLICAS_TO_WAIT_FOR))
        scheme = parts.scheme.partition("+")[0]
        url = f"{scheme}://{login}primary?{urlencode(words)}"
        parse_url(url)
        shown = f"{parts.scheme}://{','.join(f'{host}:{port}' for host, port in sentinels)}/{group}"
        return cls(url, prefix, shown, sentinels, group, sentinel_login, wait)

    @classmethod
    def _of_cluster(cls, parts: SplitResult, words: dict[str, str], prefix: str) -> "RedisAddress":
        login, nodes = read_places(parts, NODE_PORT)
        if "{" in prefix:
            raise ValueError("the prefix of keys in a Redis Cluster has no braces")
        wait, partitions = int(words.pop("wait", REPLICAS_TO_WAIT_FOR)), int(words.pop("partitions", PARTITIONS))
        if parts.path.strip("/") or "db" in words:
            raise ValueError("a Redis Cluster has one database")
        if not 1 <= partitions <= MOST_PARTITIONS or partitions & (partitions - 1):
            raise ValueError(f"partitions is a power of two, {MOST_PARTITIONS} at most")
        url = f"{parts.scheme.partition('+')[0]}://{login}node?{urlencode(words)}"
        parse_url(url)
        shown = f"{parts.scheme}://{','.join(f'{host}:{port}' for host, port in nodes)}"
        return cls(url, prefix, shown, wait=wait, nodes=nodes, partitions=partitions)

    def connection(self, seconds: float, place: Place | None = None) -> AbstractConnection:
        """A connection that is not open yet; a reply has no timeout of its own: many are awaited at once."""
        options: dict[str, Any] = dict(parse_url(self.url))
        kind: type[AbstractConnection] = options.pop("connection_class", Connection)
        options |= {"socket_timeout": None, "socket_connect_timeout": seconds, "protocol": 2}
        if place is not None:
            options["host"], options["port"] = place
        return kind(**options)

    def sentinel_connection(self, seconds: float, place: Place) -> AbstractConnection:
        """A connection to a sentinel, which is not open yet; sentinels have users and passwords of their own."""
        options: dict[str, Any] = {
            word: value for word, value in dict(parse_url(self.url)).items()
            if word not in ("username", "password", "db", "connection_class")
        }
        user, password = self.sentinel_login
        options |= {"host": place[0], "port": place[1], "socket_timeout": seconds, "socket_connect_timeout": seconds,
                    "protocol": 2, "username": user or None, "password": password or None}
        kind: type[AbstractConnection] = SSLConnection if self.url.startswith("rediss") else Connection
        return kind(**options)


def read_places(parts: SplitResult, port: int) -> tuple[str, tuple[Place, ...]]:
    """The user and password before the servers, with their `@`, and the servers; raises `ValueError`."""
    login, at, hosts = parts.netloc.rpartition("@")
    places: list[Place] = []
    for written in hosts.split(","):
        one = urlsplit(f"//{written}")
        if not one.hostname or one.path:
            raise ValueError(f"'{written}' is not HOST or HOST:PORT")
        places.append((one.hostname, one.port or port))
    return login + at, tuple(places)
