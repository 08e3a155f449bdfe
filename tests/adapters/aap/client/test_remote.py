"""AAP spoken as a client, to a real gateway: every directive of its agent is heard as its own log has it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from adapters.aap.client.remote import RemoteSessionState
from adapters.aap.client.requests import SentSettings
from gateway.backends.demo.directive_parser import ARGUMENT_PARSERS
from gateway.errors import BackendFailed, Unsupported
from gateway.ports.remote import NewRemoteSession, RemoteTurnEnd
from tests.support.dialect_tables import table
from tests.support.dialects.aap.conversations import Fact, facts
from tests.support.dialects.aap.remote_conversation import (
    SETTINGS,
    RemoteConversation,
    all_of,
    answer_to,
    conversing,
    spoken_to,
)
from tests.support.gateway_server import Served, serving, until

SAID = {
    "think": "/think hello", "tool": "/tool search {\"query\": \"dragoman\"} hello", "client-tool": "/client-tool",
    "provider-tool": "/provider-tool hello", "permit": "/permit hello", "parallel": "/parallel hello", "ask": "/ask",
    "fork": "/fork look", "continue": "/continue hello", "rollback": "/rollback hello", "fail": "/fail",
    "fail-start": "/fail-start", "refuse": "/refuse", "max-tokens": "/max-tokens one two", "slow": "/slow 2",
    "burst": "/burst 300", "annotate": "/annotate hello", "bridge": "/bridge", "ui": "/ui", "image": "/image there",
    "plan": "/plan hello", "title": "/title A title\nhello", "compact": "/compact hello", "json": "/json",
    "fork-ask": "/fork-ask look", "max-steps": "/max-steps hello", "card": "/card hello",
}


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path, dialects={"aap": {}}, log="memory") as served:
        yield served


@pytest.fixture
async def talk(served: Served) -> AsyncIterator[RemoteConversation]:
    async with conversing(served.url("/aap")) as conversation:
        yield conversation


async def records(served: Served, session_id: str) -> list[m.Record]:
    return list(await served.gateway.sessions.records("", session_id))


def told(records: list[m.Record], *, without: tuple[str, ...] = ()) -> list[Fact]:
    """Facts as AAP can tell them: results and asks that come together come in any order, ends in its few words."""
    found: list[Fact] = []
    said = _returned(records)
    for fact in facts(records):
        if fact[0] == "result" and fact[1] in said:
            fact = ("result", fact[1], said[fact[1]], *fact[3:])
        if fact[0] == "ended":
            fact = ("ended", table("aap").word("stop_reason", fact[1]))
        if not any(word in without for word in fact[1:3] if isinstance(word, str)):
            found.append(fact)
    together = {"result", "asked"}
    for at in range(1, len(found)):  # one pass of sorting by insertion, inside of each run
        while at and found[at][0] in together and found[at - 1][0] == found[at][0] and _key(found[at - 1]) > _key(
                found[at]):
            found[at - 1], found[at] = found[at], found[at - 1]
            at -= 1
    return found


def _returned(records: list[m.Record]) -> dict[str, m.Content]:
    """What was returned as the answer to questions, by call: who returned it is not told what the agent made of it."""
    asks = {r.event.request_id: r.event.call_id for r in records if isinstance(r.event, m.InputRequested)}
    commands = [record.event.command for record in records if isinstance(record.event, m.InputAccepted)]
    return {asks[c.request_id] or "": c.said for c in commands if isinstance(c, m.AnswerQuestion) and c.said}


def _key(fact: Fact) -> str:
    return str(fact[1:3])


def test_every_directive_is_tried() -> None:
    assert set(SAID) == set(ARGUMENT_PARSERS)


@pytest.mark.parametrize("kindly", [True, False], ids=["kindly", "unkindly"])
async def test_every_directive_is_heard_as_the_log_has_it(served: Served, kindly: bool) -> None:
    async with spoken_to(served.url("/aap")) as remote:
        for name in [name for name in SAID if name != "fork-ask"]:
            talk = RemoteConversation(remote, await remote.open(NewRemoteSession(settings=SETTINGS)))
            ended = await talk.say(SAID[name], kindly=kindly)
            log = await records(served, talk.session_id)
            assert told(talk.house.records) == told(log), name
            [end] = [record.event for record in log if isinstance(record.event, m.TurnEnded)]
            is_error = table("aap").word("stop_reason", end.stop_reason) == "error"  # so are steps that ran out
            assert ended.outcome is (m.Outcome.FAILED if is_error else end.outcome), name
            assert (ended.fault is not None) is is_error, name
            assert denials(talk.house.records) == denials(log), name


def denials(records: list[m.Record]) -> list[str]:
    """What came back as an error because we said no; of other results AAP does not say whether they are errors."""
    said = [(m.text_of(r.event.content), r.event.is_error) for r in records if isinstance(r.event, m.ToolReturned)]
    return [text for text, is_error in said if is_error and text.startswith("Tool call denied")]


@pytest.mark.parametrize("mode", ["message", "none"])
async def test_an_agent_that_does_not_stream_deltas_is_heard_as_it_can_be(tmp_path: Path, mode: str) -> None:
    agents = {"demo": {"backend": "demo", "capabilities": {"streaming": [mode]}}}
    async with serving(tmp_path, agents=agents) as served, spoken_to(served.url("/aap")) as remote:
        for name in ("think", "parallel", "ask", "image", "refuse", "fail", "fork"):
            talk = RemoteConversation(remote, await remote.open(NewRemoteSession(settings=SETTINGS)))
            await talk.say(SAID[name])
            assert told(talk.house.records) == told(await records(served, talk.session_id)), name


@pytest.mark.parametrize("kindly", [True, False], ids=["kindly", "unkindly"])
async def test_what_a_sub_agent_asks_is_asked_as_the_agents_own(
    served: Served, talk: RemoteConversation, kindly: bool,
) -> None:
    await talk.say("/fork-ask look", kindly=kindly)
    [[asked], []] = talk.asked
    assert isinstance(asked.ask, m.QuestionAsk) and [q.header for q in asked.ask.questions] == ["Colour", "Fruits"]
    log = await records(served, talk.session_id)
    call = asked.ask.call
    assert call is not None and call.name == "AskUserQuestion"
    asking = (call.call_id, "question", "AskUserQuestion")
    assert told(talk.house.records, without=asking) == told(log)
    answered = [r.event for r in talk.house.records if isinstance(r.event, m.ToolReturned)]
    assert [r.content for r in answered if r.call_id == call.call_id] == [
        "Colour: Red; Fruits: Apple" if kindly else "neither"]


async def test_what_was_asked_and_taken_back_is_answered_for_all(served: Served, talk: RemoteConversation) -> None:
    """A server of AAP's cannot be told that nobody answers: it is told no, or that the call was cancelled."""
    for words in ("/parallel hello", "/ask", "/continue", "/rollback"):
        pending = await talk.hear(talk.remote.start_turn(talk.session_id, m.SendMessage(content=words)))
        assert pending
        while pending:
            taken_back = [(asked, m.Withdraw(request_id="a")) for asked in pending]
            pending = await talk.hear(talk.remote.answer(talk.session_id, taken_back))
    assert told(talk.house.records) == told(await records(served, talk.session_id))


