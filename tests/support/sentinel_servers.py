"""A primary, two replicas and three sentinels of a test's own, on free ports of loopback; real processes, real time."""

import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.free_ports import free_port
from tests.support.redis_server import HANG, SERVER, RedisServer

GROUP = "gateways"
GATEWAY, REPLICA, SENTINEL, PASSWORD = "default", "replica", "sentinel", "hush"
"""Gateways, replicas and sentinels are users of their own at a server, so that a server can refuse some of them."""
DOWN_AFTER_MS = 500
"""After how long without an answer a sentinel takes a server for dead."""
POLL_SECONDS = 0.05


class SentinelServers:
    """Servers by number, of which the first one begins as the primary; each is stopped, killed and started alone."""

    def __init__(self, folder: Path, *options: str, replicas: int = 2) -> None:
        self.folder = folder
        for user in (GATEWAY, REPLICA, SENTINEL):
            options += ("--user", user, "on", f">{PASSWORD}", "~*", "&*", "+@all")
        options += ("--masteruser", REPLICA, "--masterauth", PASSWORD)
        first = RedisServer(folder / "node0", None, *options)
        follow = ("--replicaof", "127.0.0.1", str(first.port))
        self.nodes = [first, *(
            RedisServer(folder / f"node{n + 1}", None, *options, *follow, "--repl-diskless-sync-delay", "0")
            for n in range(replicas))]
        self.ports = [free_port() for _ in range(3)]
        self._sentinels: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        return self.url_with(self.ports)

    @staticmethod
    def url_with(sentinels: Sequence[int]) -> str:
        places = ",".join(f"127.0.0.1:{port}" for port in sentinels)
        return f"redis+sentinel://{GATEWAY}:{PASSWORD}@{places}/{GROUP}"

    def start(self) -> None:
        for node in self.nodes:
            node.start()
        self.wait(self._replicas_follow, "the replicas do not follow the primary")
        for port in self.ports:
            home = self.folder / f"sentinel{port}"
            home.mkdir(parents=True)
            (home / "sentinel.conf").write_text(
                f"port {port}\nbind 127.0.0.1\ndir {home}\n"
                f"sentinel monitor {GROUP} 127.0.0.1 {self.nodes[0].port} 2\n"
                f"sentinel auth-user {GROUP} {SENTINEL}\nsentinel auth-pass {GROUP} {PASSWORD}\n"
                f"sentinel down-after-milliseconds {GROUP} {DOWN_AFTER_MS}\n"
                f"sentinel failover-timeout {GROUP} 3000\n")
            assert SERVER is not None
            self._sentinels.append(subprocess.Popen(
                [SERVER, str(home / "sentinel.conf"), "--sentinel"],
                stdout=(home / "log").open("wb"), stderr=subprocess.STDOUT))
        self.wait(self._sentinels_agree, "the sentinels do not find each other")

    def _replicas_follow(self) -> bool:
        return len(ask(self.nodes[0].port, "ROLE", user=GATEWAY)[2]) == len(self.nodes) - 1

    def _sentinels_agree(self) -> bool:
        for port in self.ports:
            known = self._as_known(port)
            if (known.get(b"num-slaves"), known.get(b"num-other-sentinels")) != (b"%d" % (len(self.nodes) - 1), b"2"):
                return False
        return True

    def _as_known(self, port: int) -> dict[bytes, bytes]:
        found = ask(port, "SENTINEL", "MASTER", GROUP)
        return dict(zip(found[::2], found[1::2], strict=True))

    def primary(self, sentinel: int = 0) -> int:
        """The number of the primary, as a sentinel knows it."""
        port = int(ask(self.ports[sentinel], "SENTINEL", "GET-MASTER-ADDR-BY-NAME", GROUP)[1])
        return [node.port for node in self.nodes].index(port)

    def wait_failed_over(self, before: int, sentinel: int = 0) -> int:
        """Until another server is the primary, and takes writes; returns its number."""
        self.wait(lambda: self.primary(sentinel) != before, f"server {before} stays the primary")
        now = self.primary(sentinel)
        port = self.nodes[now].port
        self.wait(lambda: ask(port, "ROLE", user=GATEWAY)[0] == b"master", "the new primary is a replica")
        return now

    def wait_replicated(self, number: int) -> None:
        """Until the replicas have all that this server has."""
        ask(self.nodes[number].port, "WAIT", str(len(self.nodes) - 1), "10000", user=GATEWAY)

    def wait_follows(self, number: int) -> None:
        """Until this server is a replica that has all that the primary has."""
        def follows() -> bool:
            role = ask(self.nodes[number].port, "ROLE", user=GATEWAY)
            return role[0] == b"slave" and role[3] == b"connected"
        self.wait(follows, f"server {number} does not become a replica")

    # -- a network that is broken: replicas and sentinels have users of their own, which a server can refuse ---------

    def stop_replication(self, number: int) -> None:
        """Replicas get nothing from this server any more."""
        self._refuse(number, REPLICA)

    def cut_off(self, number: int) -> None:
        """Only the gateways that are connected to this server can talk to it."""
        self._refuse(number, REPLICA)
        self._refuse(number, SENTINEL)

    def _refuse(self, number: int, user: str) -> None:
        port = self.nodes[number].port
        ask(port, "ACL", "SETUSER", user, "off", user=GATEWAY)
        ask(port, "CLIENT", "KILL", "USER", user, user=GATEWAY)

    def reconnect(self, number: int) -> None:
        for user in (REPLICA, SENTINEL):
            ask(self.nodes[number].port, "ACL", "SETUSER", user, "on", user=GATEWAY)

    def pause_sentinel(self, number: int) -> None:
        self._sentinels[number].send_signal(signal.SIGSTOP)

    def resume_sentinel(self, number: int) -> None:
        self._sentinels[number].send_signal(signal.SIGCONT)

    def close(self) -> None:
        for sentinel in self._sentinels:
            sentinel.kill()
            sentinel.wait(HANG)
        for node in self.nodes:
            node.stop(kill=True)

    @staticmethod
    def wait(is_so: Any, otherwise: str) -> None:
        until = time.monotonic() + HANG
        while True:
            try:
                if is_so():
                    return
            except redis.ConnectionError:
                pass  # it is not up yet, or has hung up
            if time.monotonic() > until:
                pytest.fail(otherwise)
            time.sleep(POLL_SECONDS)


def ask(port: int, *words: str | bytes, user: str | None = None) -> Any:
    """One command, on a connection of its own; sentinels know no users."""
    connection = redis.Connection(
        port=port, protocol=2, socket_timeout=HANG, username=user, password=user and PASSWORD)
    try:
        connection.connect()
        connection.send_command(*words)
        return connection.read_response()
    finally:
        connection.disconnect()
