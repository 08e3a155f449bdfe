"""What was said is read up to a place; what is kept beside a session stays beside what was there."""

from pathlib import Path

import orjson

from adapters.blade.server.history import message_bodies, update_private
from gateway.http import dumps
from tests.support.dialects.blade.rest_server import blade, say


async def test_messages_are_read_up_to_a_place(tmp_path: Path) -> None:
    async with blade(tmp_path) as client:
        house, session = client.gateway.contexts["blade"], await client.session()
        await say(client, session, "one")
        await say(client, session, "two")
        marks = (await client.gateway.sessions.get("", session)).checkpoints
        counts = [len(await message_bodies(house, "", session, upto=mark.seq)) for mark in marks]
        assert counts == [0, 2, 4]
        whole = orjson.loads(dumps(await message_bodies(house, "", session)))
        assert whole == (await client.get(f"/sessions/{session}/messages")).body


async def test_what_is_kept_stays_beside_what_was_there(tmp_path: Path) -> None:
    async with blade(tmp_path) as client:
        house, session = client.gateway.contexts["blade"], await client.session(title="old")
        await update_private(house, "", session, one=1)
        view = await update_private(house, "", session, "new", two=2)
        assert view.private("blade") == {"one": 1, "two": 2}
        assert (view.title, view.shown_metadata) == ("new", {})
