"""An import on bad days: slow, failing, forgetful and changing servers, kills, and two imports at once."""

import asyncio
from pathlib import Path

import pytest

import gateway.model as m
from adapters.zenflux.client import PastSessions
from gateway.errors import GatewayError
from gateway.migration import (
    Destination,
    ImportChoice,
    Importer,
    ImportLine,
    ImportMark,
    ImportOutcome,
    NoStore,
    Origin,
    open_file_store,
)
from gateway.ports import RemoteAddress, Timeouts
from gateway.storage import UNSEALED, StorageUnusable, create_database, lock_database
from gateway.storage.log import open_log_file, verify_log
from tests.support.dialects.zenflux.old_server import OldConversation, OldServer, serve_old

NOW = 5000.0
IMPORTED, UNCHANGED = ImportOutcome.IMPORTED, ImportOutcome.UNCHANGED


class Here:
    """The file of a gateway that is stopped."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "dragoman.db"
        create_database(self.path)

    async def take_in(
        self, old: OldServer, choice: ImportChoice = ImportChoice(), lines: list[ImportLine] | None = None,  # noqa: B008
    ) -> Importer:
        address = RemoteAddress(url=old.url, patience=Timeouts(attempts=1, first_byte=30))
        source = PastSessions(address, "local")

        async def report(line: ImportLine) -> None:
            if lines is not None:
                lines.append(line)

        with open_file_store(self.path, UNSEALED) as store:
            importer = Importer(
                source, store, Origin(dialect="zenflux", url=old.url), Destination(agent="demo"), lambda: NOW,
                choice=choice, report=report,
            )
            try:
                await importer.run()
            finally:
                await source.close()
        return importer

    def views(self) -> dict[str, m.SessionView]:
        assert verify_log(self.path).problems == []
        with open_log_file(self.path) as file:
            return {head.session_id: m.fold(head.session_id, file.records(head.session_id)) for head in file.heads()}

    def texts(self, session_id: str) -> list[str]:
        return [m.text_of(entry.content) for entry in self.views()[session_id].entries]


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path)


def many(number: int) -> list[OldConversation]:
    return [OldConversation(f"conv_{place:04}", updated_at=1000.0 + place) for place in range(number)]


async def test_every_page_of_the_list_is_imported(here: Here) -> None:
    async with serve_old(*many(230)) as old:
        done = await here.take_in(old)
    views = here.views()
    assert done.counts[IMPORTED] == len(views) == 230
    assert here.texts("conv_0007") == ["question 0", "an answer"]
    assert (views["conv_0007"].title, views["conv_0007"].updated_at) == ("A conversation", 1007.0)


async def test_importing_again_reads_nothing_again(here: Here) -> None:
    async with serve_old(*many(3)) as old:
        await here.take_in(old)
        old.reads.clear()
        done = await here.take_in(old)
        assert old.reads == {}
    assert (done.counts[IMPORTED], done.counts[UNCHANGED]) == (0, 3)


async def test_two_imports_at_once_store_every_session_once(here: Here) -> None:
    async with serve_old(*many(40)) as old:
        old.seconds = 0.3
        first, second = await asyncio.gather(here.take_in(old), here.take_in(old))
    assert len(here.views()) == 40
    assert first.counts[IMPORTED] + second.counts[IMPORTED] == 40


async def test_an_import_that_was_killed_goes_on(here: Here) -> None:
    async with serve_old(*many(100)) as old:
        old.seconds = 0.2
        running = asyncio.create_task(here.take_in(old))
        await asyncio.sleep(7)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        stored = len(here.views())
        assert 0 < stored < 100
        done = await here.take_in(old)
    assert done.counts[IMPORTED] == 100 - stored
    assert len(here.views()) == 100


async def test_what_fails_is_reported_and_imported_later(here: Here) -> None:
    lines: list[ImportLine] = []
    async with serve_old(*many(4)) as old:
        old.broken, old.forgotten = {"conv_0001"}, {"conv_0002"}
        done = await here.take_in(old, lines=lines)
        assert (done.counts[IMPORTED], done.counts[ImportOutcome.FAILED], done.counts[ImportOutcome.GONE]) == (2, 1, 1)
        reasons = {line.reason for line in lines if line.outcome is ImportOutcome.FAILED}
        assert len(reasons) == 1
        assert "500" in reasons.pop()
        old.broken, old.forgotten = set(), set()
        done = await here.take_in(old)
    assert done.counts[IMPORTED] == 2
    assert len(here.views()) == 4


async def test_a_conversation_that_the_server_is_too_slow_for_is_imported_later(here: Here) -> None:
    async with serve_old(*many(3)) as old:
        old.slow = {"conv_0001": 31.0}
        done = await here.take_in(old)
        assert (done.counts[IMPORTED], done.counts[ImportOutcome.FAILED]) == (2, 1)
        old.slow = {}
        done = await here.take_in(old)
    assert (done.counts[IMPORTED], done.counts[UNCHANGED]) == (1, 2)


async def test_of_two_conversations_with_one_id_the_one_that_the_server_gives_is_imported(here: Here) -> None:
    async with serve_old(OldConversation("same", "First", 2000.0), OldConversation("same", "Second", 1500.0)) as old:
        done = await here.take_in(old)
    assert (done.counts[IMPORTED], done.counts[ImportOutcome.REPEATED]) == (1, 1)
    assert here.views()["same"].title == "First"


async def test_a_conversation_that_moves_in_the_list_meanwhile_is_not_missed(here: Here) -> None:
    """The list has the newest first: a conversation of the second page that changes moves to the first page."""
    async with serve_old(*many(150)) as old:
        moved = old.listed[120]

        def change() -> None:
            old.listed.remove(moved)
            old.listed.insert(0, moved)
            moved.updated_at = 3000.0

        old.after_read["conv_0003"] = change
        done = await here.take_in(old)
    assert len(here.views()) == done.counts[IMPORTED] == 150


async def test_what_has_changed_there_is_imported_again(here: Here) -> None:
    async with serve_old(*many(2)) as old:
        await here.take_in(old)
        old.listed[0].answers.append("one more")
        old.listed[0].updated_at = 4000.0
        done = await here.take_in(old)
    assert (done.counts[ImportOutcome.RENEWED], done.counts[UNCHANGED]) == (1, 1)
    assert here.texts("conv_0000") == ["question 0", "an answer", "question 1", "one more"]


async def test_what_has_gone_on_here_is_never_replaced(here: Here) -> None:
    async with serve_old(*many(1)) as old:
        await here.take_in(old)
        go_on(here, "conv_0000")
        old.listed[0].updated_at = 4000.0
        done = await here.take_in(old)
    assert done.counts[ImportOutcome.WENT_ON] == 1
    assert here.views()["conv_0000"].title == "Ours"


def go_on(here: Here, session_id: str) -> None:
    """Something happens in the session here."""
    from gateway.storage import open_exclusively
    from gateway.storage.log.sqlite import SegmentWriter

    head = here.views()[session_id].head
    record = m.Record(seq=head + 1, at=NOW, session_id=session_id, event=m.SessionUpdated(title="Ours"))
    with open_exclusively(here.path) as connection:
        connection.execute("BEGIN")
        SegmentWriter({session_id: [record]})(connection)
        connection.execute("COMMIT")


async def test_a_session_of_ours_with_the_id_is_left_alone(here: Here) -> None:
    from gateway.storage.log import store_sessions

    ours = m.Record(seq=1, at=1.0, session_id="conv_0000", event=m.SessionCreated(agent="demo", title="Ours"))
    store_sessions(here.path, [[ours]], lambda *_: False)
    async with serve_old(*many(1)) as old:
        done = await here.take_in(old)
    assert done.counts[ImportOutcome.CONFLICT] == 1
    assert here.views()["conv_0000"].title == "Ours"


async def test_an_id_that_no_dialect_can_show_is_replaced_and_kept_in_the_report(here: Here) -> None:
    lines: list[ImportLine] = []
    async with serve_old(OldConversation("a b")) as old:
        await here.take_in(old, lines=lines)
        [(own_id, view)] = here.views().items()
        assert (await here.take_in(old)).counts[UNCHANGED] == 1
    assert [(line.session_id, line.own_id) for line in lines[:1]] == [("a b", own_id)]
    with open_log_file(here.path) as file:
        first = file.first_record(own_id)
    assert first is not None
    mark = ImportMark.of(first)
    assert mark is not None
    assert mark.session_id == "a b"
    assert view.shown_metadata == {}


async def test_a_rate_bounds_the_requests(here: Here) -> None:
    loop = asyncio.get_running_loop()
    async with serve_old(*many(10)) as old:
        began = loop.time()
        await here.take_in(old, ImportChoice(rate=0.5))
        assert loop.time() - began >= 20, "ten conversations and a list, one request in two seconds"


async def test_since_leaves_out_what_has_not_changed(here: Here) -> None:
    async with serve_old(*many(10)) as old:
        done = await here.take_in(old, ImportChoice(since=1007.0))
    assert (done.counts[IMPORTED], done.counts[ImportOutcome.OLDER]) == (3, 7)


async def test_a_dry_run_reads_everything_and_stores_nothing(here: Here) -> None:
    lines: list[ImportLine] = []
    async with serve_old(*many(3)) as old:
        done = await here.take_in(old, ImportChoice(is_dry=True), lines)
    assert (done.counts[IMPORTED], [line.turns for line in lines]) == (3, [1, 1, 1])
    assert here.views() == {}
    assert await NoStore().find("conv_0000") is None


async def test_an_import_stops_where_the_server_is_gone(here: Here) -> None:
    async with serve_old(*many(20)) as old:
        pass
    with pytest.raises(GatewayError):
        await here.take_in(old)


async def test_nothing_is_stored_beside_a_server(here: Here) -> None:
    lock = lock_database(here.path)
    try:
        async with serve_old(*many(2)) as old:
            with pytest.raises(StorageUnusable, match="in use by another server"):
                await here.take_in(old)
    finally:
        lock.close()
    assert here.views() == {}


