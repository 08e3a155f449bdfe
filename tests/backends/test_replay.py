"""A recorded session happens again: the same events, at the same pace or faster."""

import asyncio
from collections.abc import AsyncGenerator, Callable

import pytest

import gateway.model as m
from gateway.backends.replay import SessionReplayer, recorded_turns
from gateway.errors import BackendFailed, Conflict, NotFound, Overloaded
from gateway.ports import BackendEvent, ReplayState, Turn
from tests.support.engine.engine_fixture import EngineFixture, lawful


class Theatre:
    """An engine whose agent takes its time, and replays that take none but count it."""

    def __init__(self) -> None:
        self.stage = EngineFixture(self.play)
        self.slept: list[float] = []
        self.states: list[ReplayState] = []
        self.hold: asyncio.Event | None = None
        self.replays = SessionReplayer(self.stage.service, self.sleep)

    async def play(self, turn: Turn) -> AsyncGenerator[BackendEvent, None]:
        assert isinstance(turn.command, m.SendMessage)
        message, block = turn.mint("msg"), turn.mint("blk")
        self.stage.now += 2
        yield m.MessageStarted(message_id=message)
        yield m.BlockStarted(block_id=block, message_id=message, kind=m.BlockKind.TEXT)
        for delta in ("hel", "lo"):
            self.stage.now += 1
            yield m.BlockDelta(block_id=block, message_id=message, kind=m.BlockKind.TEXT, delta=delta)
        if turn.command.content == "break":
            raise BackendFailed("it broke")
        yield m.BlockEnded(block_id=block, message_id=message, kind=m.BlockKind.TEXT, text="hello")
        yield m.MessageEnded(message_id=message)
        if turn.command.content == "ask":
            await turn.ask(m.QuestionAsk(questions=(m.Question(question="Which?"),)))
            yield m.MessageStarted(message_id=f"{message}b")
            yield m.MessageEnded(message_id=f"{message}b")

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)
        if self.hold is not None:
            await self.hold.wait()

    async def on_change(self, session_id: str, state: ReplayState) -> None:
        self.states.append(state)

    async def told(self, *texts: str) -> str:
        view = await self.stage.service.create("ada", "agent", title="T")
        for text in texts:
            await self.stage.service.submit("ada", view.session_id, [m.SendMessage(content=text)])
            await self.until(lambda: view.status != "running")
        return view.session_id

    async def again(self, session_id: str, speed: int = 1) -> m.SessionView:
        return await self.replays.start("ada", session_id, speed, {}, self.on_change)

    async def over(self, view: m.SessionView) -> None:
        await self.until(lambda: self.replays.state("ada", view.session_id).status != "replaying")

    async def until(self, true: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not true():  # noqa: ASYNC110
                await asyncio.sleep(0)

    async def records(self, session_id: str) -> list[m.Record]:
        return list(await self.stage.service.records("ada", session_id))


@pytest.fixture
def theatre() -> Theatre:
    return Theatre()


def said(records: list[m.Record]) -> list[m.AnyEvent]:
    return [record.event for record in records if type(record.event) in m.BACKEND_EVENTS]


async def test_everything_happens_again(theatre: Theatre) -> None:
    source = await theatre.told("one", "two")
    view = await theatre.again(source)
    await theatre.over(view)
    old, new = await theatre.records(source), await theatre.records(view.session_id)
    assert said(new) == said(old)
    lawful(new)
    assert [entry.content for entry in view.entries][::2] == ["one", "two"]
    assert theatre.states[-1] == ReplayState(source=source, status="completed", speed=1, turn=2, turns=2)


@pytest.mark.parametrize("speed", [1, 2, 5])
async def test_it_takes_its_time_divided_by_the_speed(theatre: Theatre, speed: int) -> None:
    (turn,) = recorded_turns(await theatre.records(await theatre.told("one")))
    assert [seconds for seconds, _ in turn.steps] == [2, 0, 1, 1, 0, 0]
    theatre.slept.clear()
    view = await theatre.again(await theatre.told("one"), speed)
    await theatre.over(view)
    paces = [seconds for seconds in theatre.slept if seconds != pytest.approx(0.05)]
    assert sum(paces) == pytest.approx(4 / speed)
    assert max(paces) <= 0.25


async def test_waiting_for_people_is_no_part_of_it(theatre: Theatre) -> None:
    session = await theatre.told("ask")
    theatre.stage.now += 5000
    (ask,) = (await theatre.stage.service.get("ada", session)).asks
    await theatre.stage.service.submit("ada", session, [m.Withdraw(request_id=ask)])
    view = await theatre.stage.service.get("ada", session)
    await theatre.until(lambda: view.status == "idle")
    (turn,) = recorded_turns(await theatre.records(session))
    assert sum(seconds for seconds, _ in turn.steps) == 4
    again = await theatre.again(session)
    await theatre.over(again)
    assert said(await theatre.records(again.session_id)) == said(await theatre.records(session))


async def test_a_turn_that_failed_fails_again_once(theatre: Theatre) -> None:
    source = await theatre.told("break")
    view = await theatre.again(source)
    await theatre.over(view)
    new = await theatre.records(view.session_id)
    assert [record.event.name for record in new].count("fault.raised") == 1
    assert view.ended is not None
    assert view.ended.fault is not None
    assert (view.ended.outcome, view.ended.fault.message) == ("failed", "it broke")


async def test_rewound_turns_do_not_happen_again(theatre: Theatre) -> None:
    source = await theatre.told("one", "two")
    marks = (await theatre.stage.service.get("ada", source)).checkpoints
    await theatre.stage.service.rewind("ada", source, marks[1].seq)
    view = await theatre.again(source)
    await theatre.over(view)
    assert [entry.content for entry in view.entries][::2] == ["one"]


async def test_when_it_is_over_the_agent_goes_on(theatre: Theatre) -> None:
    view = await theatre.again(await theatre.told("one"))
    await theatre.over(view)
    await theatre.stage.service.submit("ada", view.session_id, [m.SendMessage(content="more")])
    await theatre.until(lambda: view.status == "idle")
    assert len(view.entries) == 4


async def test_it_is_stopped_and_the_agent_has_its_part_back(theatre: Theatre) -> None:
    source = await theatre.told("one")
    theatre.hold = asyncio.Event()
    view = await theatre.again(source)
    await theatre.until(lambda: view.status == "running")
    with pytest.raises(Conflict):
        await theatre.stage.service.submit("ada", view.session_id, [m.SendMessage(content="mine")])
    state = await theatre.replays.change("ada", view.session_id, stop=True)
    assert (state.status, view.status) == ("autonomous", "idle")
    theatre.hold.set()
    await theatre.stage.service.submit("ada", view.session_id, [m.SendMessage(content="mine")])
    await theatre.until(lambda: view.status == "idle")
    assert view.entries[-2].content == "mine"
    assert (await theatre.replays.change("ada", view.session_id, stop=True)).status == "autonomous"


async def test_an_interrupted_replay_is_stopped(theatre: Theatre) -> None:
    source = await theatre.told("one", "two")
    theatre.hold = asyncio.Event()
    view = await theatre.again(source)
    await theatre.until(lambda: view.status == "running")
    await theatre.stage.service.submit("ada", view.session_id, [m.Interrupt()])
    theatre.hold.set()
    await theatre.over(view)
    assert theatre.states[-1].status == "stopped"


async def test_a_new_speed_is_felt_at_once(theatre: Theatre) -> None:
    source = await theatre.told("one")
    theatre.hold = asyncio.Event()
    view = await theatre.again(source)
    await theatre.until(lambda: view.status == "running")
    theatre.slept.clear()
    assert (await theatre.replays.change("ada", view.session_id, speed=5)).speed == 5
    theatre.hold.set()
    await theatre.over(view)
    assert sum(seconds for seconds in theatre.slept if seconds != pytest.approx(0.05)) <= 4 / 5 + 0.25


async def test_what_cannot_be_replayed_says_why(theatre: Theatre) -> None:
    session = await theatre.told()
    assert await theatre.replays.can("ada", session) == "nothing has happened in the session"
    with pytest.raises(Conflict):
        await theatre.again(session)
    waiting = await theatre.told("ask")
    assert await theatre.replays.can("ada", waiting) == "a turn is running in the session"
    for call in (theatre.replays.can("bob", session), theatre.replays.change("bob", session)):
        with pytest.raises(NotFound):
            await call


async def test_a_deleted_session_ends_its_replay(theatre: Theatre) -> None:
    source = await theatre.told("one", "two")
    theatre.hold = asyncio.Event()
    view = await theatre.again(source)
    await theatre.until(lambda: view.status == "running")
    await theatre.stage.service.delete("ada", view.session_id)
    theatre.hold.set()
    await theatre.over(view)
    await theatre.replays.close()


async def test_only_so_many_at_a_time(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.backends.replay.MAX_REPLAYS", 1)
    source = await theatre.told("one")
    theatre.hold = asyncio.Event()
    await theatre.again(source)
    with pytest.raises(Overloaded):
        await theatre.again(source)
    await theatre.replays.close()
