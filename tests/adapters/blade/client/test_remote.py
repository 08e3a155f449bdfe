"""Blade spoken as a client, to our own server: what the log there has is what was heard here."""

from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import gateway.model as m
from gateway.backends.demo.directive_parser import ARGUMENT_PARSERS
from gateway.errors import BackendFailed
from gateway.ports.remote import NewRemoteSession, RemoteAsk, RemoteTurnEnd
from tests.support.dialects.blade.client import blade
from tests.support.dialects.blade.facts import CheckedDecoder, as_told, asked_like, made_up_calls, said_in
from tests.support.dialects.blade.remote_conversation import absent, kind, remote, talk, unkind
from tests.support.dialects.blade.scripted_server import scripted_server
from tests.support.gateway_server import Served, until
from tests.support.key_stores import key_store

WRITTEN = {
    "tool": '/tool calc {"expression": "6*7"} well', "title": "/title Trip", "slow": "/slow 3 there",
    "burst": "/burst 300 there", "client-tool": '/client-tool {"city": "Pera"} there',
}
MESSAGES = {"": "hello there", **{name: WRITTEN.get(name, f"/{name} there") for name in ARGUMENT_PARSERS}}
WEATHER = m.ToolSpec(name="weather", parameters={"type": "object", "properties": {"city": {"type": "string"}}})


async def compare(served: Served, session_id: str, ear: CheckedDecoder) -> None:
    """Messages, results, asks, usage, titles, notices, summaries, and how the turn came out."""
    records = await served.gateway.sessions.records("", session_id)
    said = said_in(records)
    heard = ear.facts.close(without=made_up_calls(ear.facts, said))
    assert heard.messages == said.messages
    assert heard.results == said.results
    assert heard.usage == said.usage
    asked_like(heard.asks, said.asks)
    assert [ask.kind for ask in heard.asks] == [ask.kind for ask in said.asks]
    assert heard.titles == said.titles
    assert heard.notices == said.notices
    assert [*map(without_count, heard.compactions)] == [*map(without_count, said.compactions)]
    assert heard.ends == [as_told(end) for end in said.ends]
    assert isinstance(records[-1].event, m.TurnEnded)


def without_count(summary: tuple[Any, ...]) -> tuple[Any, ...]:
    """What it takes the place of is counted in turns here, and in entries there."""
    return summary[:2] + summary[3:]


ASKING = ("permit", "parallel", "ask", "fork-ask", "continue", "rollback", "client-tool")


@pytest.mark.parametrize(("answer", "names"), [(kind, tuple(MESSAGES)), (unkind, ASKING), (absent, ASKING)])
async def test_what_the_demo_agent_does_is_heard_as_it_is(tmp_path: Path, answer: Any, names: tuple[str, ...]) -> None:
    async with blade(tmp_path) as served, remote(served.address) as server:
        async def one(name: str) -> None:
            view = await served.gateway.sessions.create("", "demo", settings=m.Settings(client_tools=(WEATHER,)))
            await compare(served, view.session_id, await talk(server, view.session_id, MESSAGES[name], answer))

        for name in names:
            with directive(name):
                await one(name)


@contextmanager
def directive(name: str) -> Iterator[None]:
    """So that a failure says which one."""
    try:
        yield
    except AssertionError as error:
        error.add_note(f"in answer to {MESSAGES[name]!r}")
        raise


async def test_another_client_can_answer(tmp_path: Path) -> None:
    """One that never heard the question: what it has to know is in the messages."""
    async with blade(tmp_path) as served, remote(served.address) as one:
        for name in ASKING:
            view = await served.gateway.sessions.create("", "demo", settings=m.Settings(client_tools=(WEATHER,)))
            async with remote(served.address) as other:
                with directive(name):
                    ear = await talk(one, view.session_id, MESSAGES[name], kind, others=[other])
                    await compare(served, view.session_id, ear)