# -- sessions ---------------------------------------------------------------------------------------------------------

async def test_what_the_server_tells_of_its_agent(served: Served) -> None:
    async with spoken_to(served.url("/aap")) as remote:
        card = await remote.about()
        assert (card.name, card.title, card.model) == ("demo", "Demo agent", None)
        assert [tool.spec.name for tool in card.tools] == ["clock", "calc", "search", "erase"]
        assert [(o.name, o.kind, o.choices) for o in card.options][1] == ("mood", "select", ("plain", "loud"))
        assert card.capabilities.images == ("http", "data")


async def test_a_session_starts_with_all_that_aap_can_say(served: Served) -> None:
    history = (
        m.SeedMessage(role=m.Role.USER, content=(m.TextPart(text="what is it?"), m.ImagePart(url="https://example.test/a.png"),
                                             m.ImagePart(url="http://example.test/b.png"))),
        m.SeedMessage(role=m.Role.ASSISTANT, content=(m.ToolUsePart(call=m.ToolCall(call_id="c1", name="clock")),)),
        m.SeedMessage(role=m.Role.TOOL, content="noon", call_id="c1"),
        m.SeedMessage(role=m.Role.ASSISTANT, content="It is noon."),
    )
    settings = m.Settings(
        tools={
            "calc": m.Permission.ASK,
            "clock": m.Permission.ALLOW,
            "search": m.Permission.DENY,
            "unheard": m.Permission.ASK,
        },
        client_tools=SETTINGS.client_tools,
        options={"mood": "loud", "unheard": "x"},
        secrets={"api_key": "sk-very-secret"},
        system="Be brief.",
        model="m-9",
    )
    async with spoken_to(served.url("/aap")) as remote:
        session_id = await remote.open(NewRemoteSession(settings=settings, history=history, title="unheard"))
        view = await served.gateway.sessions.get("", session_id)
        assert view.settings.tools == {"calc": m.Permission.ASK, "clock": m.Permission.ALLOW}
        assert view.settings.client_tools == SETTINGS.client_tools
        assert (view.settings.options, view.settings.secrets) == ({"mood": "loud"}, {"api_key": "sk-very-secret"})
        assert [entry.role for entry in view.entries] == ["system", "user", "assistant", "tool", "assistant"]
        assert view.entries[1].content == (*history[0].content[:2], m.TextPart(text="![image](http://example.test/b.png)"))
        assert view.entries[3].call_id == "c1"


