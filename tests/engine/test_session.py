"""Commands are taken in order, all or none; inputs are logged before their effects; a turn waits and goes on."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from structlog.testing import capture_logs

import gateway.model as m
from gateway.errors import BackendFailed, Busy, Conflict, GatewayError, Invalid, NotPending, Overloaded
from gateway.ports import BackendEvent, Turn
from tests.support.engine.engine_fixture import EngineFixture, lawful, names, refolded

CALLS = (m.ToolCall(call_id="c1", name="calc"), m.ToolCall(call_id="c2", name="mine", origin=m.ToolOrigin.CLIENT))


async def two_asks(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    """Calls two tools at once: one needs leave, the other is the client's."""
    yield m.MessageStarted(message_id="m1")
    for call in CALLS:
        yield m.BlockStarted(block_id=call.call_id, message_id="m1", kind=m.BlockKind.TOOL_USE, call=call)
        yield m.BlockEnded(block_id=call.call_id, message_id="m1", kind=m.BlockKind.TOOL_USE, call=call)
    yield m.MessageEnded(message_id="m1", stop_reason=m.StopReason.TOOL_USE)
    answers: list[m.Answer] = await turn.ask(m.PermissionAsk(call=CALLS[0]), m.ClientToolAsk(call=CALLS[1]))
    for call, answer in zip(CALLS, answers, strict=True):
        yield m.ToolReturned(call_id=call.call_id, origin=call.origin, content=type(answer).__name__)


