"""What a client sees beside sessions comes along: read back in its dialect, it is what the old server said."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.migration import ImportLine, ImportOrder, ImportSummary, ResourceLine, ResourceOutcome
from gateway.ports import RemoteAddress, Timeouts
from tests.support.dialect_tables import DIALECTS, dialect
from tests.support.gateway_server import Served
from tests.support.migration.old_server import differences, gateway, read

TIMES = {"created_at", "updated_at", "loaded_at", "last_hit_at", "memory_version_id", "version"}
CAS = "/api/v1/cloud"
LOCAL = {"outbound": {"allow": ["127.0.0.0/8"]}}
AGENT = {
    "name": "Reviewer", "model": "demo", "system": "Review it.", "description": "Reads code", "metadata": {"team": "a"},
    "tools": [
        {"type": "agent_toolset_20260401", "enabled_tools": ["clock", "Bash"], "configs": [
            {"name": "clock", "enabled": True, "permission_policy": {"type": "always_ask"}}]},
        {"type": "custom", "name": "ticket", "description": "Opens one", "input_schema": {"type": "object"}},
    ],
    "mcp_servers": [{"type": "url", "name": "wiki", "url": "http://127.0.0.1:9/mcp"}],
}


async def bring(new: Served, old: Served, name: str, lines: list[Any] | None = None, **more: Any) -> ImportSummary:
    async def report(line: ImportLine | ResourceLine) -> None:
        if lines is not None and isinstance(line, ResourceLine):
            lines.append(line)

    address = RemoteAddress(url=old.url(dialect(name).mount), patience=Timeouts(attempts=1))
    return await new.gateway.imports.run(ImportOrder(dialect=name, address=address, **more), report)


async def make(served: Served, path: str, body: dict[str, Any]) -> dict[str, Any]:
    async with served.http.post(served.url(path), json=body) as answer:
        assert answer.status in (200, 201), await answer.text()
        made: dict[str, Any] = await answer.json()
        return made


def timeless(body: Any, *without: str) -> Any:
    """The body without the times of its creation and change, its version, and these fields."""
    if isinstance(body, dict):
        return {name: timeless(value, *without) for name, value in body.items() if name not in {*TIMES, *without}}
    return [timeless(one, *without) for one in body] if isinstance(body, list) else body


def counts(summary: ImportSummary) -> dict[str, dict[str, int]]:
    return {str(group.group): {str(what): number for what, number in group.counts.items()}
            for group in summary.groups if group.counts}


async def test_agents_environments_vaults_memories_and_files_of_cas(tmp_path: Path) -> None:
    async with gateway(tmp_path / "old", **LOCAL) as old, gateway(tmp_path / "new", **LOCAL) as new:
        agent = await make(old, f"{CAS}/agents", AGENT)
        config = {"type": "cloud", "packages": {"pip": ["rich"]}}
        environment = {"name": "Box", "description": "small", "config": config}
        await make(old, f"{CAS}/environments", environment)
        vault = await make(old, f"{CAS}/vaults", {"display_name": "Team", "metadata": {"k": "v"}})
        store = await make(old, f"{CAS}/memory_stores", {"name": "Facts", "description": "of the team"})
        at = f"{CAS}/memory_stores/{store['id']}/memories"
        memory = await make(old, at, {"path": "a/b.md", "content": "Likes tea."})
        form = aiohttp.FormData()
        form.add_field("file", b"hello file", filename="a.txt", content_type="text/plain")
        form.add_field("metadata", '{"x": "1"}')
        async with old.http.post(old.url(f"{CAS}/files"), data=form) as answer:
            file = await answer.json()
        paths = [
            f"{CAS}/agents", f"{CAS}/agents/{agent['id']}", f"{CAS}/environments", f"{CAS}/vaults/{vault['id']}",
            f"{CAS}/memory_stores", f"{at}/{memory['id']}", f"{CAS}/files/{file['id']}",
        ]
        before = timeless(await read(old, paths))
        tried = await bring(new, old, "cas", choice=dry())
        assert counts(tried)["agents"] == {"imported": 3, "unchanged": 1}
        done = await bring(new, old, "cas")
        assert counts(done) == {
            "agents": {"imported": 3, "unchanged": 1}, "memories": {"imported": 2}, "files": {"imported": 1}}
        assert [*differences(before, timeless(await read(new, paths)))] == []
        async with new.http.get(new.url(f"{CAS}/files/{file['id']}/content"), headers={
            "Accept": "application/octet-stream"}) as answer:
            assert await answer.read() == b"hello file"
        again = await bring(new, old, "cas")
        assert counts(again) == {"agents": {"unchanged": 4}, "memories": {"unchanged": 2}, "files": {"unchanged": 1}}
        shown = await new.gateway.contexts["cas"].agent_service.get("", agent["id"])
        assert shown.definition.tools == {"clock": "ask"}


def dry() -> Any:
    from gateway.migration import ImportChoice

    return ImportChoice(is_dry=True)


async def test_agents_and_memories_of_zenflux(tmp_path: Path) -> None:
    api = "/api/v1"
    async with gateway(tmp_path / "old") as old, gateway(tmp_path / "new") as new:
        await make(old, f"{api}/agents", {
            "agent_id": "reviewer", "name": "Reviewer", "prompt": "Review what you are shown, and be kind about it.",
            "description": "Reads code", "enabled_capabilities": {"search": False, "pdf": True}, "llm": {"t": 1}})
        await make(old, f"{api}/mem0/add", {
            "user_id": "local", "messages": [{"role": "user", "content": "Likes tea."}],
            "metadata": {"type": "experience", "k": "v"}})
        paths = [f"{api}/agents", f"{api}/agents/reviewer", f"{api}/agents/reviewer/prompt", f"{api}/mem0/user/local"]
        before = timeless(await read(old, paths), "last_used_at")
        lines: list[ResourceLine] = []
        assert counts(await bring(new, old, "zenflux", lines)) == {
            "agents": {"unchanged": 1, "imported": 1}, "memories": {"imported": 1}}
        assert [*differences(before, timeless(await read(new, paths), "last_used_at"))] == []
        assert counts(await bring(new, old, "zenflux")) == {"agents": {"unchanged": 2}, "memories": {"unchanged": 1}}
    assert [line.own_id[:5] for line in lines if line.kind == "note"] == ["note_"], "the map of ids"


async def test_memories_and_schedules_of_blade(tmp_path: Path) -> None:
    api = "/api"
    async with gateway(tmp_path / "old") as old, gateway(tmp_path / "new") as new:
        for number in range(120):
            await make(old, f"{api}/memories", {
                "content": f"Fact {number}", "skill_name": "s", "topic": "t", "mem0_id": "m", "write_reason": "why"})
        await make(old, f"{api}/scheduled-tasks", {
            "title": "Morning", "prompt": "brief me", "cron": "0 9 * * 1-5", "timezone": "Europe/Berlin",
            "skip_confirmations": True})
        paths = [f"{api}/memories?limit=100", f"{api}/memories?limit=100&offset=100", f"{api}/scheduled-tasks"]
        before = timeless(await read(old, paths), "id", "enabled")
        done = await bring(new, old, "blade")
        assert counts(done) == {"memories": {"imported": 120}, "schedules": {"imported": 1}}
        after = timeless(await read(new, paths), "id", "enabled")
        assert [*differences(before, after)] == []
        [task] = (await read(new, paths[2:]))[0]
        assert task["enabled"] is False, "it must not run at both servers"
        assert "off here until somebody starts it" in done.groups[-1].unseen
        assert counts(await bring(new, old, "blade")) == {
            "memories": {"unchanged": 120}, "schedules": {"unchanged": 1}}


async def test_aap_shows_nothing_beside_sessions_and_says_so(tmp_path: Path) -> None:
    async with gateway(tmp_path / "old") as old, gateway(tmp_path / "new") as new:
        done = await bring(new, old, "aap")
    assert [group.counts for group in done.groups] == [{}] * 4
    assert {group.unseen for group in done.groups} == {"AAP shows nothing of a user but sessions"}


@pytest.mark.parametrize("name", DIALECTS)
async def test_parts_can_be_chosen(tmp_path: Path, name: str) -> None:
    async with gateway(tmp_path / "old") as old, gateway(tmp_path / "new") as new:
        await make(old, "/api/memories", {"content": "Fact"})
        assert (await bring(new, old, name, parts=("sessions",))).groups == []
        done = await bring(new, old, name, parts=("memories",))
        assert [str(group.group) for group in done.groups] == ["memories"]
        assert done.counts == {}


async def test_two_imports_at_once_store_everything_once(tmp_path: Path) -> None:
    async with gateway(tmp_path / "old") as old, gateway(tmp_path / "new", log="sqlite") as new:
        for number in range(20):
            await make(old, "/api/memories", {"content": f"Fact {number}"})
        done = await asyncio.gather(*(bring(new, old, "blade") for _ in range(2)))
        assert sum(counts(one)["memories"].get("imported", 0) for one in done) == 20
        [listed] = await read(new, ["/api/memories?limit=100"])
        assert listed["total"] == 20


async def test_what_is_here_is_not_overwritten(tmp_path: Path) -> None:
    async with gateway(tmp_path / "old") as old, gateway(tmp_path / "new") as new:
        await make(old, "/api/v1/agents", {"agent_id": "mine", "name": "Theirs", "prompt": "theirs"})
        await make(new, "/api/v1/agents", {"agent_id": "mine", "name": "Mine", "prompt": "mine"})
        assert counts(await bring(new, old, "zenflux"))["agents"] == {"unchanged": 2}
        assert (await read(new, ["/api/v1/agents/mine/prompt"]))[0]["data"]["prompt"] == "mine"


async def test_a_model_that_is_not_served_here_is_named(tmp_path: Path) -> None:
    lines: list[ResourceLine] = []
    other = {"agents": {"other": {"backend": "demo"}}}
    async with gateway(tmp_path / "old") as old, gateway(tmp_path / "new", **other) as new:
        agent = await make(old, f"{CAS}/agents", {**AGENT, "mcp_servers": []})
        await bring(new, old, "cas", lines)
        made = await new.gateway.contexts["cas"].agent_service.get("", agent["id"])
        assert made.definition.model == "other"
    [line] = [line for line in lines if line.id == agent["id"]]
    assert any("not served here" in lost for lost in line.unseen)


async def test_an_address_that_clients_may_not_name_is_refused(tmp_path: Path) -> None:
    lines: list[ResourceLine] = []
    async with gateway(tmp_path / "old", **LOCAL) as old, gateway(tmp_path / "new") as new:
        agent = await make(old, f"{CAS}/agents", AGENT)
        await bring(new, old, "cas", lines)
    [line] = [line for line in lines if line.id == agent["id"]]
    assert line.outcome is ResourceOutcome.FAILED
    assert "mcp_servers.0.url" in line.reason
