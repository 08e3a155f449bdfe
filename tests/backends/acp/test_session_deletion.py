"""The folder of a session goes with the session, unless the operator has said where folders are to be."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
import structlog

from gateway.backends.acp import AcpBackend, AcpSettings
from tests.backends.acp.test_backend import interrupted
from tests.backends.acp.test_served import steps
from tests.support.backends.acp_turns import AGENT, Turn, played, text
from tests.support.dialects.aap.client import Client as Aap
from tests.support.dialects.cas.client import Client as Cas
from tests.support.gateway_server import serving, until

PLAIN: dict[str, Any] = {"command": sys.executable, "args": ["-I", "-S", str(AGENT)]}
WRITING = ["request", "fs/write_text_file", {"path": "deep/a.txt", "content": "mine"}]


def made(folder: Path, **given: Any) -> AcpBackend:
    return AcpBackend(AcpSettings.model_validate({**PLAIN, **given}), folder)


async def test_a_folder_goes_with_its_session(tmp_path: Path) -> None:
    backend, place = made(tmp_path), tmp_path / "data" / "acp"
    await played(backend, WRITING)
    (place / "sess_2").mkdir()
    assert (place / "sess_1" / "deep" / "a.txt").read_text() == "mine"
    await backend.forget("sess_1")
    await backend.forget("one that never had a turn")
    assert [folder.name for folder in place.iterdir()] == ["sess_2"]
    await backend.close()


async def test_a_folder_that_the_operator_named_stays(tmp_path: Path) -> None:
    backend = made(tmp_path, root="data/acp")
    await played(backend, WRITING)
    await backend.forget("sess_1")
    await backend.close()
    assert (tmp_path / "data" / "acp" / "sess_1" / "deep" / "a.txt").read_text() == "mine"


async def test_a_turn_that_says_goodbye_is_waited_for(tmp_path: Path) -> None:
    backend, place = made(tmp_path, cancel_seconds=0.5), tmp_path / "data" / "acp" / "sess_1"
    leaving = asyncio.create_task(interrupted(backend, Turn(WRITING, ["say", "one "], ["deaf"]), "block.delta"))
    await until(lambda: leaving.done() or (backend._turns.get("sess_1") and (place / "deep" / "a.txt").exists()))
    await backend.forget("sess_1")
    assert place.exists() or leaving.done()
    await leaving
    await until(lambda: not place.exists())
    await backend.close()
    assert not backend._removing


async def test_what_lies_elsewhere_stays_and_what_cannot_be_removed_is_told(tmp_path: Path) -> None:
    backend, place = made(tmp_path), tmp_path / "data" / "acp"
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.txt").write_text("precious")
    (place / "sess_1").mkdir(parents=True)
    (place / "sess_1" / "link").symlink_to(tmp_path / "outside")
    (place / "sess_2").symlink_to(tmp_path / "outside")
    await backend.forget("sess_1")
    with structlog.testing.capture_logs() as told:
        await backend.forget("sess_2")
    await backend.forget("../../outside")
    assert (tmp_path / "outside" / "a.txt").read_text() == "precious" and not (place / "sess_1").exists()
    assert [line["folder"] for line in told] == [str(place / "sess_2")]
    await backend.close()


@pytest.mark.parametrize("shadow", [None, {"backend": "demo"}], ids=["alone", "with a shadow"])
async def test_who_deletes_a_session_deletes_its_folder(tmp_path: Path, shadow: Any) -> None:
    more = {"shadow": shadow} if shadow else {}
    async with serving(tmp_path, agents={"demo": {"backend": "acp", "settings": PLAIN}}, **more) as served:
        aap, cas, place = Aap(served), Cas(served), tmp_path / "data" / "acp"
        first, second = await aap.session(), await aap.session()
        for session in (first, second):
            assert (await aap.turn(session, steps(WRITING, text("Done.")))).text.endswith("Done.")
        assert {folder.name for folder in place.iterdir()} == {first, second}
        async with served.http.delete(served.url(f"/aap/sessions/{first}")) as response:
            assert response.status < 300
        assert [folder.name for folder in place.iterdir()] == [second]
        await cas.ok("DELETE", f"/sessions/{second}")
        assert list(place.iterdir()) == []
