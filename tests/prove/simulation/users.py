"""Users of a world who do not talk but manage: they make, list, read, interrupt and delete sessions, and trespass.

What they were answered is held to what they know: an answer must not lie (404 for what exists, 200 for what was
deleted, a list without what was made), a request with an idempotency key is carried out once, an interrupt ends its
turn, and nobody sees anything of another tenant.
"""

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Any

import aiohttp
import orjson

import gateway.model as m
from tests.prove.crash.client_base import BROKEN, CrashRun
from tests.prove.crash.history import Kind, SeenLog, SentMessage, Violation

GONE = (*BROKEN, TimeoutError)
CAS, AAP, BLADE = "/api/v1/cloud/sessions", "/aap/sessions", "/api/sessions"
REFUSED, NOT_FOUND, UNKNOWN = 503, 404, 504
HUNG_AGENT = "agent_hung"
SERVERS = 3
"""So many requests in a row come to every server, more often than not."""
TRIES = 8
"""How often a request with an idempotency key is sent at most."""
REST_SECONDS = 60.0
"""How long an interrupted turn may take to end, at most, once its interrupt was accepted."""


def now() -> float:
    return asyncio.get_running_loop().time()


@dataclass
class Registry:
    """All sessions of all tenants, so that everybody can try those of others."""

    owners: dict[str, str] = field(default_factory=dict)
    may_repeat: bool = False
    """Whether servers die or are cut off here: then a session may be made twice under one idempotency key."""

    def of_others(self, tenant: str) -> list[str]:
        return [session for session, owner in self.owners.items() if owner != tenant]


class RestClient:
    """Sends requests of one tenant; an error of the server's own breaks a promise."""

    def __init__(self, world: CrashRun, tenant: str) -> None:
        self.world = world
        self.tenant = tenant

    async def call(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None,
    ) -> tuple[int, Any]:
        data = body if body is None or isinstance(body, aiohttp.FormData) else orjson.dumps(body)
        async with self.world.http.request(method, self.world.url(path), data=data, headers=headers) as answer:
            content = await answer.read()
            if answer.status == 500:
                self.broken(Kind.STUCK, "", f"{method} {path} answered 500: {content[:300]!r}")
            is_json = answer.content_type == "application/json" and content
            return answer.status, orjson.loads(content) if is_json else content or None

    def broken(self, kind: Kind, session: str, words: str) -> None:
        self.world.found.append(Violation(kind, session, f"{self.tenant}: {words}"))


