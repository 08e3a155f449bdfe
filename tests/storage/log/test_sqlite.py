"""What is the SQLite log's alone: nothing is told before it is safe, trouble loses nothing, and memory is bounded."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path

import pytest

import gateway.model as m
from gateway.errors import OutcomeUnknown, Overloaded
from gateway.ports import BackendEvent, Turn
from gateway.storage import Database
from gateway.storage.log import SqliteLog, open_log_file
from gateway.storage.log.sqlite import SELECT_IN_TURN
from gateway.storage.sqlite.session_lists import CREATED
from gateway.storage.sqlite.session_texts import FOUND
from tests.support.engine.engine_fixture import EngineFixture, lawful
from tests.support.gateway_server import until
from tests.support.storage.commit_recorder import CommitRecorder
from tests.support.storage.event_logs import created, note, put


class Disk:
    """A log whose file can be made unable to take anything, and able again."""

    def __init__(self, path: Path) -> None:
        self.database = Database(path, again=0.01)
        self.log = SqliteLog(self.database)

    @property
    def _writer(self) -> sqlite3.Connection:
        return self.database._connections["write"]

    def fill(self) -> None:
        self._writer.execute("PRAGMA query_only = ON")

    def free(self) -> None:
        self._writer.execute("PRAGMA query_only = OFF")


@pytest.fixture
async def disk(tmp_path: Path) -> AsyncIterator[Disk]:
    disk = Disk(tmp_path / "a.db")
    await disk.log.open()
    yield disk
    await disk.log.close()


async def test_nothing_is_told_before_the_file_has_it(disk: Disk) -> None:
    class Reading(CommitRecorder):
        def committed(self, records: Sequence[m.Record]) -> None:
            super().committed(records)
            for record in records:
                with open_log_file(disk.database.path) as file:
                    assert record in file.records(record.session_id), "it is there when it is told"

    recorder = Reading()
    disk.log.attach(recorder)
    await put(disk.log, created("s"), *(note("s", seq) for seq in range(2, 20)))
    assert recorder.seqs == [*range(1, 20)]


async def test_what_was_taken_in_trouble_is_stored_in_order_when_it_is_over(disk: Disk) -> None:
    recorder = CommitRecorder()
    disk.log.attach(recorder)
    await put(disk.log, created("s"))
    disk.fill()
    disk.log.append(note("s", 2))
    with pytest.raises(Overloaded, match="nothing can be stored just now"):
        await disk.log.wait_stored("s", 2)
    disk.log.append(note("s", 3))
    with pytest.raises(Overloaded):
        await disk.log.wait_stored("s", 3)
    await until(lambda: len(recorder.errors) > 2)
    assert recorder.seqs == [1]
    assert list(await disk.log.read("s")) == [created("s")], "reading goes on"
    disk.free()
    await until(lambda: recorder.seqs == [1, 2, 3])
    assert disk.log.write_error is None
    assert list(await disk.log.read("s")) == [created("s"), note("s", 2), note("s", 3)]


async def test_who_waits_and_goes_away_disturbs_nobody(disk: Disk) -> None:
    await put(disk.log, created("s"))
    disk.fill()
    disk.log.append(note("s", 2))
    waiting = asyncio.create_task(disk.log.wait_stored("s", 2))
    await asyncio.sleep(0)
    waiting.cancel()
    await until(lambda: disk.log.write_error is not None)
    disk.free()
    await until(lambda: disk.log.write_error is None)
    assert len(await disk.log.read("s")) == 2


# -- with an engine ---------------------------------------------------------------------------------------------------

async def chatter(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    """Talks and talks."""
    yield m.MessageStarted(message_id="m")
    yield m.BlockStarted(block_id="b", message_id="m", kind=m.BlockKind.TEXT)
    while True:
        yield m.BlockDelta(block_id="b", message_id="m", kind=m.BlockKind.TEXT, delta="word ")
        await asyncio.sleep(0.001)


async def brief(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    yield m.MessageStarted(message_id="m")
    yield m.MessageEnded(message_id="m")


async def hung(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    yield m.MessageStarted(message_id="m")
    await asyncio.Event().wait()


@pytest.mark.parametrize("play", [chatter, hung])
async def test_a_turn_that_cannot_be_stored_is_ended_and_its_backend_let_go(disk: Disk, play: object) -> None:
    stage = EngineFixture(play, log=disk.log)  # type: ignore[arg-type]
    session = await stage.session()
    await stage.service.submit("", session.view.session_id, [m.SendMessage(content="go")])
    run = session.run
    assert run is not None
    await until(lambda: session.view.head >= 4)
    disk.fill()
    disk.log.append(note("s", 1))  # something to store, where the backend says nothing
    await until(lambda: run.is_ended)
    await asyncio.wait_for(run.wait_finished(5), 5)
    head = session.view.head
    for _ in range(20):
        await asyncio.sleep(0.005)
    assert session.view.head == head, "nothing more is taken: memory stays as it is"
    disk.free()
    await until(lambda: session.stored_seq == head)
    records = await stage.records(session)
    lawful(records)
    ended = records[-1].event
    assert isinstance(ended, m.TurnEnded)
    assert ended.fault is not None
    assert ended.fault.code is m.FaultCode.OVERLOADED
    assert "nothing can be stored just now" in ended.fault.message


async def test_commands_are_refused_and_reads_show_what_is_stored(disk: Disk) -> None:
    stage = EngineFixture(chatter, log=disk.log)
    session, other = await stage.session(), await stage.session()
    session_id = session.view.session_id
    await stage.service.submit("", session_id, [m.SendMessage(content="go")])
    await until(lambda: session.stored_seq > 4)
    disk.fill()
    await until(lambda: disk.log.write_error is not None)
    for attempt in (
        stage.service.submit("", other.view.session_id, [m.SendMessage(content="more")]),
        stage.service.create("", "agent"), stage.service.update("", session_id, title="x"),
        stage.service.delete("", session_id),
    ):
        with pytest.raises(Overloaded, match="nothing can be stored just now"):
            await attempt
    view = await stage.service.get("", session_id)
    assert view.status is m.SessionStatus.RUNNING, "the end is not stored, and so nobody is told of it"
    assert view.head == len(await disk.log.read(session_id))
    assert len((await stage.service.list(""))[0]) == 2
    disk.free()
    await until(lambda: disk.log.write_error is None)
    assert (await stage.service.get("", session_id)).status is m.SessionStatus.IDLE


async def test_new_turns_work_when_it_is_over(disk: Disk) -> None:
    stage = EngineFixture(brief, log=disk.log)
    session = await stage.session()
    disk.fill()
    with pytest.raises(OutcomeUnknown, match="it is not known whether this was done: nothing can be stored"):
        await stage.service.submit("", session.view.session_id, [m.SendMessage(content="one")])
    disk.free()
    await until(lambda: disk.log.write_error is None)
    await stage.service.submit("", session.view.session_id, [m.SendMessage(content="two")])
    await until(lambda: session.run is None and session.stored_seq == session.view.head)
    records = await stage.records(session)
    lawful(records)
    assert [record.event.command.content for record in records if isinstance(record.event, m.InputAccepted)] == [
        "one", "two"], "what was taken before the trouble was noticed is stored when it is over"


async def test_what_was_left_behind_is_closed_in_the_file_before_anybody_is_served(tmp_path: Path, disk: Disk) -> None:
    stage = EngineFixture(chatter, log=disk.log)
    session = await stage.session()
    session_id = session.view.session_id
    await stage.service.submit("", session_id, [m.SendMessage(content="go")])
    await until(lambda: session.stored_seq > 4)
    with open_log_file(disk.database.path) as file:
        copy = sqlite3.connect(tmp_path / "copy.db")
        file.connection.backup(copy)
        copy.close()
    assert session.run is not None
    session.run.stop()
    again = Disk(tmp_path / "copy.db")
    await again.log.open()
    assert await EngineFixture(chatter, log=again.log).service.recover() == 1
    with open_log_file(again.database.path) as file:
        records = file.records(session_id)
    lawful(records)
    ended = records[-1].event
    assert isinstance(ended, m.TurnEnded)
    assert ended.fault is not None
    assert ended.fault.code is m.FaultCode.INTERRUPTED
    await again.log.close()


@pytest.mark.parametrize(("query", "given", "index"), [
    (FOUND, ("x", "ann"), "sessions_in_turn"),
    (f"{SELECT_IN_TURN} AND owner = ? ORDER BY ordinal", ("ann",), "sessions_in_turn"),
    (CREATED, ("ann", 1.0, 2.0, 10), "sessions_by_creation (owner=? AND created_at>? AND created_at<?)"),
])
async def test_few_sessions_are_found_without_a_look_at_all_sessions_of_the_owner(
    disk: Disk, query: str, given: tuple[object, ...], index: str,
) -> None:
    with sqlite3.connect(disk.database.path) as file:
        plan = [row[3] for row in file.execute(f"EXPLAIN QUERY PLAN {query}", given)]
    assert [step for step in plan if "sessions USING" in step and not step.endswith(index)] == []
    assert any(step.endswith(index) for step in plan)