async def test_where_nothing_is_said_of_tools_the_agents_own_are_allowed(served: Served) -> None:
    async with conversing(served.url("/aap"), m.Settings()) as talk:
        view = await served.gateway.sessions.get("", talk.session_id)
        own = dict.fromkeys(("clock", "calc", "search"), m.Permission.ALLOW)
        assert view.settings.tools == {**own, "erase": m.Permission.ASK}, "as the server trusts them"
        assert await talk.say("/permit") == RemoteTurnEnd()
        [[asked], _] = talk.asked
        assert isinstance(asked.ask, m.PermissionAsk)
        assert (asked.ask.call.name, talk.house.records[-1].event.name) == ("erase", "turn.ended")
        assert view.settings.options == {}, "defaults are the server's to fill in"


async def test_settings_that_change_go_with_the_next_message(served: Served, talk: RemoteConversation) -> None:
    async def settings() -> m.Settings:
        return (await served.gateway.sessions.get("", talk.session_id)).settings

    await talk.say("hello", settings=SETTINGS)
    before = len(await records(served, talk.session_id))
    await talk.say("hello", settings=SETTINGS)
    configured = [r for r in await records(served, talk.session_id) if isinstance(r.event, m.InputAccepted)
                  and r.event.command.kind == "configure"]
    assert before and not configured, "what has not changed is not said again"
    other = m.Settings(tools={"calc": m.Permission.ALLOW}, client_tools=(m.ToolSpec(name="lamp", description="On.",
                     parameters={"type": "object"}),), options={"mood": "loud", "greeting": ""},
                     secrets={"api_key": "sk-other-secret"})
    await talk.say("hello", settings=other)
    now = await settings()
    assert (now.tools, [tool.name for tool in now.client_tools]) == ({"calc": m.Permission.ALLOW}, ["lamp"])
    assert (now.options, now.secrets) == ({"mood": "loud"}, {"api_key": "sk-other-secret"})
    await talk.say("hello", settings=SETTINGS)
    assert (await settings()).options == {"mood": "plain"}
    await talk.say("/client-tool", settings=SETTINGS)
    assert talk.asked[-2][0].ask.kind == "client_tool"