async def test_turn_follows_turn_in_one_session(tmp_path: Path) -> None:
    async with blade(tmp_path) as served, remote(served.address) as server:
        session_id, ear = await server.open(NewRemoteSession(title="Trip")), CheckedDecoder()
        for message in ("/ask one", "two", "/fail three", "/fork four"):
            ear.is_over = False
            await talk(server, session_id, message, kind, ear=ear)
        await compare(served, session_id, ear)
        assert (await served.gateway.sessions.get("", session_id)).title == "Trip"


# -- what a session and a message can ask for -------------------------------------------------------------------------

async def test_a_session_has_the_agent_the_model_and_the_tools_that_were_asked_for(tmp_path: Path) -> None:
    agents = {"demo": {"backend": "demo"}, "other": {"backend": "demo"}}
    async with blade(tmp_path, agents=agents) as served, remote(served.address, agent="other") as server:
        tools = {"clock": m.Permission.ALLOW, "calc": m.Permission.DENY}
        session_id = await server.open(NewRemoteSession(settings=m.Settings(model="big-1", tools=tools)))
        view = await served.gateway.sessions.get("", session_id)
        assert (view.agent, view.settings.model) == ("other", "big-1")
        assert set(view.settings.tools or ()) == {"clock", "search", "erase"}
        none = await served.gateway.sessions.get("", await server.open(NewRemoteSession(settings=m.Settings(tools={}))))
        assert none.settings.tools == {}


async def test_a_message_brings_its_settings_with_it(tmp_path: Path) -> None:
    async with blade(tmp_path) as served, remote(served.address) as server:
        session_id = await server.open(NewRemoteSession())
        settings = m.Settings(model="big-2", options={"tone": "loud"}, secrets={"token": "hush"})
        said = m.SendMessage(content="hello", mode="planning", variables={"room": 7})
        await talk(server, session_id, said, settings=settings)
        [sent] = [record.event.command for record in await served.gateway.sessions.records("", session_id)
                  if isinstance(record.event, m.InputAccepted)]
        assert isinstance(sent, m.SendMessage)
        assert (sent.model, sent.mode) == ("big-2", "planning")
        assert sent.variables == {"tone": "loud", "token": "hush", "room": "7"}


async def test_pictures_and_files_reach_the_agent(tmp_path: Path) -> None:
    parts = (m.TextPart(text="look"), m.ImagePart(url="https://example.test/a.png"),
             m.FilePart(name="a.txt", url="data:text/plain;base64,aGk="))
    async with blade(tmp_path) as served, remote(served.address) as server:
        ear = await talk(server, await server.open(NewRemoteSession()), m.SendMessage(content=parts))
        assert ear.facts.messages["root"] == [[("text", "You said: look [1 image] [1 file]")]]


