"""What servers tell of their agents, each in its own way."""

from typing import Any

import pytest

from adapters.zenflux.client.readers import read_list, unwrap
from gateway.errors import Overloaded
from tests.support.dialects.zenflux.cutting_proxy import SHORT, ScriptedConnection, remote, scripted_server

AGENTS = {"total": 2, "agents": [
    {"agent_id": "helper", "name": "Helper", "description": "Helps", "model": "glm"}, {"id": "other", "name": "Other"}]}
SCHEMAS = {"tools": [{"name": "ls", "description": "Lists", "input_schema": {"type": "object"}}, {"nameless": 1}, 3]}


async def silent(talking: ScriptedConnection) -> None:
    """Nobody opens a socket here."""


async def test_a_server_that_lists_its_agents_and_tools() -> None:
    async with scripted_server(silent) as server, remote(server.address) as there:
        server.replies["GET", "/agents"] = 200, AGENTS
        server.replies["GET", "/tools/schemas"] = 200, SCHEMAS
        card = await there.about()
        assert (card.name, card.title, card.description, card.model) == ("helper", "Helper", "Helps", "glm")
        assert [(tool.spec.name, tool.spec.parameters) for tool in card.tools] == [("ls", {"type": "object"})]
        async with remote(server.address, agent="other") as chosen:
            card = await chosen.about()
            assert (card.name, card.title, card.model) == ("other", "Other", None)


async def test_a_server_that_tells_nothing() -> None:
    async with scripted_server(silent) as server, remote(server.address) as there:
        card = await there.about()
        assert (card.name, card.tools, card.capabilities.client_tools) == ("zenflux", (), False)


async def test_a_server_that_fails_is_not_taken_for_one_that_tells_nothing() -> None:
    async with scripted_server(silent) as server, remote(server.address, SHORT) as there:
        server.replies["GET", "/agents"] = 503, None
        with pytest.raises(Overloaded):
            await there.about()


@pytest.mark.parametrize(("body", "found"), [
    ({"code": 200, "data": {"agents": [{"id": "a"}]}}, ["a"]), ({"agents": [{"id": "a"}, 2]}, ["a"]),
    ([{"id": "a"}], ["a"]), ({"data": None}, []), ("words", []), ({"agents": {"id": "a"}}, []),
])
def test_lists_are_found_with_and_without_a_wrapper(body: Any, found: Any) -> None:
    assert [one["id"] for one in read_list("list.agents", unwrap(body))] == found
