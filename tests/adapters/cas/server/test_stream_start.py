"""Where a stream without a cursor begins: with the turn that nobody has had, whatever a client does first."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import gateway.model as m
from adapters.cas.server import history
from tests.support.dialects.cas.client import Client, confirm, toolset, types
from tests.support.dialects.cas.reader import kept
from tests.support.gateway_server import Served, serving, simulation, until


async def heard_words(cas: Client, session: str) -> list[str]:
    """The messages and the stop reason that a stream without a cursor has, up to where the turn yields."""
    async with cas.listening(session) as stream:
        heard = kept(await stream.until("session.status_idle"))
    return [event["content"][0]["text"] if "content" in event else event["stop_reason"]["type"]
            for event in heard if event["type"] in ("user.message", "session.status_idle")]


async def unheard(served: Served, session: str, words: str) -> None:
    """A turn that runs to its end while nobody listens."""
    await Client(served).sent(session, words)
    view = await served.gateway.sessions.get("", session)
    await until(lambda: view.turn_id is None)


async def test_a_stream_begins_with_the_newest_turn_that_no_stream_has_carried(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects={"cas": {}}, log="memory") as served:
        cas = Client(served)
        session = await cas.session()
        for words in ("one", "two"):
            await unheard(served, session, words)
        assert await heard_words(cas, session) == ["two", "end_turn"]
        await unheard(served, session, "three")
        assert await heard_words(cas, session) == ["three", "end_turn"]
        async with cas.listening(session) as stream:
            await cas.sent(session, "/slow 100")
            assert (await stream.next()).body["content"][0]["text"] == "/slow 100"
        assert await heard_words(cas, session) == ["/slow 100", "end_turn"], "nobody has had its end"


async def test_a_stream_after_a_pause_begins_with_the_answer(cas: Client) -> None:
    session = await cas.session(toolset(calc="ask"))
    await cas.sent(session, "/permit hello")
    assert await heard_words(cas, session) == ["/permit hello", "requires_action"]
    waits = (await cas.events(session))[-1]["stop_reason"]["event_ids"]
    await cas.sent(session, *map(confirm, waits))
    async with cas.listening(session) as stream:
        heard = kept(await stream.until("session.status_idle"))
    assert types(heard)[:2] == ["user.tool_confirmation", "session.status_running"]
    assert heard[-1]["stop_reason"] == {"type": "end_turn"}


async def test_a_thread_has_streams_of_its_own(cas: Client) -> None:
    session = await cas.session()
    await cas.turn(session, "/fork look around")
    child = (await cas.ok("GET", f"/sessions/{session}/threads"))["data"][1]["id"]
    async with cas.listening(session, path=f"threads/{child}/stream") as stream:
        heard = kept(await stream.until("session.thread_status_terminated"))
    assert types(heard)[0] == "session.thread_created"


async def test_after_a_restart_a_stream_begins_with_the_turn_that_waits_or_with_what_comes_next(tmp_path: Path) -> None:
    async with serving(tmp_path, log="sqlite", dialects={"cas": {}}) as served:
        cas = Client(served)
        session, waiting = await cas.session(), await cas.session(toolset(calc="ask"))
        await unheard(served, session, "one")
        await cas.turn(waiting, "/permit two")
    simulation().move(1.0)
    async with serving(tmp_path, log="sqlite", dialects={"cas": {}}) as served:
        cas = Client(served)
        assert await heard_words(cas, waiting) == ["/permit two", "requires_action"]
        async with cas.listening(session) as stream:
            await cas.sent(session, "three")
            assert (await stream.next()).body["content"][0]["text"] == "three"


async def test_a_stream_may_start_at_the_tail(tmp_path: Path) -> None:
    async with serving(tmp_path, log="sqlite", dialects={"cas": {"stream_start": "tail"}}) as served:
        cas = Client(served)
        session = await cas.session()
        told = await cas.turn(session, "one")
        await unheard(served, session, "nobody hears this")
        async with cas.listening(session) as stream:
            await cas.sent(session, "two")
            heard = await stream.until("session.status_idle")
            assert heard[0].body["content"][0]["text"] == "two"
        async with cas.listening(session, "stream_start=replay") as stream:
            assert (await stream.next()).body == told[0]
        async with cas.listening(session, f"after_id={told[0]['id']}") as stream:
            assert (await stream.next()).body == told[1]
        assert (await cas.call("GET", f"/sessions/{session}/events/stream?stream_start=x"))[0] == 400


async def test_the_oldest_places_are_forgotten_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_STREAMS", 1)
    async with serving(tmp_path, dialects={"cas": {}}, log="memory") as served:
        cas = Client(served)
        first, second = await cas.session(), await cas.session()
        for session in (first, second):
            await unheard(served, session, "one")
            assert await heard_words(cas, session) == ["one", "end_turn"]
        assert await heard_words(cas, first) == ["one", "end_turn"]


async def test_a_turn_whose_end_is_not_stored_yet_was_carried_by_nobody() -> None:
    async def records(*given: object) -> list[object]:
        return []

    house: Any = SimpleNamespace(
        settings=SimpleNamespace(stream_start="turn"), sessions=SimpleNamespace(records=records), started_at=0.0)
    view: Any = SimpleNamespace(
        owner="", session_id="sess_1", status=m.SessionStatus.IDLE, turn_starts=[3, 8], stops=[6, 12], head=12)
    assert await history.StreamStart(house).after(view, None, None) == 6
