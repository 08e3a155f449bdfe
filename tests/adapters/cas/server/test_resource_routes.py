"""What all shelves of CAS's catalog have in common: metadata, and that they are nobody else's."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.dialects.cas.catalog_server import catalog
from tests.support.key_stores import key_store


@pytest.mark.parametrize(("mode", "held"), [("replace", {"b": "3"}), ("merge", {"a": "1", "b": "3"})])
async def test_metadata_is_replaced_or_merged(tmp_path: Path, mode: str, held: dict[str, str]) -> None:
    async with catalog(tmp_path, dialects={"cas": {"metadata": mode}}) as cas:
        old = {"a": "1", "b": "2", "c": "3"}
        for path, body in (("/agents", {"name": "a", "model": "demo"}), ("/vaults", {"display_name": "v"})):
            made = await cas.made(path, {**body, "metadata": old})
            changed = await cas.post(f"{path}/{made['id']}", {"version": 1, "metadata": {"b": "3", "c": None}})
            assert changed.body["metadata"] == held
            many = {f"k{number}": "" for number in range(16)}
            assert (await cas.post(f"{path}/{made['id']}", {"version": 2, "metadata": many})).status \
                == (200 if mode == "replace" else 400)


@pytest.mark.parametrize(("path", "body"), [
    ("/agents", {"name": "a", "model": "demo"}), ("/environments", {"name": "e"}), ("/vaults", {"display_name": "v"}),
    ("/memory_stores", {"name": "m"}),
])
async def test_other_peoples_resources_are_not_found(tmp_path: Path, path: str, body: dict[str, Any]) -> None:
    keys = key_store(tmp_path / "data")
    ada, bob = keys.add("ada"), keys.add("bob")
    async with catalog(tmp_path, auth="keys") as cas:
        made = await cas.known_as(ada).made(path, body)
        stranger = cas.known_as(bob)
        at = f"{path}/{made['id']}"
        assert (await stranger.get(at)).status == 404
        assert (await stranger.post(at, {"version": 1, "name": "x"})).status == 404
        assert (await stranger.post(f"{at}/archive")).status == 404
        assert (await stranger.delete(at)).status == 404
        assert made["id"] not in [one["id"] for one in (await stranger.get(path)).body["data"]]
        assert (await stranger.get(f"{path}?after_id={made['id']}")).status == 400
        assert (await cas.get(at)).status == 401
        assert (await cas.known_as(ada).get(at)).body == made