class RestUser:
    """One tenant's program: it knows what it has made, and what became of it."""

    def __init__(self, world: CrashRun, tenant: str, registry: Registry, random: Random) -> None:
        self.world = world
        self.tenant = tenant
        rest = RestClient(world, tenant)
        self.call, self.broken = rest.call, rest.broken
        self.there: dict[str, None] = {}
        """Sessions that were made, and that nobody has tried to delete."""
        self.deleted: dict[str, None] = {}
        """Sessions whose deletion was acknowledged."""
        self.may_forget = False
        """Whether responses may be gone: there was no room for them, or a clock says that they are a day old."""
        self._registry = registry
        self._random = random

    async def live(self) -> None:
        """One thing after the other, for ever."""
        works = (
            self.create, self.create_twice, self.create_with_key, self.list, self.read, self.send_with_key,
            self.send_with_key, self.interrupt, self.meet_hung_agent, self.delete, self.read_deleted, self.trespass,
        )
        while True:
            with suppress(*GONE):
                await self._random.choice(works)()
            await asyncio.sleep(self._random.uniform(0.05, self.world.thinking / 4))

    # -- what they do -----------------------------------------------------------------------------------------------

    async def create(self) -> str | None:
        if self._random.random() < 0.5:
            status, made = await self.call("POST", CAS, {
                "agent": "agent_demo", "environment": {"config": {"type": "cloud"}}})
            session = made["id"] if status == 201 else None
        else:
            status, made = await self.call("POST", AAP, {"agent": {"name": "demo"}})
            session = made["sessionId"] if status in (200, 201) else None
        if session is not None:
            self.there[session] = None
            self._registry.owners[session] = self.tenant
        return session

    async def create_twice(self) -> None:
        """Whoever repeats a request that was answered, under its key, gets the first answer: nothing more is made."""
        headers = {"Idempotency-Key": f"make-u{next(self.world.numbers)}"}
        wanted = {"agent": "agent_demo", "environment": {"config": {"type": "cloud"}}}
        status, made = await self.call("POST", CAS, wanted, headers)
        if status != 201:
            return
        self.there[made["id"]] = None
        self._registry.owners[made["id"]] = self.tenant
        await asyncio.sleep(self._random.uniform(0.0, 1.0))
        status, again = await self.call("POST", CAS, wanted, headers)
        if status == 201 and again["id"] != made["id"] and not self.may_forget:
            self.broken(Kind.REPEATED, made["id"], f"its creation was repeated under one key, and made {again['id']}")

    async def create_with_key(self) -> None:
        """A session under an idempotency key, asked for several times at once and again: it is made once."""
        key, made, again = f"key-u{next(self.world.numbers)}", list[str](), list[str]()
        for _ in range(TRIES):
            await asyncio.gather(*(self._create_under(key, made) for _ in range(self._random.choice((1, 2, 3)))))
            if made:
                await self._create_under(key, again)
                break
            await asyncio.sleep(self._random.uniform(0.0, 0.2))
        for session in dict.fromkeys(made + again):
            self.there[session] = None
            self._registry.owners[session] = self.tenant
        is_other = not set(again) <= set(made) and not self.may_forget
        is_twice = len(set(made)) > 1 and not self._registry.may_repeat and not self.may_forget
        if is_twice or is_other:
            self.broken(Kind.REPEATED, "", f"{key} was answered with {' '.join(made)}, and then {' '.join(again)}")

    async def _create_under(self, key: str, made: list[str]) -> None:
        body = {"agent": "agent_demo", "environment": {"config": {"type": "cloud"}}, "metadata": {"key": key}}
        with suppress(*GONE):
            async with asyncio.timeout(self._random.choice((0.3, 60.0))):
                status, shown = await self.call("POST", CAS, body, {"Idempotency-Key": key})
            if status == 201:
                made.append(shown["id"])

    def _one(self) -> str | None:
        return self._random.choice(list(self.there)) if self.there else None

    async def list(self) -> None:
        """A list has all that was made before it was asked for, and nothing that was deleted before, or of others."""
        known, gone = list(self.there), list(self.deleted)
        path = f"{CAS}?limit=100"
        status, body = await self.call("GET", path)
        if status == 200:
            shown = [one["id"] for one in body["data"]]
            keys = Counter(one["metadata"].get("key") for one in body["data"])
            for key, times in keys.items():
                if key is not None and times > 1 and not self._registry.may_repeat and not self.may_forget:
                    self.broken(Kind.REPEATED, "", f"GET {path} shows {times} sessions of {key}")
            for session in known:
                if session in self.there and session not in shown and not body.get("has_more"):
                    self.broken(Kind.LOST, session, f"GET {path} does not show the session, which is there")
            for session in gone:
                if session in shown:
                    self.broken(Kind.REPEATED, session, f"GET {path} shows the session, which was deleted")
            for session in shown:
                if self._registry.owners.get(session, self.tenant) != self.tenant:
                    self.broken(Kind.REFUSED, session, f"GET {path} shows a session of another tenant")

    async def read(self) -> None:
        """What exists is found, in every dialect."""
        session = self._one()
        if session is None:
            return
        path = self._random.choice((f"{CAS}/{session}", f"{AAP}/{session}", f"/replay/{session}"))
        status = await self._look(session, path)
        if status == NOT_FOUND and session in self.there:
            self.broken(Kind.LOST, session, f"GET {path} answered 404 for what exists")

    async def _look(self, session: str, path: str) -> int:
        """Read the session, and write down what its log was, if that was shown."""
        began, reads = now(), self.world.history.reads
        status, content = await self.call("GET", path)
        if reads is not None and status == NOT_FOUND:
            reads.append(SeenLog(session, began, now(), None))
        elif reads is not None and status == 200 and path.startswith("/replay"):
            records = [m.decode_record(line) for line in (content or b"").splitlines()]
            reads.append(SeenLog(session, began, now(), records))
        return status

    async def read_deleted(self) -> None:
        """Whichever server is asked, a session that was deleted is not there: the last one that was, or any."""
        if self.deleted:
            session = self._random.choice((list(self.deleted)[-1], self._random.choice(list(self.deleted))))
            for _ in range(SERVERS):
                path = f"{self._random.choice((CAS, AAP, '/replay'))}/{session}"
                if await self._look(session, path) == 200:
                    self.broken(Kind.REPEATED, session, "GET answered 200 for a session that was deleted")

    async def send_with_key(self) -> None:
        """A message under an idempotency key, repeated until somebody answers; some users are impatient."""
        session = self._one() or await self.create()
        if session is None:
            return
        words = f"u{next(self.world.numbers)}"
        headers = {"Idempotency-Key": f"key-{words}"}
        body = {"events": [{"type": "user.message", "content": f"hello {words}"}]}
        history = self.world.history
        for _ in range(TRIES):
            with suppress(*GONE):
                history.said.append(SentMessage(self.tenant, session, words, False, now()))
                async with asyncio.timeout(self._random.choice((0.3, 3.0, 60.0))):
                    status, _ = await self.call("POST", f"{CAS}/{session}/events", body, headers)
                if status < 300:
                    history.said.append(SentMessage(self.tenant, session, words, True, now()))
                if status not in (REFUSED, UNKNOWN):
                    return
            await asyncio.sleep(self._random.uniform(0.05, 1.0))

    async def interrupt(self) -> None:
        """A long turn, and its end before its time."""
        session = self._one()
        if session is None:
            return
        if await self._say(session, "/slow 400"):
            await self._break_off(session)

    async def meet_hung_agent(self) -> None:
        """A turn whose agent hangs: it ends by an interrupt, or when its time is over."""
        status, made = await self.call("POST", CAS, {
            "agent": HUNG_AGENT, "environment": {"config": {"type": "cloud"}}})
        if status != 201:
            return
        self.there[made["id"]] = None
        self._registry.owners[made["id"]] = self.tenant
        if await self._say(made["id"], "hello") and self._random.random() < 0.5:
            await self._break_off(made["id"])

    async def _say(self, session: str, words: str) -> bool:
        """Whether the message was accepted."""
        status, _ = await self.call("POST", f"{CAS}/{session}/events", {
            "events": [{"type": "user.message", "content": f"{words} u{next(self.world.numbers)}"}]})
        return status < 300

    async def _break_off(self, session: str) -> None:
        await asyncio.sleep(self._random.uniform(0.0, 0.5))
        status, _ = await self.call("POST", f"{CAS}/{session}/events", {"events": [{"type": "user.interrupt"}]})
        if status >= 300:
            return
        end = asyncio.get_running_loop().time() + REST_SECONDS
        while asyncio.get_running_loop().time() < end:
            with suppress(*GONE):
                view = await self.world.view(session)
                if view.status is not m.SessionStatus.RUNNING:
                    return
            await asyncio.sleep(0.5)
        self.broken(Kind.STUCK, session, "the turn runs on, though its interrupt was accepted")

    async def delete(self) -> None:
        session = self._one()
        if session is None or len(self.there) < 2:
            return
        del self.there[session]
        began, deletions = now(), self.world.history.deletions
        deletions[session] = began, inf
        status, _ = await self.call("DELETE", f"{self._random.choice((CAS, AAP))}/{session}")
        if status < 300:
            self.deleted[session] = None
            deletions[session] = began, now()
        elif status in (REFUSED, 409):
            self.there[session] = None
            del deletions[session]
        elif status == NOT_FOUND:
            self.broken(Kind.LOST, session, "DELETE answered 404 for what exists")

    async def trespass(self) -> None:
        """Whatever is tried with a session of another tenant, it is as if it were not there."""
        theirs = self._registry.of_others(self.tenant)
        if not theirs:
            return
        session = self._random.choice(theirs)
        message = {"events": [{"type": "user.message", "content": "hello"}]}
        method, path, body = self._random.choice((
            ("GET", f"{CAS}/{session}", None), ("GET", f"{AAP}/{session}", None), ("GET", f"/replay/{session}", None),
            ("GET", f"{AAP}/{session}/history", None), ("DELETE", f"{AAP}/{session}", None),
            ("POST", f"{CAS}/{session}/events", message), ("GET", f"{BLADE}/{session}", None),
        ))
        status, shown = await self.call(method, path, body)
        if status < 300 and shown is not None:
            self.broken(Kind.REFUSED, session, f"{method} {path} answered {status} to a stranger")