async def test_a_client_that_was_restarted_goes_on_where_a_turn_waits(served: Served) -> None:
    for words, kind in (("/permit", "permission"), ("/fork-ask look", "question"), ("/client-tool", "client_tool")):
        async with conversing(served.url("/aap")) as talk:
            [asked] = await talk.hear(talk.remote.start_turn(talk.session_id, m.SendMessage(content=words)))
            assert asked.ask.kind == kind
            async with spoken_to(served.url("/aap")) as another:
                assert await talk.hear(another.answer(talk.session_id, [(asked, answer_to(asked.ask))])) == []
                results = [f for f in facts(talk.house.records) if f[0] == "result"]
                assert len(results) == len([f for f in facts(talk.house.records) if f[0] == "call"])
                await all_of(another.start_turn(talk.session_id, m.SendMessage(content="/client-tool")))


async def test_a_message_abandons_what_was_asked(served: Served, talk: RemoteConversation) -> None:
    assert await talk.hear(talk.remote.start_turn(talk.session_id, m.SendMessage(content="/permit")))
    await talk.remote.interrupt(talk.session_id)
    heard = await all_of(talk.remote.start_turn(talk.session_id, m.SendMessage(content="never mind")))
    assert heard[-1] == RemoteTurnEnd()
    view = await served.gateway.sessions.get("", talk.session_id)
    assert (view.status, view.asks) == (m.SessionStatus.IDLE, {})


async def test_what_aap_cannot_ask_for_is_refused(talk: RemoteConversation) -> None:
    with pytest.raises(Unsupported, match="compaction"):
        await all_of(talk.remote.start_turn(talk.session_id, m.Compact()))


# -- keys -------------------------------------------------------------------------------------------------------------

async def test_the_key_lets_us_in_and_is_never_repeated(tmp_path: Path) -> None:
    async with serving(tmp_path, auth="keys") as served:
        key = await served.gateway.keys.add("ann")
        async with conversing(served.url("/aap"), key=key) as talk:
            assert await talk.say("hello") == RemoteTurnEnd()
            assert (await served.gateway.sessions.get("ann", talk.session_id)).turns == 1
        wrong = "dgm_a-key-that-nobody-knows"
        async with spoken_to(served.url("/aap"), key=wrong) as remote:
            assert (await remote.about()).name == "demo", "needs no key"
            with pytest.raises(BackendFailed, match="answered 401") as refused:
                await remote.open(NewRemoteSession())
            assert wrong not in str(refused.value) and wrong not in repr(vars(remote).get("_memory"))


# -- interrupting -----------------------------------------------------------------------------------------------------

async def interrupted(served: Served, talk: RemoteConversation) -> list[Any]:
    heard: list[Any] = []
    talk.house.start()
    async with asyncio.timeout(30):
        async for one in talk.remote.start_turn(talk.session_id, m.SendMessage(content="/slow 2000")):
            heard.append(one)
            if isinstance(one, m.BlockDelta) and one.delta.startswith("3"):
                await talk.remote.interrupt(talk.session_id)
    talk.house.take(heard)
    return heard


@pytest.mark.parametrize("on_disconnect", ["cancel", "continue"])
async def test_to_interrupt_ends_the_turn_there_too(tmp_path: Path, on_disconnect: str) -> None:
    async with serving(tmp_path, on_disconnect=on_disconnect) as served, conversing(served.url("/aap")) as talk:
        heard = await interrupted(served, talk)
        assert heard[-1] == RemoteTurnEnd(stop_reason=m.StopReason.INTERRUPTED, outcome=m.Outcome.INTERRUPTED)
        assert heard[-2].outcome is m.Outcome.INTERRUPTED, "the message"
        heard = await all_of(talk.remote.start_turn(talk.session_id, m.SendMessage(content="hello")))
        assert heard[-1] == RemoteTurnEnd(), "the next message waits until the server has noticed"
        log = await records(served, talk.session_id)
        assert [r.event.outcome for r in log if isinstance(r.event, m.TurnEnded)] == ["interrupted", "completed"]
        assert any(isinstance(r.event, m.InputAccepted) and isinstance(r.event.command, m.Interrupt) for r in log)


