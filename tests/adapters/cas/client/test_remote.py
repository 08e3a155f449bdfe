"""CAS spoken to a gateway with the demo agent: every directive is heard as the log of that gateway has it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from adapters.cas.client.remote import Remote
from gateway.backends.demo.directive_parser import ARGUMENT_PARSERS
from gateway.errors import BackendFailed, Unsupported
from gateway.ports.remote import DecodedItem, NewRemoteSession, RemoteAddress, RemoteAsk, RemoteTurnEnd, Timeouts
from tests.support.dialects.cas.facts import CheckedDecoder, Facts, Message, Turn, of_records
from tests.support.gateway_server import Served, serving, until
from tests.support.key_stores import key_store

AT = "/api/v1/cloud"
PATIENCE = Timeouts(connect=20, first_byte=30, idle=30)
MINE = m.ToolSpec(name="mine", description="A tool of the client.", parameters={
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
})
ASKING = m.Settings(tools={"clock": m.Permission.ALLOW, "calc": m.Permission.ASK, "search": m.Permission.ALLOW},
                  client_tools=(MINE,))

SAID = {name: f"/{name} hello" for name in ARGUMENT_PARSERS} | {
    "tool": '/tool calc {"expression": "1 + 1"} hello', "slow": "/slow 2 hello", "burst": "/burst 30 hello",
    "max-tokens": "/max-tokens one two three", "title": "/title A new title",
}
"""One message for each directive there is."""


def remote_of(served: Served, **address: Any) -> Remote:
    return Remote(RemoteAddress(url=served.url(AT), patience=PATIENCE, **address))


@asynccontextmanager
async def speaking(folder: Path, **address: Any) -> AsyncIterator[tuple[Served, Remote]]:
    async with serving(folder, dialects={"cas": {}}, log="memory") as served:
        remote = remote_of(served, **address)
        try:
            yield served, remote
        finally:
            await remote.close()


def answered(asked: RemoteAsk, yes: bool) -> m.Answer:
    match asked.ask:
        case m.PermissionAsk():
            return m.DecidePermission(request_id="r", granted=yes, reason=None if yes else "not today")
        case m.ContinuationAsk():
            return m.ContinueTurn(request_id="r", proceed=yes)
        case m.ClientToolAsk():
            return m.ReturnResult(request_id="r", content="It rains." if yes else "No such city.", is_error=not yes)
        case m.QuestionAsk() if yes:
            return m.AnswerQuestion(request_id="r", selections={"0": (0,), "1": (0, 2)})
        case m.RollbackAsk() if yes:
            return m.RollBack(request_id="r", option="step")
    return m.Withdraw(request_id="r")


async def conversation(
    remote: Remote, session: str, words: str, *, yes: bool = True, forgetful: Served | None = None,
) -> CheckedDecoder:
    """One turn from the message to its end, whatever it asks on the way; heard by a fresh remote after each ask."""
    witness = CheckedDecoder()
    asked = await listen(witness, remote.start_turn(session, m.SendMessage(content=words)))
    while asked:
        if forgetful is not None:
            remote = remote_of(forgetful)
        asked = await listen(witness, remote.answer(session, [(one, answered(one, yes)) for one in asked]))
        if forgetful is not None:
            await remote.close()
    assert not witness.in_turn, "the turn has ended"
    return witness


async def listen(witness: CheckedDecoder, stream: Any) -> list[RemoteAsk]:
    async with asyncio.timeout(30), aclosing(stream):
        heard: list[DecodedItem] = [one async for one in stream]
    asked = [one for one in heard if isinstance(one, RemoteAsk)]
    witness.hear(heard, bool(asked))
    return asked


def same(told: Facts, known: Facts) -> None:
    """As `hearing_facts` has it; beyond that, no stop reason but an interruption or a failure is told."""
    assert [_comparable(turn) for turn in told.turns] == [_comparable(turn) for turn in known.turns]
    assert told.client_results == known.client_results


def _comparable(turn: Turn) -> Turn:
    is_told = turn.ended is None or turn.ended[0] in (m.StopReason.INTERRUPTED, m.StopReason.ERROR)
    ended = turn.ended if is_told else (m.StopReason.END_TURN, *turn.ended[1:])
    messages = {scope_id: [_plain(message) for message in some] for scope_id, some in turn.messages.items()}
    return replace(turn, ended=ended, messages=messages)


def _plain(message: Message) -> Message:
    return replace(message, stop=message.stop[0])


async def logged(served: Served, session: str) -> Facts:
    return of_records(await served.gateway.sessions.records("", session))


# -- every directive --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("settings", [m.Settings(), ASKING], ids=["plain", "asking"])
@pytest.mark.parametrize("yes", [True, False], ids=["yes", "no"])
async def test_every_directive_is_heard_as_the_log_has_it(tmp_path: Path, settings: m.Settings, yes: bool) -> None:
    async with speaking(tmp_path) as (served, remote):
        for name, words in SAID.items():
            session = await remote.open(NewRemoteSession(settings=settings))
            witness = await conversation(remote, session, words, yes=yes)
            try:
                same(witness.facts, await logged(served, session))
            except AssertionError as error:
                raise AssertionError(f"/{name} was heard otherwise than it was told") from error


EXPECTED: dict[str, Any] = {
    "hello": lambda turn: turn.words("text") == ["You said: hello"],
    "/think hello": lambda turn: turn.words("thinking") == ["Let me think about that."],
    "/permit hello": lambda turn: turn.asks == [("permission", 0, None)] and turn.results[0][2] == "42",
    "/client-tool hello": lambda turn: turn.asks[0][0] == "client_tool" and "It rains." in turn.words("text")[0],
    "/ask hello": lambda turn: turn.asks[0][0] == "question" and turn.asks[0][1] == 0,
    "/continue hello": lambda turn: turn.asks == [("continuation", None, "This may take long. Shall I go on?")],
    "/rollback hello": lambda turn: turn.asks[0][0] == "rollback" and turn.faults[0][0] is m.FaultCode.BACKEND,
    "/fail": lambda turn: (
        turn.ended[:2] == (m.StopReason.ERROR, m.Outcome.FAILED) and "as it was told" in turn.ended[2][1]
    ),
    "/title A new title": lambda turn: turn.titles == ["A new title"],
    "/compact hello": lambda turn: turn.compactions == 1,
    "/image hello": lambda turn: turn.words("text")[0].startswith("![image](data:image/png"),
    "/fork a task": lambda turn: turn.words("text", turn.scopes[0][0]) == ["I looked into: a task"],
}
"""What must be among what is heard, lest nothing be compared with nothing."""


async def test_there_is_something_to_hear(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (_, remote):
        for words, holds in EXPECTED.items():
            session = await remote.open(NewRemoteSession(settings=ASKING))
            witness = await conversation(remote, session, words)
            assert holds(witness.facts.turns[0]), (words, witness.facts.turns[0])


async def test_no_is_no(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (_, remote):
        session = await remote.open(NewRemoteSession(settings=ASKING))
        [denied, _] = (await conversation(remote, session, "/permit x", yes=False)).facts.turns
        assert denied.results == [("root", 0, "Tool call denied: not today", True)]
        [failed, _] = (await conversation(remote, session, "/client-tool x", yes=False)).facts.turns
        assert "mine failed: No such city." in failed.words("text")[0]
        [stopped, _] = (await conversation(remote, session, "/continue x", yes=False)).facts.turns
        assert stopped.words("text") == ["I stopped."]


async def test_words_come_as_they_are_said(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (_, remote):
        session = await remote.open(NewRemoteSession())
        said = [one async for one in remote.start_turn(session, m.SendMessage(content="/burst 5 hello"))]
        assert [one.delta for one in said if isinstance(one, m.BlockDelta)][:5] == ["word "] * 5


async def test_several_turns_follow_each_other(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (served, remote):
        session = await remote.open(NewRemoteSession(settings=ASKING))
        heard = [await conversation(remote, session, words) for words in ("one", "/permit two", "/fork three", "four")]
        told = [witness.facts.turns[0] for witness in heard]
        known = (await logged(served, session)).turns[:-1]
        assert [turn.ended for turn in told] == [turn.ended for turn in known]
        assert [turn.words("text") for turn in told] == [turn.words("text") for turn in known]


async def test_a_turn_that_waits_is_found_again_after_a_restart_of_ours(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (served, remote):
        for words in ("/ask hello", "/parallel hello", "/fork-ask a task", "/continue x", "/rollback x"):
            session = await remote.open(NewRemoteSession(settings=ASKING))
            witness = await conversation(remote, session, words, forgetful=served)
            same(witness.facts, await logged(served, session))


async def test_an_answer_to_a_session_without_a_turn_is_refused(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (_, remote):
        session = await remote.open(NewRemoteSession())
        nothing = RemoteAsk(ask=m.ContinuationAsk(turn=1, message="?"), ref="evt_1")
        with pytest.raises(BackendFailed, match="no turn in session"):
            await listen(CheckedDecoder(), remote.answer(session, [(nothing, m.ContinueTurn(request_id="r"))]))
        await conversation(remote, session, "hello")
        with pytest.raises(BackendFailed, match="is not pending"):
            await listen(CheckedDecoder(), remote.answer(session, [(nothing, m.ContinueTurn(request_id="r"))]))


# -- what goes over ---------------------------------------------------------------------------------------------------

async def test_pictures_go_over(tmp_path: Path) -> None:
    addresses = ["https://example.test/a.png", "data:image/png;base64,AA=="]
    pictures = (m.TextPart(text="look"), *(m.ImagePart(url=address) for address in addresses))
    async with speaking(tmp_path) as (served, remote):
        session = await remote.open(NewRemoteSession(title="Pictures"))
        said = [one async for one in remote.start_turn(session, m.SendMessage(content=pictures))]
        assert isinstance(said[-1], RemoteTurnEnd)
        view = await served.gateway.sessions.get("", session)
        assert view.title == "Pictures"
        assert [part.url for part in view.entries[0].content if isinstance(part, m.ImagePart)] == addresses


async def test_to_compact_is_not_in_the_dialect(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (_, remote):
        with pytest.raises(Unsupported, match="compacts by itself"):
            await listen(CheckedDecoder(), remote.start_turn("sess_1", m.Compact()))


async def test_a_key_lets_us_in_and_is_repeated_nowhere(tmp_path: Path) -> None:
    key = key_store(tmp_path / "data").add("ann")
    async with serving(tmp_path, auth="keys") as served:
        right, wrong = remote_of(served, key=key), remote_of(served, key=key[:-1] + "X")
        try:
            assert (await conversation(right, await right.open(NewRemoteSession()), "hello")).facts.turns[0].ended
            with pytest.raises(BackendFailed, match="401") as refused:
                await wrong.open(NewRemoteSession())
            assert key[:-1] not in str(refused.value)
        finally:
            await right.close()
            await wrong.close()


# -- ending it --------------------------------------------------------------------------------------------------------

async def test_an_interruption_ends_the_turn_there(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (served, remote):
        session, witness = await remote.open(NewRemoteSession()), CheckedDecoder()
        async with (
            asyncio.timeout(30),
            aclosing(remote.start_turn(session, m.SendMessage(content="/slow 1000"))) as stream,
        ):
            async for one in stream:
                witness.hear([one])
                if isinstance(one, m.BlockDelta) and one.delta == "2 ":
                    await remote.interrupt(session)
        known = (await logged(served, session)).turns[0]
        told = witness.facts.turns[0]
        assert told.ended == known.ended == (m.StopReason.INTERRUPTED, m.Outcome.INTERRUPTED, None)
        assert told.words("text") == known.words("text")


async def test_an_interruption_ends_a_turn_that_waits(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (served, remote):
        session = await remote.open(NewRemoteSession(settings=ASKING))
        assert await listen(CheckedDecoder(), remote.start_turn(session, m.SendMessage(content="/permit x")))
        await remote.interrupt(session)
        view = await served.gateway.sessions.get("", session)
        await until(lambda: view.status is m.SessionStatus.IDLE)
        assert view.ended is not None and view.ended.outcome is m.Outcome.INTERRUPTED


async def test_an_interruption_where_nothing_runs_does_nothing(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (_, remote):
        session = await remote.open(NewRemoteSession())
        await remote.interrupt(session)
        assert (await conversation(remote, session, "hello")).facts.turns[0].words("text") == ["You said: hello"]


async def test_to_stop_listening_leaves_the_turn_alone(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (served, remote):
        session = await remote.open(NewRemoteSession())
        async with aclosing(remote.start_turn(session, m.SendMessage(content="/slow 3 hello"))) as stream:
            await anext(stream)
        view = await served.gateway.sessions.get("", session)
        await until(lambda: view.status is m.SessionStatus.IDLE)
        assert view.ended is not None and view.ended.outcome is m.Outcome.COMPLETED


async def test_a_message_abandons_what_was_asked_before(tmp_path: Path) -> None:
    async with speaking(tmp_path) as (_, remote):
        session = await remote.open(NewRemoteSession(settings=ASKING))
        assert await listen(CheckedDecoder(), remote.start_turn(session, m.SendMessage(content="/permit x")))
        witness = CheckedDecoder()
        assert await listen(witness, remote.start_turn(session, m.SendMessage(content="hello"))) == []
        assert witness.facts.turns[0].words("text") == ["You said: hello"]

