"""Three replicas that can write to no disk share a Redis and a bucket; each is killed, and replaced by an empty one."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from tests.support.dialect_tables import DIALECTS
from tests.support.redis_server import redis_of_this_run
from tests.support.s3.server import BUCKET, s3_server
from tests.support.server_process import PATIENCE, PROGRAM

READ_ONLY = ["unshare", "--mount", "sh", "-c", 'mount -o remount,ro,bind / && exec "$@"', "sh"]
"""Runs a program in a mount namespace of its own, in which nothing can be written."""
CLOUD, STUDIO = "/api/v1/cloud", "/api"
ROUNDS = 3


class Replica:
    """A server with a read-only root and an empty data folder."""

    def __init__(self, folder: Path, settings: dict[str, Any], environ: dict[str, str]) -> None:
        self.data = folder / "data"
        self.data.mkdir(parents=True, mode=0o700)
        (folder / "config.yaml").write_text(yaml.safe_dump({**settings, "data": str(self.data)}))
        self.told = folder / "errors.txt"
        self._collector = subprocess.Popen(["tee", str(self.told)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.process = subprocess.Popen(
            [*READ_ONLY, *PROGRAM, "serve", "--config", str(folder / "config.yaml")], stdout=subprocess.PIPE,
            stderr=self._collector.stdin, text=True, env={**os.environ, **environ, "PYTHONUNBUFFERED": "1"})
        assert self.process.stdout is not None
        found = None
        while found is None:
            line = self.process.stdout.readline()
            assert line, f"the replica ended: {self.told.read_text()}"
            found = re.search(r"http://[\d.]+:\d+", line)
        self.address = found[0]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._collector.communicate(timeout=PATIENCE)

    def check_disk(self) -> None:
        """Nothing was written, and the audit log went where the log of the server goes."""
        assert '"event":"session.' in self.told.read_text()
        assert list(self.data.iterdir()) == []


class Fleet:
    """Three replicas, and what clients were told is stored."""

    def __init__(self, folder: Path, settings: dict[str, Any], environ: dict[str, str]) -> None:
        self._folder, self.settings, self._environ = folder, settings, environ
        self._made = 0
        self.replicas = [self._start() for _ in range(3)]
        self.files: dict[str, bytes] = {}
        self.sessions: dict[str, str] = {}
        """The text of a file of the workspace of each session, which is also what was said in the session."""

    def _start(self) -> Replica:
        self._made += 1
        return Replica(self._folder / f"replica-{self._made}", self.settings, self._environ)

    def replace(self, place: int) -> None:
        self.replicas[place].kill()
        self.replicas[place].check_disk()
        self.replicas[place] = self._start()

    def stop(self) -> None:
        for one in self.replicas:
            if one.process.poll() is None:
                one.kill()


@contextmanager
def fleet(folder: Path) -> Iterator[tuple[Fleet, Any]]:
    with s3_server() as server:
        environ = {**server.environ, "DRAGOMAN_SECRETS_KEY": "k" * 40}
        settings = {
            "port": 0, "log": f"{redis_of_this_run().url}?prefix={folder.name}", "files": f"s3://{BUCKET}/site",
            "auth": "keys", "audit": "/dev/stderr", "admins": ["ann"], "agents": {"demo": {"backend": "demo"}},
            "dialects": {name: {} for name in DIALECTS}, "limits": {"lease_seconds": 2},
        }
        running = Fleet(folder, settings, environ)
        try:
            yield running, server
        finally:
            running.stop()


def make_key(folder: Path, settings: dict[str, Any]) -> str:
    """A key, made at a machine of the operator."""
    (folder / "desk").mkdir()
    file = folder / "desk" / "config.yaml"
    file.write_text(yaml.safe_dump({**settings, "data": str(folder / "desk"), "audit": "audit.jsonl"}))
    done = subprocess.run([*PROGRAM, "keys", "add", "ann", "--config", str(file)], capture_output=True, text=True,
                          env={**os.environ, "DRAGOMAN_SECRETS_KEY": "k" * 40}, check=True)
    found = re.search(r"\bdrg_\w+|\b[A-Za-z]+_[A-Za-z0-9_-]{20,}", done.stdout)
    assert found, done.stdout
    return found[0]


async def ask(http: aiohttp.ClientSession, replica: Replica, method: str, path: str, status: int, **given: Any) -> Any:
    async with http.request(method, f"{replica.address}{path}", **given) as response:
        body = await response.read()
        assert response.status == status, (method, path, response.status, body)
        return await response.json() if response.content_type == "application/json" else body


async def add(http: aiohttp.ClientSession, fleet: Fleet, replica: Replica, words: str) -> None:
    """Store a file, a session with a turn, and a file in its workspace, through one replica."""
    content = f"file {words} ".encode() * 1000
    form = aiohttp.FormData()
    form.add_field("file", content, filename="n.txt", content_type="text/plain")
    made = await ask(http, replica, "POST", f"{CLOUD}/files", 201, data=form)
    fleet.files[made["id"]] = content
    session = (await ask(http, replica, "POST", "/aap/sessions", 201, json={"agent": {"name": "demo"}}))["sessionId"]
    turn = {"stream": "none", "messages": [{"role": "user", "content": words}]}
    assert words in str(await ask(http, replica, "POST", f"/aap/sessions/{session}/turns", 200, json=turn))
    await ask(http, replica, "PUT", f"{STUDIO}/sessions/{session}/files/a/b.txt", 200, json={"content": words})
    fleet.sessions[session] = words


async def check(http: aiohttp.ClientSession, fleet: Fleet, replica: Replica) -> None:
    """Everything that was stored is there, whole, at this replica."""
    for file_id, content in fleet.files.items():
        raw = {"Accept": "application/octet-stream"}
        assert await ask(http, replica, "GET", f"{CLOUD}/files/{file_id}/content", 200, headers=raw) == content
        link = (await ask(http, replica, "GET", f"{CLOUD}/files/{file_id}/content", 200))["url"]
        for other in fleet.replicas:
            path = link.removeprefix(replica.address)
            assert await ask(http, other, "GET", path, 200) == content, "a link of one replica holds at all"
    for session, words in fleet.sessions.items():
        assert await ask(http, replica, "GET", f"{STUDIO}/sessions/{session}/files/a/b.txt", 200) == words.encode()
        assert words in str(await ask(http, replica, "GET", f"/aap/sessions/{session}/history?type=full", 200))


async def test_replicas_without_a_disk_are_killed_and_replaced(tmp_path: Path) -> None:
    with fleet(tmp_path) as (running, server):
        key = make_key(tmp_path, running.settings)
        headers, timeout = {"Authorization": f"Bearer {key}"}, aiohttp.ClientTimeout(total=PATIENCE)
        async with aiohttp.ClientSession(headers=headers, timeout=timeout) as http:
            for round_ in range(ROUNDS):
                for place, replica in enumerate(running.replicas):
                    await add(http, running, replica, f"words {round_} {place}")
                running.replace(round_)
                for replica in running.replicas:
                    await check(http, running, replica)
            assert len(server.objects()) == len(running.files) + len(running.sessions)
            for place, session in enumerate(running.sessions):
                await ask(http, running.replicas[place % 3], "DELETE", f"{STUDIO}/sessions/{session}", 200)
            for file_id in running.files:
                await ask(http, running.replicas[0], "DELETE", f"{CLOUD}/files/{file_id}", 200)
            assert server.objects() == {}
        running.stop()
        for replica in running.replicas:
            replica.check_disk()


def test_without_a_common_key_no_replica_starts(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({
        "log": "redis://127.0.0.1:1/0", "files": "s3://agents", "agents": {"demo": {"backend": "demo"}},
        "dialects": {DIALECTS[0]: {}}}))
    command = [*PROGRAM, "check", "--config", str(tmp_path / "config.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "DRAGOMAN_SECRETS_KEY" in done.stdout + done.stderr
