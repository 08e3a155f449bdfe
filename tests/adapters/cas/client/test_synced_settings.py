"""Settings that change while a session is there reach the server's session, as far as CAS can say them."""

from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from adapters.cas.client.provisioning import FIXED_AGENT_STATUSES, SyncedSettings, changeable_settings
from adapters.cas.client.remote import Remote
from gateway.backends.demo.backend import DEMO_CARD
from gateway.client.role_parts import MAX_SESSIONS
from gateway.errors import BackendFailed
from gateway.ports.remote import NewRemoteSession, RemoteAddress, Timeouts
from tests.support.gateway_server import serving

AT = "/api/v1/cloud"
MINE, YOURS = (m.ToolSpec(name=name, description="d", parameters={"type": "object"}) for name in ("mine", "yours"))
FIRST = m.Settings(tools={"clock": m.Permission.ALLOW}, client_tools=(MINE,))
POLICED = {"type": "agent_toolset_20260401", "default_config": {"permission_policy": {"type": "always_ask"}}}
LATER = m.Settings(tools={"calc": m.Permission.ASK}, client_tools=(MINE, YOURS))


async def test_the_agent_has_the_tools_of_now(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects={"cas": {}}, log="memory") as served:
        remote = Remote(RemoteAddress(url=served.url(AT), patience=Timeouts()))
        session = await remote.open(NewRemoteSession(settings=FIRST))
        for settings in (FIRST, LATER, m.Settings(), LATER):
            heard = [one async for one in remote.start_turn(session, m.SendMessage(content="hello"), settings)]
            assert heard
            view = await served.gateway.sessions.get("", session)
            assert view.settings.client_tools == settings.client_tools
            own = {tool.spec.name: tool.permission for tool in DEMO_CARD.tools}
            assert view.settings.tools == (settings.tools or own)
        await remote.close()


class Server:
    """Takes changes, or does not."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.said: list[tuple[str, Any]] = []

    async def post(self, path: str, body: Any) -> dict[str, Any]:
        self.said.append((path, body))
        if self.status != 200:
            raise BackendFailed("no", details={"upstream_status": self.status})
        return {}

    async def own_tools(self) -> list[Any]:
        return [POLICED]


async def test_where_nobody_says_anything_any_more_the_agent_has_its_own_tools_again() -> None:
    server = Server()
    chosen = SyncedSettings(server.post, server.own_tools)
    chosen.note("s", FIRST)
    await chosen.send_changes("s", m.Settings())
    await chosen.send_changes("s", m.Settings(client_tools=(MINE,)))
    plain, with_tool = [body["agent"]["tools"] for _, body in server.said]
    assert (plain, with_tool[0], with_tool[1]["name"]) == ([POLICED], POLICED, "mine")


async def test_only_what_has_changed_is_said_and_only_once() -> None:
    server = Server()
    chosen = SyncedSettings(server.post, server.own_tools)
    chosen.note("s", FIRST)
    for settings in (FIRST, LATER, LATER, m.Settings(tools=LATER.tools, client_tools=LATER.client_tools, model="m")):
        await chosen.send_changes("s", settings)
    assert server.said == [("/sessions/s", {"agent": {"tools": changeable_settings(LATER).tools}})]


async def test_of_a_session_that_nobody_remembers_only_the_unusual_is_said() -> None:
    server = Server()
    chosen = SyncedSettings(server.post, server.own_tools)
    await chosen.send_changes("plain", m.Settings(model="m"))
    await chosen.send_changes("special", LATER)
    assert [path for path, _ in server.said] == ["/sessions/special"]


@pytest.mark.parametrize("status", FIXED_AGENT_STATUSES)
async def test_a_server_that_keeps_its_agents_is_asked_once_for_each_change(status: int) -> None:
    server = Server(status)
    chosen = SyncedSettings(server.post, server.own_tools)
    chosen.note("s", FIRST)
    for _ in range(3):
        await chosen.send_changes("s", LATER)
    assert len(server.said) == 1


async def test_any_other_failure_is_told_and_the_change_is_not_forgotten() -> None:
    server = Server(500)
    chosen = SyncedSettings(server.post, server.own_tools)
    chosen.note("s", FIRST)
    for _ in range(2):
        with pytest.raises(BackendFailed):
            await chosen.send_changes("s", LATER)
    assert len(server.said) == 2


def test_not_more_than_so_many_sessions_are_remembered() -> None:
    chosen = SyncedSettings(Server().post, Server().own_tools)
    for number in range(MAX_SESSIONS + 10):
        chosen.note(str(number), FIRST)
    assert len(chosen._sent) == MAX_SESSIONS
