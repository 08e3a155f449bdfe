"""The suite leaves a server as it found it: what somebody else has made is there, what the suite has made is not."""

from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from conformance.faults.aap import FAULTS as AAP_FAULTS
from conformance.faults.blade.every import FAULTS as BLADE_FAULTS
from conformance.faults.blade.reference import BladeServer
from conformance.faults.cas import FAULTS as CAS_FAULTS
from conformance.faults.cas import CasServer
from conformance.faults.reference import ReferenceServer
from conformance.faults.serving import served
from conformance.faults.zenflux.catalogue import FAULTS as ZENFLUX_FAULTS
from conformance.faults.zenflux.server import ZenfluxServer
from conformance.kit.runner import Runner
from conformance.kit.suite import Target, load_suite
from conformance.kit.verdict import Outcome, Report, Verdict

KEY = "the-key-of-the-examiners"
SOMEBODY = {"user_id": "somebody-else", "title": "Not yours"}
Ask = Callable[..., Awaitable[Any]]
Making = Callable[[Ask], Awaitable[None]]
Belongings = dict[str, Any]


async def aap_making(ask: Ask) -> None:
    await ask("POST", "/sessions", json={"agent": {"name": "able"}})


async def cas_making(ask: Ask) -> None:
    agent = await ask("POST", "/agents", json={"name": "Theirs", "model": "reference"})
    environment = await ask("POST", "/environments", json={"name": "Theirs", "config": {"type": "cloud"}})
    await ask("POST", "/sessions", json={"agent": agent["id"], "environment_id": environment["id"], "title": "Theirs"})
    await ask("POST", "/vaults", json={"display_name": "Theirs"})
    await ask("POST", "/memory_stores", json={"name": "Theirs"})
    form = aiohttp.FormData()
    form.add_field("file", b"Theirs", filename="theirs.txt")
    await ask("POST", "/files", data=form)


async def blade_making(ask: Ask) -> None:
    task = {"title": "Theirs", "prompt": "Report.", "cron": "0 9 * * *", "timezone": "Asia/Shanghai"}
    await ask("POST", "/api/sessions", json={"intent": "Theirs", "is_persistent": True})
    await ask("POST", "/api/memories", json={"content": "Theirs", "type": "feedback"})
    await ask("POST", "/api/user/api-keys/", json={"name": "Theirs"})
    await ask("POST", "/api/scheduled-tasks", json=task)


async def zenflux_making(ask: Ask) -> None:
    await ask("POST", "/api/v1/conversations", params=SOMEBODY)


LISTS = {
    "aap": ["/sessions"],
    "cas": [f"/{kind}?limit=100&include_archived=true"
            for kind in ("sessions", "agents", "environments", "files", "vaults", "memory_stores")],
    "blade": ["/api/sessions?limit=100", "/api/memories?limit=100", "/api/user/api-keys/", "/api/scheduled-tasks"],
    "zenflux": ["/api/v1/conversations?user_id=somebody-else", "/api/v1/sessions",
                "/api/v1/human-confirmation/pending"],
}  # fmt: skip
SERVERS: dict[str, tuple[type[Any], Making]] = {
    "aap": (ReferenceServer, aap_making),
    "cas": (CasServer, cas_making),
    "blade": (BladeServer, blade_making),
    "zenflux": (ZenfluxServer, zenflux_making),
}
FAULTS = {"aap": AAP_FAULTS, "cas": CAS_FAULTS, "blade": BLADE_FAULTS, "zenflux": ZENFLUX_FAULTS}


def quick(dialect: str, server: Any) -> tuple[Any, Any]:
    """The server and the profile with short waits."""
    settings = load_suite(dialect).read_profile()
    if dialect == "zenflux":
        server.tick_every = 0.8
        settings = settings.model_copy(update={"heartbeat": 0.9})
    if dialect == "cas":
        server.heartbeat = 0.1
        settings = settings.model_copy(update={"heartbeat": 0.2})
    return server, settings


async def before_and_after(
    dialect: str, server: Any, *ids: str, within: float = 5.0
) -> tuple[Belongings, Belongings, Report]:
    """All that is listed before and after an examination."""
    suite = load_suite(dialect)
    server, settings = quick(dialect, server)
    wanted = [item for item in suite.catalogue.requirements if not ids or item.id in ids]
    async with served(server) as url, aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as session:

        async def ask(method: str, path: str, **more: Any) -> Any:
            async with session.request(method, url + path, **more) as answer:
                assert answer.status < 300, await answer.text()
                return await answer.json()

        async def belongings() -> Belongings:
            return {path: await ask("GET", path) for path in LISTS[dialect]}

        await SERVERS[dialect][1](ask)
        before = await belongings()
        report = await Runner(suite, Target(url, KEY, within, True), settings, at_once=8).run(wanted)
        return before, await belongings(), report


def made(dialect: str, server: type[Any]) -> Any:
    return server() if dialect == "zenflux" else server(key=KEY)


def owners(server: Any) -> set[str]:
    """Whose conversations a ZenFlux server has; it lists them to their owners only."""
    return {item.user_id for item in getattr(server, "conversations", {}).values()}


@pytest.mark.parametrize("dialect", SERVERS)
async def test_a_server_is_left_as_it_was_found(dialect: str) -> None:
    server = made(dialect, SERVERS[dialect][0])
    before, after, report = await before_and_after(dialect, server, within=30.0)
    assert report.verdict is Verdict.CONFORMS
    assert after == before
    assert "heirs" in str(before) or "Not yours" in str(before) or "sessionId" in str(before)
    assert owners(server) <= {"somebody-else"}


LAX = {
    "aap": ("created-with-200", "any-agent-will-do", "unknown-tools-taken", "select-takes-anything", "clashes-taken"),
    "cas": ("any-agent-taken", "config-optional", "any-name-taken", "empty-uploads-taken", "endless-metadata"),
    "blade": ("any-task", "any-kind-of-memory", "long-memory", "memory-kept-with-200", "key-without-time"),
    "zenflux": ("message-not-needed", "any-agent", "always-new", "no-payload", "other-session"),
}


@pytest.mark.parametrize(("dialect", "name"), [(dialect, name) for dialect, names in LAX.items() for name in names])
async def test_so_is_one_that_takes_what_it_should_refuse(dialect: str, name: str) -> None:
    fault = FAULTS[dialect][name]
    server = made(dialect, fault.server)
    before, after, report = await before_and_after(dialect, server, *fault.requirements)
    assert report.of(Outcome.FAILED)
    assert after == before
    assert owners(server) <= {"somebody-else"}


@pytest.mark.parametrize("dialect", ["blade", "zenflux"])
async def test_nothing_destructive_is_asked_unless_it_is_allowed(dialect: str) -> None:
    suite = load_suite(dialect)
    destructive = [case for case in suite.cases if case.destructive]
    named = {name for case in destructive for name in case.requirements}
    wanted = [item for item in suite.catalogue.requirements if item.id in named]
    server, settings = quick(dialect, made(dialect, SERVERS[dialect][0]))
    async with served(server) as url:
        report = await Runner(suite, Target(url, KEY, 5.0), settings).run(wanted)
    reasons = {result.name: result.reason or "" for result in report.results}
    assert len(destructive) > 1
    assert all("--allow-destructive" in reasons[case.name] for case in destructive)
    assert {item.requirement.id for item in report.of(Outcome.NOT_TESTABLE)} == {item.id for item in wanted}


@pytest.mark.parametrize("dialect", ["aap", "cas"])
def test_these_examiners_touch_only_what_they_made(dialect: str) -> None:
    assert [case.name for case in load_suite(dialect).cases if case.destructive] == []
