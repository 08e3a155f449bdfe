"""What callers change is written down with their names; what the server does by itself is not."""

from pathlib import Path

import gateway.model as m
from gateway.ports import Caller
from gateway.resources import AuditedResources, AuditedSessions
from gateway.storage.resources.memory import MemoryResources
from tests.support.gateway_server import serving


class Journal:
    def __init__(self) -> None:
        self.caller: Caller | None = Caller(user="ann")
        self.lines: list[tuple[str, str]] = []

    def write(self, event: str, caller: Caller | None, target: str) -> None:
        assert caller == self.caller
        self.lines.append((event, target))


async def test_resources_are_written_down_and_not_what_they_say() -> None:
    journal = Journal()
    store = AuditedResources(MemoryResources(lambda: 0.0, lambda: 100), journal.write, lambda: journal.caller)
    made = (await store.create("vault", "ann", {"name": "x"}, secrets={"token": "s3cret"})).resource_id
    await store.update("vault", "ann", made, {"name": "y"})
    await store.archive("vault", "ann", made)
    assert (await store.get("vault", "ann", made)).body == {"name": "y"}
    await store.delete("vault", "ann", made)
    journal.caller = None
    await store.create("run", "ann", {})
    assert journal.lines == [(f"vault.{event}", made) for event in ("created", "updated", "archived", "deleted")]


async def test_sessions_are_written_down(tmp_path: Path) -> None:
    journal = Journal()
    async with serving(tmp_path, log="memory") as served:
        sessions = AuditedSessions(served.gateway.sessions, journal.write, lambda: journal.caller)
        view = await sessions.create("ann", "demo", title="one")
        await sessions.update("ann", view.session_id, title="two")
        assert (await sessions.get("ann", view.session_id)).title == "two"
        await sessions.post_event("ann", view.session_id, m.CustomEvent(topic="workspace.files_changed"))
        copy = await sessions.import_session("ann", await sessions.records("ann", view.session_id))
        await sessions.delete("ann", view.session_id)
    assert journal.lines == [
        ("session.created", view.session_id), ("session.updated", view.session_id),
        ("workspace.files_changed", view.session_id), ("session.imported", copy.session_id),
        ("session.deleted", view.session_id),
    ]
