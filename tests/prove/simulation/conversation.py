"""The clients of a world: they talk in all dialects, and what each was told is its history."""

import asyncio
from asyncio import AbstractEventLoop
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Any

import aiohttp

import gateway.model as m
from tests.prove.crash.client_base import PLAIN
from tests.prove.crash.clients import CrashRun, DialectClient, client_types, watchers
from tests.prove.crash.expected_streams import expected_stream
from tests.prove.crash.history import (
    GivenAnswer,
    History,
    Kind,
    SeenLog,
    SentMessage,
    Violation,
    judge,
    times_settled,
    times_there,
)
from tests.prove.fleet.allowed_refusals import unexplained_refusals
from tests.prove.simulation.keepers import MINUTE, START_SECONDS, Keeper
from tests.prove.simulation.linearizability import of_commands
from tests.prove.simulation.loop import EPOCH
from tests.prove.simulation.machines import ClientProcess, Machines
from tests.prove.simulation.network import Trace
from tests.prove.simulation.plan import DAY, Plan
from tests.prove.simulation.refusals import RefusalRecorder
from tests.prove.simulation.servers import TENANTS
from tests.prove.simulation.unheard import STREAMS, of_open_streams
from tests.prove.simulation.users import GONE, HUNG_AGENT, Registry, RestUser, now

DIRECTIVES = (*PLAIN, "/slow 40", "/fail", "/fail-start")
"""Turns last for a moment, or for seconds: so long that a server can lose Redis and find it again within one.

Beside `/fork`, `/burst` and the questions, so that agents fork, flood, ask, and fail.
"""
NO_ROOM = ("disk_full", "redis_refuses")
"""Faults with which something can be done, and its response not be stored."""
HARMLESS_TO_KEYS = ("cut_client", "sever_client", "part_client", "slow_server", "slow_redis", "clock")
"""Faults that no server dies of, and that cut no server off from its store."""
SOON = 30.0
"""How many seconds a world waits at most for schedules to be due before it ends."""
PATIENCE = 300.0
"""Seconds that only a hang takes."""


