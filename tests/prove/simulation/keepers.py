"""Users of a world who keep things that are no sessions: files in all dialects that have them, and schedules.

A file that was accepted is there with its bytes, whoever died since, until it is deleted; a schedule starts one run for
each minute that has come, and no run twice.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

import aiohttp

from tests.prove.crash.client_base import CrashRun
from tests.prove.crash.history import Kind
from tests.prove.simulation.loop import EPOCH
from tests.prove.simulation.users import AAP, BLADE, CAS, GONE, NOT_FOUND, REFUSED, TRIES, UNKNOWN, RestClient

CAS_FILES, ZENFLUX_FILES, TASKS = "/api/v1/cloud/files", "/api/v1/files", "/api/scheduled-tasks"
BYTES = {"Accept": "application/octet-stream"}
MINUTE, START_SECONDS = 60.0, 10.0
"""Tasks are due at full minutes; when nothing is wrong, a run begins within so many seconds."""


class Kept(NamedTuple):
    """Something that a server has accepted."""

    content: bytes
    paths: tuple[str, ...]
    """Where it can be read."""
    at: float


class Keeper:
    """One tenant's program that uploads, reads and deletes files, and makes and deletes schedules."""

    def __init__(self, world: CrashRun, tenant: str, random: Random, is_lost: Callable[[float], bool]) -> None:
        self.rest = RestClient(world, tenant)
        self.tenant = tenant
        self.files: dict[str, Kept] = {}
        """Files that were accepted, and that nobody has tried to delete."""
        self.deleted: dict[str, Kept] = {}
        """Files whose deletion was acknowledged."""
        self.tasks: dict[str, float] = {}
        """Schedules that were accepted, and when."""
        self.deleted_tasks: dict[str, None] = {}
        self._random = random
        self._is_lost = is_lost
        """Whether something that was accepted then may be lost, by the promises."""
        self._session = ""

    async def live(self) -> None:
        works = (
            self.upload_cas, self.upload_cas, self.upload_zenflux, self.write_workspace, self.read_file,
            self.read_deleted, self.delete_file, self.list_files, self.make_task, self.read_task, self.delete_task,
        )
        with suppress(*GONE):
            await self.make_task()
        while True:
            with suppress(*GONE):
                await self._random.choice(works)()
            await asyncio.sleep(self._random.uniform(0.05, self.rest.world.thinking / 8))

    def _content(self) -> tuple[str, bytes]:
        word = f"u{next(self.rest.world.numbers)}"
        return f"{word}.txt", word.encode() + b" " + self._random.randbytes(self._random.choice((10, 3000, 200_000)))

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    # -- files ------------------------------------------------------------------------------------------------------

    async def upload_cas(self) -> None:
        """Under an idempotency key the upload is repeated until somebody answers; it is stored once."""
        name, content = self._content()
        headers = {"Idempotency-Key": f"key-{name}"} if self._random.random() < 0.5 else {}
        for _ in range(TRIES if headers else 1):
            with suppress(*GONE):
                async with asyncio.timeout(self._random.choice((0.3, 60.0))):
                    status, made = await self._upload(CAS_FILES, name, content, headers)
                if status == 201:
                    path = f"{CAS_FILES}/{made['id']}/content", f"{ZENFLUX_FILES}/{made['id']}"
                    self.files[made["id"]] = Kept(content, path, self._now())
                if status not in (REFUSED, UNKNOWN, 409):
                    return
            await asyncio.sleep(self._random.uniform(0.05, 1.0))

    async def upload_zenflux(self) -> None:
        name, content = self._content()
        status, made = await self._upload(f"{ZENFLUX_FILES}/upload", name, content, {})
        if status == 200:
            file_id = made["data"]["file_url"].rsplit("/", 1)[1]
            paths = f"{ZENFLUX_FILES}/{file_id}", f"{CAS_FILES}/{file_id}/content"
            self.files[file_id] = Kept(content, paths, self._now())

    async def _upload(self, path: str, name: str, content: bytes, headers: dict[str, str]) -> tuple[int, Any]:
        form = aiohttp.FormData()
        form.add_field("file", content, filename=name, content_type="text/plain")
        return await self.rest.call("POST", path, form, headers)

    async def write_workspace(self) -> None:
        """A file beside a session, as Blade has them."""
        if not self._session:
            status, made = await self.rest.call("POST", AAP, {"agent": {"name": "demo"}})
            if status >= 300:
                return
            self._session = made["sessionId"]
        name, _ = self._content()
        path = f"{BLADE}/{self._session}/files/{name}"
        status, _ = await self.rest.call("PUT", path, {"content": f"content of {name}"})
        if status < 300:
            self.files[path] = Kept(f"content of {name}".encode(), (path,), self._now())

    async def read_file(self) -> None:
        if self.files:
            await self._check(self._random.choice(list(self.files)))

    async def _check(self, file_id: str) -> None:
        """A file that was accepted is there, whole."""
        kept = self.files[file_id]
        path = self._random.choice(kept.paths)
        status, content = await self.rest.call("GET", path, None, BYTES)
        if file_id not in self.files or self._is_lost(kept.at):
            return
        if status == NOT_FOUND:
            self.rest.broken(Kind.LOST, "", f"GET {path} answered 404 for a file that was accepted")
        elif status == 200 and content != kept.content:
            self.rest.broken(Kind.LOST, "", f"GET {path} has {len(content or b'')} bytes of {len(kept.content)}")

    async def list_files(self) -> None:
        known = [file_id for file_id in self.files if file_id.startswith("file_")]
        status, body = await self.rest.call("GET", f"{CAS_FILES}?limit=100")
        if status == 200 and not body.get("has_more"):
            shown = Counter(one["id"] for one in body["data"])
            for file_id in known:
                if file_id in self.files and not shown[file_id] and not self._is_lost(self.files[file_id].at):
                    self.rest.broken(Kind.LOST, "", f"GET {CAS_FILES} does not show {file_id}, which was accepted")

    async def delete_file(self) -> None:
        known = [file_id for file_id in self.files if file_id.startswith("file_")]
        if not known:
            return
        file_id = self._random.choice(known)
        kept = self.files.pop(file_id)
        status, _ = await self.rest.call("DELETE", f"{CAS_FILES}/{file_id}")
        if status < 300:
            self.deleted[file_id] = kept._replace(at=self._now())
        elif status == REFUSED:
            self.files[file_id] = kept
        elif status == NOT_FOUND and not self._is_lost(kept.at):
            self.rest.broken(Kind.LOST, "", f"DELETE {CAS_FILES}/{file_id} answered 404 for a file that was accepted")

    async def read_deleted(self) -> None:
        if self.deleted:
            file_id = self._random.choice(list(self.deleted))
            kept = self.deleted[file_id]
            status, _ = await self.rest.call("GET", kept.paths[0], None, BYTES)
            if status == 200 and not self._is_lost(kept.at):
                self.rest.broken(Kind.REPEATED, "", f"GET {kept.paths[0]} answered 200 for a file that was deleted")

    # -- schedules ----------------------------------------------------------------------------------------------------

    async def make_task(self) -> None:
        if len(self.tasks) < 2:
            body = {"title": "every minute", "prompt": "hello", "cron": "* * * * *"}
            status, made = await self.rest.call("POST", TASKS, body)
            if status == 201:
                self.tasks[made["id"]] = self._now()

    async def read_task(self) -> None:
        if self.tasks:
            task_id = self._random.choice(list(self.tasks))
            status, _ = await self.rest.call("GET", f"{TASKS}/{task_id}")
            if status == NOT_FOUND and task_id in self.tasks and not self._is_lost(self.tasks[task_id]):
                self.rest.broken(Kind.LOST, "", f"GET {TASKS}/{task_id} answered 404 for a schedule that was accepted")

    async def delete_task(self) -> None:
        if len(self.tasks) == 2:
            task_id = next(iter(self.tasks))
            made = self.tasks.pop(task_id)
            status, _ = await self.rest.call("DELETE", f"{TASKS}/{task_id}")
            if status < 300:
                self.deleted_tasks[task_id] = None
            elif status == REFUSED:
                self.tasks[task_id] = made

    # -- the end ------------------------------------------------------------------------------------------------------

    async def verdict(self, run: CrashRun, calm_since: float, is_in_time: bool) -> None:
        """After all was mended: every file is there, and every schedule has run when it was due, once.

        `is_in_time`: no clock has jumped, so that everybody agrees on what is due.
        """
        self.rest.world = run
        for file_id in list(self.files):
            await self._check(file_id)
        status, body = await self.rest.call("GET", f"{CAS}?limit=100")
        assert status == 200, body
        started = Counter(one["metadata"].get("task_id") for one in body["data"])
        for task_id, made in self.tasks.items():
            status, runs = await self.rest.call("GET", f"{TASKS}/{task_id}/runs")
            if status == 200:
                self._judge_runs(task_id, made, runs, started[task_id], calm_since, is_in_time)
            elif not self._is_lost(made):
                self.rest.broken(Kind.LOST, "", f"GET {TASKS}/{task_id}/runs answered {status}")

    def _judge_runs(
        self, task_id: str, made: float, runs: list[dict[str, Any]], sessions: int, calm_since: float, is_in_time: bool,
    ) -> None:
        """One run for each full minute at most; and one for each that came while nothing was wrong."""
        if sessions > len(runs):
            self.rest.broken(Kind.REPEATED, "", f"{task_id} has {len(runs)} runs, and {sessions} sessions were made")
        if not is_in_time:
            return
        first = MINUTE - (EPOCH + made) % MINUTE + made
        due = [first + MINUTE * n for n in range(100) if first + MINUTE * n < self._now() - START_SECONDS]
        if len(runs) > len(due) + 1:
            self.rest.broken(Kind.REPEATED, "", f"{task_id} was due {len(due)} times, and ran {len(runs)} times")
        calm = [at for at in due if at > calm_since]
        done = [run for run in runs if run["status"] == "completed"]
        if len(done) < len(calm):
            self.rest.broken(Kind.LOST, "", f"{task_id} was due {len(calm)} times while nothing was wrong, and ran "
                                            f"{len(done)} times: {runs}")