async def patient(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    """Never says anything and never ends."""
    await asyncio.Event().wait()
    yield m.MessageStarted(message_id="never")


async def waiting(stage: EngineFixture):
    session = await stage.session()
    session.submit([m.SendMessage(content="go")])
    await stage.until(session, m.TurnSuspended)
    granted, returned = session.view.asks.values()
    return session, granted.request_id, returned.request_id


async def test_a_turn_waits_under_its_id_and_goes_on_when_all_is_answered() -> None:
    stage = EngineFixture(two_asks)
    session, first, second = await waiting(stage)
    assert session.view.status is m.SessionStatus.SUSPENDED
    turn_id = session.view.turn_id
    receipt = session.submit([m.DecidePermission(request_id=first, granted=True)])
    assert not receipt.begun
    assert session.view.status is m.SessionStatus.SUSPENDED
    receipt = session.submit([m.ReturnResult(request_id=second, content="done")])
    assert receipt.begun
    await stage.until(session, m.TurnEnded)
    records = await stage.records(session)
    lawful(records)
    assert {r.turn_id for r in records if r.turn_id} == {turn_id}
    assert isinstance(records[receipt.after].event, m.TurnResumed), "its stream begins where the turn resumes"
    assert [r.event.content for r in records if isinstance(r.event, m.ToolReturned)] == [
        "DecidePermission", "ReturnResult",
    ]


async def test_answers_in_one_list_are_taken_together_and_logged_before_their_effects() -> None:
    stage = EngineFixture(two_asks)
    session, first, second = await waiting(stage)
    before = session.view.head
    session.submit(
        [m.ReturnResult(request_id=second), m.DecidePermission(request_id=first, granted=False, reason="no")]
    )
    logged = names((await stage.records(session))[before:])
    assert logged[:5] == ["input.accepted", "input.resolved", "input.accepted", "input.resolved", "turn.resumed"]


GRANT = m.DecidePermission(request_id="FIRST", granted=True)


@pytest.mark.parametrize(("commands", "error"), [
    ([m.DecidePermission(request_id="ask_none", granted=True)], Conflict),
    ([m.ReturnResult(request_id="FIRST")], Invalid),
    ([GRANT, GRANT], Conflict),
    ([GRANT, m.SendMessage(content="x"), m.SendMessage(content="y")], Busy),
    ([m.SendMessage(content="x"), GRANT], Conflict),
    ([m.Configure(settings=m.Settings(options={"nope": "x"})), GRANT], Invalid),
])
async def test_a_list_with_one_bad_command_changes_nothing(commands: list, error: type[GatewayError]) -> None:
    stage = EngineFixture(two_asks)
    session, first, _ = await waiting(stage)
    before = await stage.records(session)
    commands = [
        type(c)(**{f: first if getattr(c, f) == "FIRST" else getattr(c, f) for f in c.__struct_fields__})
        for c in commands
    ]
    with pytest.raises(error):
        session.submit(commands)
    assert await stage.records(session) == before
    assert session.view.status is m.SessionStatus.SUSPENDED


async def test_a_second_answer_is_refused_and_harmless() -> None:
    stage = EngineFixture(two_asks)
    session, first, _ = await waiting(stage)
    session.submit([m.DecidePermission(request_id=first, granted=True)])
    before = await stage.records(session)
    with pytest.raises((NotPending, Conflict)):
        session.submit([m.DecidePermission(request_id=first, granted=False)])
    assert await stage.records(session) == before


async def test_a_message_while_a_turn_runs_is_refused_and_disturbs_nothing() -> None:
    stage = EngineFixture(patient)
    session = await stage.session()
    session.submit([m.SendMessage(content="one")])
    before = await stage.records(session)
    for command in (m.SendMessage(content="two"), m.Compact()):
        with pytest.raises(Busy):
            session.submit([command])
    assert await stage.records(session) == before


async def test_a_message_while_a_turn_waits_abandons_what_was_asked() -> None:
    stage = EngineFixture(two_asks)
    session, first, _ = await waiting(stage)
    old = session.view.turn_id
    receipt = session.submit([m.SendMessage(content="never mind")])
    await stage.until(session, m.TurnSuspended)
    records = await stage.records(session)
    lawful(records)
    ends = [r for r in records if isinstance(r.event, m.TurnEnded)]
    assert [(r.turn_id, r.event.outcome) for r in ends] == [(old, m.Outcome.INTERRUPTED)]
    assert records[receipt.after].event.name == "turn.started"
    [place] = [at for at, r in enumerate(records) if isinstance(r.event, m.InputAccepted) and r.turn_id == old][1:]
    assert records[place].event.command == m.Interrupt(turn_id=old), "inputs are logged before their effects"
    assert {r.turn_id for r in records[place:receipt.after - 1]} == {old}
    assert [r.event.name for r in records[receipt.after - 2:receipt.after]] == ["turn.ended", "input.accepted"]
    assert session.view.turn_id == receipt.turn_id != old
    assert first not in session.view.asks


async def test_interrupt_then_message_in_one_list_starts_anew() -> None:
    stage = EngineFixture(patient)
    session = await stage.session()
    session.submit([m.SendMessage(content="one")])
    receipt = session.submit([m.Interrupt(), m.SendMessage(content="two")])
    records = await stage.records(session)
    lawful(records)
    assert [r.event.name for r in records[3:]] == ["input.accepted", "turn.ended", "input.accepted", "turn.started"]
    assert receipt.turn_id == records[-1].turn_id


async def test_interrupting_an_idle_session_is_accepted_and_nothing_happens() -> None:
    stage = EngineFixture(patient)
    session = await stage.session()
    session.submit([m.Interrupt()])
    assert names(await stage.records(session)) == ["session.created", "input.accepted"]


async def test_an_interrupt_for_another_turn_is_not_for_this_one() -> None:
    stage = EngineFixture(patient)
    session = await stage.session()
    session.submit([m.SendMessage(content="one")])
    session.submit([m.Interrupt(turn_id="turn_of_yesterday")])
    assert session.view.status is m.SessionStatus.RUNNING


async def test_a_command_and_everything_of_its_turn_carry_one_turn_id() -> None:
    stage = EngineFixture(two_asks)
    session = await stage.session()
    receipt = session.submit([m.SendMessage(content="go")])
    assert {r.turn_id for r in (await stage.records(session))[1:]} == {receipt.turn_id}
    assert isinstance(receipt.records[0].event, m.InputAccepted)


async def test_settings_are_fitted_before_anything_is_logged() -> None:
    stage = EngineFixture(two_asks)
    session = await stage.session()
    session.submit([m.Configure(settings=m.Settings(options={"api_key": "hush", "tone": "loud"}))])
    assert session.view.settings.options == {"tone": "loud"}
    assert session.view.settings.secrets == {"api_key": "hush"}


async def test_a_closed_session_takes_no_commands() -> None:
    stage = EngineFixture(patient)
    session = await stage.session()
    session.append(m.SessionClosed(reason=m.CloseReason.ARCHIVED))
    with pytest.raises(Conflict, match="archived"):
        session.submit([m.SendMessage(content="hello?")])


async def test_a_server_about_to_stop_starts_no_turns() -> None:
    stage = EngineFixture(patient)
    session = await stage.session()
    stage.runtime.is_draining = True
    with pytest.raises(Overloaded):
        session.submit([m.SendMessage(content="hello?")])
    assert names(await stage.records(session)) == ["session.created"]


async def test_the_live_view_equals_the_fold_of_the_log() -> None:
    stage = EngineFixture(two_asks)
    session, first, second = await waiting(stage)
    assert refolded(session.view, await stage.records(session)) == session.view
    session.submit([m.DecidePermission(request_id=first, granted=True), m.ReturnResult(request_id=second)])
    await stage.until(session, m.TurnEnded)
    assert refolded(session.view, await stage.records(session)) == session.view


async def test_time_never_goes_back_in_a_session() -> None:
    stage = EngineFixture(two_asks)
    session = await stage.session()
    stage.now -= 1000
    session.submit([m.SendMessage(content="go")])
    await stage.until(session, m.TurnSuspended)
    lawful(await stage.records(session))


async def broken(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    """Finds its upstream gone."""
    yield m.MessageStarted(message_id="m1")
    raise BackendFailed("http://10.0.0.1 cannot be reached (Connection refused)")


async def test_the_journal_says_why_a_turn_failed() -> None:
    """Some dialects tell their clients only that it did."""
    stage = EngineFixture(broken)
    session = await stage.session()
    with capture_logs() as told:
        session.submit([m.SendMessage(content="go")])
        await stage.until(session, m.TurnEnded)
    [entry] = [one for one in told if one["event"] == "turn_failed"]
    assert (entry["log_level"], entry["agent"], entry["fault"]) == ("warning", "agent", "backend")
    assert entry["reason"] == "http://10.0.0.1 cannot be reached (Connection refused)"


async def test_an_interrupt_for_another_turn_makes_no_room_for_a_message() -> None:
    stage = EngineFixture(patient)
    session = await stage.session()
    session.submit([m.SendMessage(content="go")])
    head = session.view.head
    with pytest.raises(Busy):
        session.submit([m.Interrupt(turn_id="turn_other"), m.SendMessage(content="me")])
    assert session.view.head == head