class Conversation:
    """All clients of a world, each in a process of its own, and the judge who hears them afterwards."""

    def __init__(self, loop: AbstractEventLoop, plan: Plan, address: str, trace: Trace, machines: Machines) -> None:
        self.loop = loop
        self._machines = machines
        self.plan = plan
        self.address = address
        self.history = History(reads=[])
        self.found: list[Violation] = []
        self.tried_seconds = 2 * (2 * plan.lease + 2)
        """Twice as long as a server tries to pass a command on: what has not come by then does not come any more."""
        self.clients: list[DialectClient] = []
        self.processes: list[ClientProcess] = []
        self._runs: list[CrashRun] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._numbers = iter(range(1, 1_000_000))
        self.has_talked = False
        """Whether everything was said: clients listen on, and begin no turn any more."""
        self.registry = Registry(may_repeat=any(fault.kind not in HARMLESS_TO_KEYS for fault in plan.faults))
        self.users: list[RestUser] = []
        self.keepers: list[Keeper] = []
        self.is_lost: Callable[[float], bool] = lambda at: False
        """Whether what was accepted then may be lost, by the promises."""
        self.refusals = RefusalRecorder(loop, trace, self.history.answers)
        self._audits = {tenant: self._auditor(tenant, number) for number, tenant in enumerate(TENANTS)}

    def _auditor(self, tenant: str, number: int) -> tuple[ClientProcess, CrashRun]:
        """Reads everything of a tenant in the end."""
        return self._machines.process(f"judge-{tenant}", 250 + number, tenant), CrashRun(
            self.address, Random(f"{self.plan.seed} judge"), None, self.history, self.found,  # type: ignore[arg-type]
            patience=0.1, numbers=self._numbers)

    def _http(self, process: ClientProcess) -> aiohttp.ClientSession:
        return http_client(self.refusals.tracing(process.name))

    @staticmethod
    def tenant_of(number: int) -> str:
        """Of every dialect, clients of both."""
        return TENANTS[number // 4 % len(TENANTS)]

    async def begin(self) -> None:
        kinds = client_types()
        for number in self.plan.clients:
            kind = kinds[number % len(kinds)]
            process = self._machines.process(f"{kind.dialect}-{number}", number, self.tenant_of(number))
            self.processes.append(process)
            self._tasks.append(process.spawn(self._live(process, kind, number), "client"))
        if self.plan.watched:
            process = self._machines.process("watcher", 200, TENANTS[0])
            self.processes.append(process)
            self._tasks.append(process.spawn(self._watch(process), "watcher"))
        for number, tenant in enumerate(TENANTS[:self.plan.users]):
            process = self._machines.process(f"user-{tenant}", 210 + number, tenant)
            self.processes.append(process)
            self._tasks.append(process.spawn(self._use(process, tenant), "user"))

        for number, tenant in enumerate(TENANTS[:self.plan.keepers]):
            process = self._machines.process(f"keeper-{tenant}", 220 + number, tenant)
            self.processes.append(process)
            self._tasks.append(process.spawn(self._keep(process, tenant), "keeper"))

    def _run(self, process: ClientProcess, http: aiohttp.ClientSession) -> CrashRun:
        run = CrashRun(
            self.address, Random(f"{self.plan.seed} {process.name}"), http, self.history, self.found,
            thinking=2 * self.plan.seconds * len(self.plan.clients) / self.plan.turns, patience=0.4,
            numbers=self._numbers, directives=DIRECTIVES,
        )
        self._runs.append(run)
        return run

    async def _live(self, process: ClientProcess, kind: type[DialectClient], number: int) -> None:
        async with self._http(process) as http:
            client = kind(self._run(process, http), number)
            self.clients.append(client)
            while not client.session:
                with suppress(*GONE):
                    client.session = await client.create()
                await asyncio.sleep(process.random.uniform(0.02, 0.5))
            self.registry.owners[client.session] = self.tenant_of(number)
            listener = asyncio.create_task(_listen_on(client))
            try:
                while not self.has_talked:
                    await _quietly(self._talk(client))
                    await asyncio.sleep(process.random.uniform(0.02, 0.5))
                await listener
            finally:
                listener.cancel()
                await asyncio.wait([listener])

    async def _talk(self, client: DialectClient) -> None:
        await client.resume()
        while not self.has_talked:
            await client.step()

    async def _use(self, process: ClientProcess, tenant: str) -> None:
        async with self._http(process) as http:
            user = RestUser(self._run(process, http), tenant, self.registry, process.random)
            user.may_forget = any(
                fault.kind in NO_ROOM or (fault.kind, fault.seconds) == ("clock", DAY) for fault in self.plan.faults)
            self.users.append(user)
            await user.live()

    async def _keep(self, process: ClientProcess, tenant: str) -> None:
        async with self._http(process) as http:
            keeper = Keeper(self._run(process, http), tenant, process.random, self.is_lost)
            self.keepers.append(keeper)
            await keeper.live()

    async def _watch(self, process: ClientProcess) -> None:
        async with self._http(process) as http:
            ears = watchers(self._run(process, http))
            while True:
                owners = self.registry.owners
                mine = (one.session for one in self.clients if owners.get(one.session) == TENANTS[0])
                sessions = list(mine)[:self.plan.watched]
                with suppress(*GONE):
                    await asyncio.gather(*(ear.live(sessions) for ear in ears))
                await asyncio.sleep(0.5)

    @property
    def turns(self) -> int:
        return sum(run.turns for run in self._runs)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        done, _ = await asyncio.wait(self._tasks)
        for task in sorted(done, key=hash):
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    # -- the verdict ----------------------------------------------------------------------------------------------

    async def verdict(self, heads: Mapping[str, int]) -> list[Violation]:
        """Every session is fit for use, and every promise was kept; `heads` are those of sessions that have rested."""
        ended, cut_off = len(self.history.hearings), self._cut_off()
        await self.stop()
        heard_last = self.history.hearings[ended:]
        refusals = list(self.found)
        self.found.clear()
        for tenant, (process, _) in self._audits.items():
            await process.spawn(self._audit(tenant), "verdict")
        history = self.history
        commands = of_commands(history)
        history.said = [said for said in history.said if said.session in history.logs]
        for told, stream in dict.fromkeys((hearing.session, hearing.stream) for hearing in history.hearings):
            history.tellings[told, stream] = expected_stream(history.logs.get(told, ()), stream)
        unheard = of_open_streams(heard_last, heads, history, cut_off)
        return [*unexplained_refusals(refusals, history), *self.found, *judge(history), *commands, *unheard]

    def _cut_off(self) -> set[str]:
        """The clients that have a connection which is dead, and have not noticed."""
        dead = self._machines.cut_off()
        return dead | ({f"{stream}-watcher" for stream in STREAMS} if "watcher" in dead else set())

    async def survey(self, *, is_empty: bool) -> tuple[dict[str, list[m.Record]], list[Violation]]:
        """The logs of all sessions that are there, after some were lost; each of them, and a new one, works."""
        self.found.clear()
        logs: dict[str, list[m.Record]] = {}
        for tenant, (process, _) in self._audits.items():
            await process.spawn(self._survey(tenant, logs, is_empty), "survey")
        return logs, self.found

    async def _survey(self, tenant: str, logs: dict[str, list[m.Record]], is_empty: bool) -> None:
        process, run = self._audits[tenant]
        async with self._http(process) as run.http:
            async with run.http.get(run.url("/api/v1/cloud/sessions?limit=100")) as answer:
                assert answer.status == 200, await answer.text()
                found = (await answer.json())["data"]
            shown = [one["id"] for one in found]
            fit = [one["id"] for one in found if one["agent"]["id"] != HUNG_AGENT]
            if is_empty and shown:
                self.found.append(Violation(Kind.REPEATED, shown[0], "the session is there, though all data are lost"))
            for one in shown:
                async with asyncio.timeout(PATIENCE):
                    while m.fold(one, await _records(run, one)).status is m.SessionStatus.RUNNING:  # noqa: ASYNC110
                        await asyncio.sleep(1.0)
                logs[one] = await _records(run, one)
            kinds = client_types()
            clients = [kinds[number % len(kinds)](run, 100 + number) for number in range(len(kinds) + len(fit[:4]))]
            for client, known in zip(clients, fit[:4], strict=False):
                client.session = known
            for client in clients:
                client.session = client.session or await client.create()
            await self._finish(clients)

    async def last_verdict(self, calm_since: float) -> list[Violation]:
        """What became of files and schedules, some time after everything was mended."""
        found: list[Violation] = []
        coming = MINUTE - (EPOCH + self.loop.time()) % MINUTE + START_SECONDS
        if self.keepers and coming < SOON:  # schedules are due once more, while nothing is wrong
            await asyncio.sleep(coming + 1.0)
        is_in_time = not any(fault.kind == "clock" for fault in self.plan.faults)
        for keeper in self.keepers:
            process, run = self._audits[keeper.tenant]
            run.found = found
            await process.spawn(self._audit_keeper(keeper, calm_since, is_in_time), "last verdict")
        return found

    async def _audit_keeper(self, keeper: Keeper, calm_since: float, is_in_time: bool) -> None:
        process, run = self._audits[keeper.tenant]
        async with self._http(process) as run.http:
            await keeper.verdict(run, calm_since, is_in_time)

    async def _audit(self, tenant: str) -> None:
        """See that every session of a tenant works, and read its log."""
        process, run = self._audits[tenant]
        async with self._http(process) as http:
            run.http = http
            clients = [one for one in self.clients if self.registry.owners.get(one.session) == tenant]
            sessions = [one.session for one in clients]
            for user in self.users:
                sessions += user.there if user.tenant == tenant else ()
            for client in clients:
                client.world = run
                if hasattr(client, "ear"):
                    client.ear.world = run
            for client in clients:
                if self._in_doubt(client.session):
                    await self._settled_log(run, client.session)
            await self._finish(clients)
            for one in sessions:
                self.history.logs[one] = await self._settled_log(run, one)

    async def _finish(self, clients: Sequence[DialectClient]) -> None:
        listening = [asyncio.create_task(_listen_on(client)) for client in clients]
        try:
            async with asyncio.timeout(PATIENCE):
                for client in clients:
                    await client.resume()
                    await client.finish()
        except (*GONE, ExceptionGroup) as error:
            self.found.append(Violation(Kind.STUCK, "", f"after all was mended: {type(error).__name__}: {error}"))
        for task in listening:
            task.cancel()
        await asyncio.gather(*listening, return_exceptions=True)

    async def _settled_log(self, run: CrashRun, session: str) -> list[m.Record]:
        """The log of a session, once nothing runs in it and nothing may yet come."""
        end = now() + PATIENCE
        while not self._is_settled(session, records := await _records(run, session)):
            if now() > end:
                self.found.append(Violation(Kind.STUCK, session, f"is not at rest after {PATIENCE:.0f} s"))
                break
            await asyncio.sleep(0.5)
        return records

    def _is_settled(self, session: str, records: Sequence[m.Record]) -> bool:
        is_running = m.fold(session, records).status is m.SessionStatus.RUNNING
        return not is_running and all(
            times_there(one.words, records) if isinstance(one, SentMessage) else times_settled(one.request_id, records)
            for one in self._in_doubt(session)
        )

    def _in_doubt(self, session: str) -> list[SentMessage | GivenAnswer]:
        """What was said or answered, and may yet come: nobody was told that it was taken."""
        history, since = self.history, self.loop.time() - self.tried_seconds
        taken = {said.words for said in history.said if said.taken}
        told = {answered.request_id for answered in history.answered if answered.taken}
        return [
            *(one for one in history.said if one.session == session and one.at > since and one.words not in taken),
            *(one for one in history.answered
              if one.session == session and one.at > since and one.request_id not in told),
        ]


def http_client(*tracing: aiohttp.TraceConfig) -> aiohttp.ClientSession:
    """A client whose requests have a connection each, which may lead to any server, and are sent once.

    aiohttp sends a GET, PUT or DELETE again if its connection breaks, and tells nobody: a session that the first DELETE
    has deleted is not there for the second, and the judge would take that 404 for a lie.
    """
    http = aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=20, sock_read=40),
        connector=aiohttp.TCPConnector(force_close=True, use_dns_cache=False), trace_configs=list(tracing))
    http._retry_connection = False  # as aiohttp's own client for tests
    return http


async def _records(run: CrashRun, session: str) -> list[m.Record]:
    began = now()
    async with run.http.get(run.url(f"/replay/{session}")) as answer:
        assert answer.status == 200, f"{session} {answer.status} {await answer.text()}"
        records = [m.decode_record(line) for line in (await answer.read()).splitlines()]
    if run.history.reads is not None:
        run.history.reads.append(SeenLog(session, began, now(), records))
    return records


async def _listen_on(client: DialectClient) -> None:
    """Hear what happens in the session, over as many connections as it takes; some clients hear only what they ask."""
    while type(client).listen is not DialectClient.listen:
        await _quietly(client.listen())
        await asyncio.sleep(0.2)


async def _quietly(work: Any) -> None:
    with suppress(*GONE):
        await work