async def test_a_value_that_fits_a_schema(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    async with blade(tmp_path) as served, remote(served.address) as server:
        session_id = await server.open(NewRemoteSession())
        ear = await talk(server, session_id, m.SendMessage(content="Pera", output_schema=schema, headless=True))
        await compare(served, session_id, ear)
        assert ear.facts.ends[0][3] == {"city": "Pera"}


async def test_a_headless_chat_asks_for_no_permission(tmp_path: Path) -> None:
    async with blade(tmp_path) as served, remote(served.address) as server:
        ear = await talk(
            server, await server.open(NewRemoteSession()), m.SendMessage(content="/permit there", headless=True)
        )
        assert ear.facts.asks == []
        assert ear.facts.ends == [(m.Outcome.COMPLETED, m.StopReason.END_TURN, None, None)]


async def test_a_summary_is_asked_for(tmp_path: Path) -> None:
    async with blade(tmp_path) as served, remote(served.address) as server:
        session_id, ear = await server.open(NewRemoteSession()), CheckedDecoder()
        for said in ("hello", m.Compact(), "again"):
            ear.is_over = False
            await talk(server, session_id, said, ear=ear)
        await compare(served, session_id, ear)
        assert len(ear.facts.compactions) == 1


async def test_what_a_server_tells_of_its_agent(tmp_path: Path) -> None:
    async with blade(tmp_path) as served, remote(served.address) as plain, remote(f"{served.address}/api") as other:
        card = await plain.about()
        assert (card.model, card.title, card.capabilities.client_tools) == ("demo-1", "Demo agent", False)
        assert await other.about() == card, "the address of the routes will do as well"
        assert (await talk(other, await other.open(NewRemoteSession()), "hello")).is_over


async def test_a_server_that_tells_nothing_of_itself() -> None:
    async with scripted_server() as served, remote(served.address, agent="planner") as server:
        served.answer = lambda request: web.Response(status=501)
        assert await server.about() == m.AgentCard(
            name="planner", capabilities=m.AgentCapabilities(images=("http", "data"), client_tools=False),
        )


async def test_only_who_has_a_key_is_let_in(tmp_path: Path) -> None:
    key = key_store(tmp_path / "data").add("ann")
    async with blade(tmp_path, auth="keys") as served, remote(served.address, key) as server:
        session_id = await server.open(NewRemoteSession())
        assert (await talk(server, session_id, "hello")).is_over
        async with remote(served.address, "sk-wrong-key") as stranger:
            for refused in (stranger.open(NewRemoteSession()), stranger.about(), stranger.interrupt(session_id),
                            talk(stranger, session_id, "hello")):
                with pytest.raises(BackendFailed) as failure:
                    await refused
                assert "sk-wrong-key" not in failure.value.message


# -- interruptions ----------------------------------------------------------------------------------------------------

async def test_a_turn_is_interrupted_in_the_middle(tmp_path: Path) -> None:
    async with blade(tmp_path) as served, remote(served.address) as server:
        session_id, ear = await server.open(NewRemoteSession()), CheckedDecoder()
        ear.go_on()
        async with aclosing(server.start_turn(session_id, m.SendMessage(content="/slow 2000"))) as chat:
            async for heard in chat:
                ear.take([heard])
                if isinstance(heard, m.BlockDelta) and not ear.is_over:
                    ear.is_over = True
                    await server.interrupt(session_id)
        await compare(served, session_id, ear)
        assert ear.facts.ends == [(m.Outcome.INTERRUPTED, m.StopReason.INTERRUPTED, None, None)]


async def test_who_stops_listening_stops_nothing(tmp_path: Path) -> None:
    async with blade(tmp_path) as served, remote(served.address) as server:
        session_id = await server.open(NewRemoteSession())
        async with aclosing(server.start_turn(session_id, m.SendMessage(content="/slow 2000"))) as chat:
            async for heard in chat:
                if isinstance(heard, m.BlockDelta):
                    break
        view = await served.gateway.sessions.get("", session_id)
        assert view.status is m.SessionStatus.RUNNING
        with pytest.raises(BackendFailed, match="already has an active chat"):
            await talk(server, session_id, "and you?")
        await server.interrupt(session_id)
        await until(lambda: view.status is m.SessionStatus.IDLE)
        assert (await talk(server, session_id, "hello")).is_over


async def test_a_turn_that_waits_can_be_interrupted(tmp_path: Path) -> None:
    async with blade(tmp_path) as served, remote(served.address) as server:
        session_id = await server.open(NewRemoteSession())
        async with aclosing(server.start_turn(session_id, m.SendMessage(content="/ask"))) as chat:
            heard = [one async for one in chat]
        assert any(isinstance(one, RemoteAsk) for one in heard) and not isinstance(heard[-1], RemoteTurnEnd)
        await server.interrupt(session_id)
        view = await served.gateway.sessions.get("", session_id)
        await until(lambda: view.status is m.SessionStatus.IDLE)
        await server.interrupt(session_id)
        assert (await talk(server, session_id, "hello")).is_over


async def test_a_session_that_is_nobodys_cannot_be_talked_to(tmp_path: Path) -> None:
    async with blade(tmp_path) as served, remote(served.address) as server:
        for refused in (server.interrupt("sess_nobody"), talk(server, "sess_nobody", "hello"),
                        talk(server, "sess_nobody", m.Compact())):
            with pytest.raises(BackendFailed, match="refused"):
                await refused
