"""The id of another tenant's file is as unknown as an id that never was."""

from pathlib import Path
from typing import Any

from tests.support.dialects.cas.client import Client
from tests.support.gateway_server import serving
from tests.support.key_stores import key_store


def message(file_id: str, kind: str) -> dict[str, Any]:
    return {"type": "user.message", "content": [
        {"type": "text", "text": "read it"}, {"type": kind, "source": {"type": "file", "file_id": file_id}}]}


async def test_a_message_with_the_file_of_another_is_not_found(tmp_path: Path) -> None:
    keys = key_store(tmp_path / "data")
    ann, bob = keys.add("ann"), keys.add("bob")
    async with serving(tmp_path, log="sqlite", auth="keys") as served:
        mine = await served.gateway.files.store(_chunks())
        await served.gateway.resources.create("file", "ann", {
            "name": "a.txt", "media_type": "text/plain", "size": 1, "sha256": mine.sha256, "metadata": {},
        }, resource_id=mine.file_id)
        owner, stranger = Client(served, ann), Client(served, bob)
        session = await stranger.session()
        answers = []
        for file_id in (mine.file_id, "file_" + "0" * 24):
            for kind in ("document", "image"):
                status, refused = await stranger.send(session, message(file_id, kind))
                assert (status, refused["error"]["type"]) == (404, "not_found_error")
                assert refused["error"]["param"] == "events.0.content.1.source.file_id"
                answers.append(str(refused["error"]).replace(file_id, "ID"))
            status, refused = await stranger.call("POST", "/sessions", {
                "agent": "agent_demo", "environment": {"config": {"type": "cloud"}},
                "initial_events": [message(file_id, "document")]})
            assert status == 404
        assert answers[:2] == answers[2:], "the answer does not tell whether the file is there"
        assert await stranger.events(session) == []
        await owner.sent(await owner.session(), message(mine.file_id, "document"))


async def _chunks() -> Any:
    yield b"x"