async def test_a_turn_that_waits_there_is_ended_too(served: Served, talk: RemoteConversation) -> None:
    await talk.hear(talk.remote.start_turn(talk.session_id, m.SendMessage(content="/continue")))
    await talk.remote.interrupt(talk.session_id)
    view = await served.gateway.sessions.get("", talk.session_id)
    assert (view.status, view.asks) == (m.SessionStatus.IDLE, {})
    assert await talk.say("hello") == RemoteTurnEnd()


async def test_an_interruption_reaches_a_turn_that_has_said_nothing_yet(tmp_path: Path) -> None:
    """The agent is silent for a minute before each word."""
    agents = {"demo": {"backend": "demo", "settings": {"delay": 60}}}
    async with (
        serving(tmp_path, on_disconnect="cancel", agents=agents) as served, conversing(served.url("/aap")) as talk,
    ):
        turn = asyncio.ensure_future(all_of(talk.remote.start_turn(talk.session_id, m.SendMessage(content="hello"))))
        await until_it_is(m.SessionStatus.RUNNING, served, talk)
        await talk.remote.interrupt(talk.session_id)
        async with asyncio.timeout(60):
            assert (await turn)[-1].outcome is m.Outcome.INTERRUPTED
        await until_it_is(m.SessionStatus.IDLE, served, talk)


async def until_it_is(status: m.SessionStatus, served: Served, talk: RemoteConversation) -> None:
    view = await served.gateway.sessions.get("", talk.session_id)
    await until(lambda: view.status is status)


async def test_to_interrupt_where_nothing_runs_does_nothing(talk: RemoteConversation) -> None:
    await talk.remote.interrupt(talk.session_id)
    await talk.remote.interrupt("nobody's")
    assert await talk.say("hello") == RemoteTurnEnd()


async def test_a_generator_that_is_closed_leaves_nothing_behind(talk: RemoteConversation) -> None:
    heard = talk.remote.start_turn(talk.session_id, m.SendMessage(content="/slow 2000"))
    async for one in heard:
        if isinstance(one, m.BlockDelta):
            break
    await heard.aclose()
    assert talk.remote._streams == {}


async def test_several_sessions_are_spoken_to_at_once(served: Served) -> None:
    async with spoken_to(served.url("/aap")) as remote:
        talks = [RemoteConversation(remote, await remote.open(NewRemoteSession(settings=SETTINGS))) for _ in range(5)]
        ends = await asyncio.gather(*(talk.say(f"/parallel number {n}") for n, talk in enumerate(talks)))
        assert ends == [RemoteTurnEnd()] * 5
        for number, talk in enumerate(talks):
            assert f"You said: number {number}" in str(facts(talk.house.records))


async def test_a_denial_is_told_with_its_reason(served: Served, talk: RemoteConversation) -> None:
    await talk.say("/permit", kindly=False)
    decided = [r.event.command for r in await records(served, talk.session_id) if isinstance(r.event, m.InputAccepted)
               and isinstance(r.event.command, m.DecidePermission)]
    assert [(one.granted, one.reason) for one in decided] == [(False, "not today")]


async def test_a_fault_is_told_in_words_of_ours(talk: RemoteConversation) -> None:
    ended = await talk.say("/fail")
    assert isinstance(ended.fault, m.Fault) and "did not say which" in ended.fault.message
    await until(lambda: not talk.remote._streams)


def test_what_is_remembered_of_a_session_is_never_printed() -> None:
    known = RemoteSessionState()
    known.sent_settings = SentSettings(tools=[], options={"api_key": "s3cret"}, client_tools=[])
    assert "s3cret" not in repr(known)
