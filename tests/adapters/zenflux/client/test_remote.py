"""ZenFlux spoken as a client, to a real gateway: what it hears is what that gateway's log has, whatever is answered."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from adapters.zenflux.client.remote import Remote
from gateway.backends.demo.directive_parser import ARGUMENT_PARSERS
from gateway.backends.demo.interactive_directives import QUESTIONS
from gateway.errors import BackendFailed, GatewayError, Unsupported
from gateway.ports.remote import DecodedItem, NewRemoteSession, RemoteAsk, RemoteTurnEnd
from tests.support.dialects.zenflux.cutting_proxy import remote
from tests.support.dialects.zenflux.facts import Facts, as_heard, facts, told
from tests.support.gateway_server import Served, serving, until

TOOLS = m.Settings(client_tools=(m.ToolSpec(name="wink", parameters={"type": "object"}),))
Decide = Callable[[RemoteAsk], m.Answer]


@asynccontextmanager
async def house(folder: Path, **zenflux: Any) -> AsyncIterator[tuple[Served, Remote]]:
    async with serving(folder, dialects={"zenflux": zenflux}, log="memory") as served, remote(served.address) as there:
        yield served, there


async def talk(there: Remote, session_id: str, words: str, decide: Decide) -> list[DecodedItem]:
    """A whole turn, whatever is asked in it."""
    heard: list[DecodedItem] = []
    stream = there.start_turn(session_id, m.SendMessage(content=words))
    while not (heard and isinstance(heard[-1], RemoteTurnEnd)):
        async with aclosing(stream):
            new = [one async for one in stream]
        assert new, "a stream that ends says why"
        heard += new
        asked = [one for one in new if isinstance(one, RemoteAsk)]
        stream = there.answer(session_id, [(one, decide(one)) for one in asked])
    return heard


async def log_of(served: Served, session_id: str) -> list[Facts]:
    return told(list(await served.gateway.sessions.records("", session_id)))


def agree(asked: RemoteAsk) -> m.Answer:
    return {
        "permission": m.DecidePermission(request_id="", granted=True),
        "question": m.AnswerQuestion(request_id="", selections={"0": (1,), "1": (0, 2)}, custom={"1": "Date"}),
        "client_tool": m.ReturnResult(request_id="", content="I winked"),
        "continuation": m.ContinueTurn(request_id=""),
        "rollback": m.RollBack(request_id="", option=_first(asked)),
    }[asked.ask.kind]


def disagree(asked: RemoteAsk) -> m.Answer:
    return {
        "permission": m.DecidePermission(request_id="", granted=False, reason="not today"),
        "question": m.AnswerQuestion(request_id="", custom={"0": "None of them", "1": "Figs, and \"dates\""}),
        "client_tool": m.ReturnResult(request_id="", content="no", is_error=True),
        "continuation": m.ContinueTurn(request_id="", proceed=False),
        "rollback": m.RollBack(request_id="", option=None),
    }[asked.ask.kind]


def withdraw(asked: RemoteAsk) -> m.Answer:
    return m.Withdraw(request_id="")


def _first(asked: RemoteAsk) -> str | None:
    options: Sequence[dict[str, Any]] = getattr(asked.ask, "options", ())
    return options[0]["id"] if options else None


# -- every directive --------------------------------------------------------------------------------------------------

DIRECTIVES = {name: f"/{name} hello" for name in ARGUMENT_PARSERS} | {
    "tool": '/tool calc {"expression": "1 + 1"} hello', "slow": "/slow 3 hello", "burst": "/burst 40 hello",
    "title": "/title A new name\nhello",
}
MANNERS: dict[str, dict[str, Any]] = {
    "rounds": {}, "one message": {"multi_message": False, "throttle_ms": 0, "rollback_objects": True},
}


@pytest.mark.parametrize("manner", MANNERS.values(), ids=MANNERS)
@pytest.mark.parametrize("decide", [agree, disagree, withdraw])
async def test_every_directive_is_heard_as_the_log_has_it(
    tmp_path: Path, decide: Decide, manner: dict[str, Any],
) -> None:
    async with house(tmp_path, **manner) as (served, there):
        for name, words in DIRECTIVES.items():
            view = await served.gateway.sessions.create("", "demo", settings=TOOLS)
            heard = facts(await talk(there, view.session_id, words, decide))
            before = await log_of(served, view.session_id)
            assert [_told(turn) for turn in heard] == [_told(turn) for turn in before], name
            assert (heard[0].parts or heard[0].ended.fault) if heard[0].ended else False, name


def _told(turn: Facts) -> dict[str, Any]:
    """All that can be told, and the fault: its words, and its code where ZenFlux has a word for it."""
    fault = turn.ended.fault if turn.ended else None
    return {**as_heard(turn), "fault": (fault.code, fault.message) if fault else None}


async def test_what_is_asked_is_asked_in_the_same_words(tmp_path: Path) -> None:
    async with house(tmp_path, rollback_objects=True) as (served, there):
        for words in ("/ask", "/fork-ask", "/permit", "/client-tool", "/continue", "/rollback"):
            view = await served.gateway.sessions.create("", "demo", settings=TOOLS)
            heard = facts(await talk(there, view.session_id, words, agree))[0]
            records = await served.gateway.sessions.records("", view.session_id)
            [asked] = [record.event.ask for record in records if isinstance(record.event, m.InputRequested)]
            [ask] = heard.asks
            if words in ("/continue", "/rollback"):
                assert ask == asked
            elif words == "/permit":
                assert (ask.call.call_id, ask.call.input, ask.description) == (
                    asked.call.call_id, asked.call.input, asked.description)
                assert ask.call.permission is m.Permission.ASK
            elif words == "/client-tool":
                assert (ask.call.call_id, ask.call.name, ask.call.input) == (
                    asked.call.call_id, asked.call.name, asked.call.input)
            else:
                assert ask.questions == QUESTIONS
                assert (ask.call is None) is (words == "/fork-ask"), "a sub-agent's call is not told"


async def test_all_that_is_asked_at_once_is_answered_at_once(tmp_path: Path) -> None:
    async with house(tmp_path) as (served, there):
        view = await served.gateway.sessions.create("", "demo", settings=TOOLS)
        async with aclosing(there.start_turn(view.session_id, m.SendMessage(content="/parallel hello"))) as stream:
            heard = [one async for one in stream]
        asked = [one for one in heard if isinstance(one, RemoteAsk)]
        assert [one.ask.kind for one in asked] == ["permission", "client_tool"]
        answers = [(asked[0], disagree(asked[0])), (asked[1], agree(asked[1]))]
        async with aclosing(there.answer(view.session_id, answers)) as stream:
            heard += [one async for one in stream]
        turn = facts(heard)[0]
        assert sorted(turn.results.values())[1:] == [("I winked", False), ("Tool call denied: not today", True)]
        assert [_told(turn)] == [_told(one) for one in await log_of(served, view.session_id)]


@pytest.mark.parametrize("reason", ["ok", "yes", " APPROVE ", "cancel", "continue"])
async def test_a_reason_is_never_taken_for_consent(tmp_path: Path, reason: str) -> None:
    async with house(tmp_path) as (_, there):
        session_id = await there.open(NewRemoteSession())
        deny = m.DecidePermission(request_id="", granted=False, reason=reason)
        heard = facts(await talk(there, session_id, "/permit", lambda asked: deny))[0]
        assert list(heard.results.values()) == [("Tool call denied", True)]


# -- a session and what is said in it ---------------------------------------------------------------------------------

async def test_a_session_has_a_title_and_turns_that_follow_one_another(tmp_path: Path) -> None:
    async with house(tmp_path) as (served, there):
        session_id = await there.open(NewRemoteSession(title="Journey", settings=m.Settings(system="not told")))
        for words in ("one", "/tool clock two", "three"):
            [turn] = facts(await talk(there, session_id, words, agree))
            assert turn.words().endswith(f"You said: {words.split()[-1]}")
        view = await served.gateway.sessions.get("", session_id)
        assert (view.title, view.turns) == ("Journey", 3)


async def test_files_pictures_and_variables_are_sent_along(tmp_path: Path) -> None:
    async with house(tmp_path) as (served, there):
        session_id = await there.open(NewRemoteSession())
        content = (m.TextPart(text="look"), m.ImagePart(url="https://example.test/a.png"), m.FilePart(
            name="b.txt", url="https://example.test/b.txt", media_type="text/plain", size=3))
        command = m.SendMessage(content=content, variables={"zone": "UTC"})
        async with aclosing(there.start_turn(session_id, command)) as stream:
            assert facts([one async for one in stream])[0].words() == "You said: look [1 image] [1 file]"
        said = (await served.gateway.sessions.get("", session_id)).entries[0]
        assert [type(part) for part in said.content] == [m.TextPart, m.ImagePart, m.FilePart]
        unreachable = m.SendMessage(content=(m.FilePart(name="c.txt", file_id="file_1"),))
        with pytest.raises(Unsupported, match=r"c\.txt"):
            await anext(there.start_turn(session_id, unreachable))
        with pytest.raises(Unsupported, match="compacts by itself"):
            await anext(there.start_turn(session_id, m.Compact()))


async def test_the_agent_is_told_of_and_can_be_chosen(tmp_path: Path) -> None:
    agents = {"demo": {"backend": "demo"}, "other": {"backend": "demo", "title": "Other"}}
    async with serving(tmp_path, dialects={"zenflux": {}}, agents=agents) as served:
        async with remote(served.address) as there:
            card = await there.about()
            assert (card.name, card.model) == ("demo", "demo-1")
        async with remote(served.address, agent="other") as there:
            assert (await there.about()).name == "other"
            session_id = await there.open(NewRemoteSession())
            assert (await served.gateway.sessions.get("", session_id)).agent == "other"


# -- interrupting -----------------------------------------------------------------------------------------------------

async def test_a_turn_is_interrupted_in_the_middle(tmp_path: Path) -> None:
    async with house(tmp_path) as (served, there):
        session_id = await there.open(NewRemoteSession())
        heard: list[DecodedItem] = []
        async with aclosing(there.start_turn(session_id, m.SendMessage(content="/slow 1000"))) as stream:
            async for one in stream:
                heard.append(one)
                if sum(isinstance(said, m.BlockDelta) for said in heard) == 2 and not isinstance(one, RemoteTurnEnd):
                    await there.interrupt(session_id)
        [turn] = facts(heard)
        assert turn.ended == RemoteTurnEnd(outcome=m.Outcome.INTERRUPTED, stop_reason=m.StopReason.INTERRUPTED)
        view = await served.gateway.sessions.get("", session_id)
        assert view.ended is not None
        assert view.ended.outcome is m.Outcome.INTERRUPTED
        assert turn.words() == "".join(text.text for text in view.entries[-1].content)
        await there.interrupt(session_id)  # nothing runs, and nothing happens


async def test_leaving_a_stream_leaves_the_turn_alone_until_it_is_interrupted(tmp_path: Path) -> None:
    async with house(tmp_path) as (served, there):
        session_id = await there.open(NewRemoteSession())
        stream = there.start_turn(session_id, m.SendMessage(content="/slow 1000"))
        await anext(stream)
        await stream.aclose()
        view = await served.gateway.sessions.get("", session_id)
        assert view.turn_id is not None
        await there.interrupt(session_id)
        await until(lambda: view.turn_id is None)
        assert view.ended == m.TurnEnded(
            outcome=m.Outcome.INTERRUPTED, stop_reason=m.StopReason.INTERRUPTED, usage=view.ended.usage,
            duration_ms=view.ended.duration_ms,
        ) if view.ended else False


async def test_a_turn_that_waits_is_interrupted_and_a_new_one_can_begin(tmp_path: Path) -> None:
    async with house(tmp_path) as (served, there):
        session_id = await there.open(NewRemoteSession())
        async with aclosing(there.start_turn(session_id, m.SendMessage(content="/permit"))) as stream:
            assert isinstance([one async for one in stream][-1], RemoteAsk)
        await there.interrupt(session_id)
        view = await served.gateway.sessions.get("", session_id)
        await until(lambda: view.turn_id is None)
        assert facts(await talk(there, session_id, "again", agree))[0].words() == "You said: again"


# -- answers by others, and after a restart ---------------------------------------------------------------------------

async def test_somebody_else_may_answer_first(tmp_path: Path) -> None:
    async with house(tmp_path) as (served, there):
        session_id = await there.open(NewRemoteSession())
        async with aclosing(there.start_turn(session_id, m.SendMessage(content="/permit hello"))) as stream:
            heard = [one async for one in stream]
        asked = heard[-1]
        assert isinstance(asked, RemoteAsk)
        view = await served.gateway.sessions.get("", session_id)
        yes = m.DecidePermission(request_id=next(iter(view.asks)), granted=True)
        await served.gateway.sessions.submit("", session_id, [yes])
        async with aclosing(there.answer(session_id, [(asked, disagree(asked))])) as stream:
            heard += [one async for one in stream]
        [turn] = facts(heard)
        assert list(turn.results.values()) == [("42", False)], "what was decided stays decided"


@pytest.mark.parametrize("words", ["/think /permit hello", "/ask hello", "/client-tool hello", "/parallel hello"])
@pytest.mark.parametrize("by_call", [False, True], ids=["by ref", "by call"])
async def test_a_remote_that_was_not_there_can_answer(tmp_path: Path, words: str, by_call: bool) -> None:
    async with house(tmp_path) as (served, there):
        view = await served.gateway.sessions.create("", "demo", settings=TOOLS)
        async with aclosing(there.start_turn(view.session_id, m.SendMessage(content=words))) as stream:
            heard = [one async for one in stream]
        asked = [one for one in heard if isinstance(one, RemoteAsk)]
        if by_call:
            asked = [RemoteAsk(ask=one.ask, ref=one.ask.call.call_id) for one in asked]  # type: ignore[union-attr]
        async with remote(served.address) as other:
            answers = [(one, agree(one)) for one in asked]
            async with aclosing(other.answer(view.session_id, answers)) as stream:
                heard += [one async for one in stream]
        assert [_told(turn) for turn in facts(heard)] == [_told(t) for t in await log_of(served, view.session_id)]


async def test_an_answer_to_what_nobody_asks_is_refused(tmp_path: Path) -> None:
    async with house(tmp_path) as (_, there):
        session_id = await there.open(NewRemoteSession())
        heard = await talk(there, session_id, "/permit hello", agree)
        [asked] = [one for one in heard if isinstance(one, RemoteAsk)]
        unknown = RemoteAsk(ask=asked.ask, ref="call_unknown")
        with pytest.raises(BackendFailed, match="does not wait"):
            await anext(there.answer(session_id, [(unknown, agree(unknown))]))


# -- keys -------------------------------------------------------------------------------------------------------------

async def test_a_fault_has_its_words_and_its_code(tmp_path: Path) -> None:
    async with house(tmp_path) as (_, there):
        session_id = await there.open(NewRemoteSession())
        [turn] = facts(await talk(there, session_id, "/think /fail", agree))
        assert turn.ended is not None
        assert turn.ended.fault is not None
        assert turn.ended.fault.code is m.FaultCode.BACKEND
        assert turn.words(m.BlockKind.THINKING) == "Let me think about that."
        assert turn.words() == "I am about to "


async def test_turns_of_many_sessions_are_heard_side_by_side(tmp_path: Path) -> None:
    async with house(tmp_path) as (_, there):
        async def one(number: int) -> str:
            session_id = await there.open(NewRemoteSession())
            return facts(await talk(there, session_id, f"/slow 3 /permit number {number}", agree))[0].words()

        said = await asyncio.gather(*map(one, range(12)))
        assert all(words.endswith(f"You said: number {number}") for number, words in enumerate(said))


async def test_a_remote_that_is_closed_lets_go_of_its_turns(tmp_path: Path) -> None:
    async with house(tmp_path) as (_, there):
        session_id = await there.open(NewRemoteSession())
        stream = there.start_turn(session_id, m.SendMessage(content="/slow 1000"))
        await anext(stream)
        await there.close()
        with pytest.raises(GatewayError):
            async for _one in stream:
                pass
