"""CAS heard over lines that break: every event once and in order, wherever the stream was cut."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

import gateway.model as m
from adapters.cas.client.remote import Remote
from adapters.cas.client.turn_stream import frame_of_event
from gateway.client import SseEvent
from gateway.errors import BackendFailed
from gateway.ports.remote import NewRemoteSession, RemoteAddress, Timeouts
from tests.adapters.cas.client.test_remote import ASKING, conversation, listen, same
from tests.support.client import byte_server as wire
from tests.support.connection_faults import breaking_proxy
from tests.support.dialects.cas.client import AT
from tests.support.dialects.cas.cutting_proxy import cutting_proxy
from tests.support.dialects.cas.facts import CheckedDecoder, Turn, of_records
from tests.support.dialects.cas.scripted_server import ScriptedServer, event, heard, idle, scripted_server, text
from tests.support.examples import cuts, whole_in_the_proof
from tests.support.gateway_server import serving

PATIENT = Timeouts(connect=20, first_byte=30, idle=30, attempts=20)


def delta(event_id: str, words: str) -> bytes:
    return event("event_delta", event_id=event_id, delta={"index": 0, "content": {"type": "text", "text": words}})


STREAM: tuple[bytes, ...] = (
    event("session.status_running", "e1"), event("event_start", event={"id": "e3", "type": "agent.message"}),
    *(delta("e3", word) for word in ("Good ", "day, ", "Pera.")), text("Good day, Pera.", "e3"),
    event("agent.tool_use", "e4", name="look"), event("agent.tool_result", "e5", tool_use_id="e4", content="a cat"),
    text("A cat.", "e6"), idle("e8"),
)
"""A short turn with everything in it that can be cut."""


def numbered(frames: Sequence[bytes]) -> tuple[bytes, ...]:
    """The same with an id for each preview, as our own server has it."""
    return tuple(
        frame if frame.startswith(b"id: ") else f"id: p{at}\n".encode() + frame for at, frame in enumerate(frames))


WAYS = {"again": STREAM, "whole": STREAM, "there": numbered(STREAM), "forgets": numbered(STREAM)}
"""How a server goes on that was in the middle of an event: it tells it again from its start; it says no more of it
until it is whole; it goes on right there, because its previews have ids; they have ids, but it does not know them."""


class Cutting:
    """Tells the stream up to a byte, which the name of the session tells; then what follows the last event heard."""

    def __init__(self, way: str) -> None:
        self.way, self.frames = way, WAYS[way]
        self.begun: set[str] = set()

    async def answer(self, writer: asyncio.StreamWriter, asked: wire.ReceivedRequest) -> None:
        session = asked.path.split("/")[2]
        if session not in self.begun:
            self.begun.add(session)
            await wire.stream(b"".join(self.frames)[:int(session)], ends=False)(writer, asked)
        elif self.way == "forgets" and asked.headers["last-event-id"].startswith("p"):
            await wire.says(b'{"error":{"message":"unknown id"}}', 400)(writer, asked)
        else:
            await wire.stream(*self._after(asked.headers["last-event-id"]))(writer, asked)

    def _after(self, cursor: str) -> Sequence[bytes]:
        places = [at for at, frame in enumerate(self.frames) if frame.startswith(f"id: {cursor}\n".encode())]
        assert places or cursor == "e0", "only what has an id is named"
        rest = self.frames[places[0] + 1:] if places else self.frames
        kept = [at for at, frame in enumerate(rest) if frame.startswith(b"id: e")]
        return rest[kept[0]:] if self.way == "whole" else rest


async def told_when_cut(way: str, places: Sequence[int]) -> list[list[Turn]]:
    """What is heard of the stream when it is cut there, for each place."""
    witnesses = [CheckedDecoder() for _ in places]
    async with scripted_server(ScriptedServer(stream=[Cutting(way).answer]), PATIENT) as remote:
        for start in range(0, len(places), 100):
            await asyncio.gather(*(
                heard(remote, witness, str(at))
                for at, witness in [*zip(places, witnesses, strict=True)][start:start + 100]
            ))
    return [witness.facts.turns for witness in witnesses]


@whole_in_the_proof
@pytest.mark.parametrize("way", WAYS)
async def test_a_stream_cut_at_any_byte_is_heard_once(way: str) -> None:
    stream = b"".join(WAYS[way])
    places = [at for at in cuts(stream, 13) if at >= len(STREAM[0])]  # before that nothing was heard: see below
    [whole] = await told_when_cut(way, [len(stream)])
    assert whole[0].words("text") == ["Good day, Pera.", "A cat."]
    assert whole[0].results == [("root", 0, "a cat", False)]
    assert await told_when_cut(way, places) == [whole] * len(places)


async def test_a_stream_cut_before_its_first_event_is_asked_for_again() -> None:
    told = await told_when_cut("again", range(0, len(STREAM[0]), 16))
    assert all(turns[0].words("text") == ["Good day, Pera.", "A cat."] for turns in told)


async def test_what_was_announced_and_comes_otherwise_is_a_failure() -> None:
    lie = (*STREAM[:5], text("Good night, Pera.", "e3"), idle())
    async with scripted_server(ScriptedServer(stream=[wire.stream(*lie)])) as remote:
        with pytest.raises(BackendFailed, match="not those it had announced"):
            await heard(remote, CheckedDecoder())


# -- a gateway of ours ------------------------------------------------------------------------------------------------

@asynccontextmanager
async def talking(address: str) -> AsyncIterator[Remote]:
    remote = Remote(RemoteAddress(url=f"{address}{AT}", patience=PATIENT))
    try:
        yield remote
    finally:
        await remote.close()


TALK = "/think /burst 20 /tool clock /fork and so on"


async def test_a_gateway_behind_a_line_that_is_cut(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        for place in range(400, 8000, 950):
            async with cutting_proxy(served.port, cuts=3, after=place) as (address, line), talking(address) as remote:
                session = await remote.open(NewRemoteSession())
                witness = await conversation(remote, session, TALK)
                same(witness.facts, of_records(await served.gateway.sessions.records("", session)))
                assert line.made, "the line was cut"


async def test_a_gateway_behind_a_line_that_breaks_everything(tmp_path: Path) -> None:
    """Also what is sent: it is carried out once, under its key."""
    async with serving(tmp_path) as served, breaking_proxy(served.port, 7) as line, talking(line.address) as remote:
        session = await remote.open(NewRemoteSession(settings=ASKING))
        witness = await conversation(remote, session, "/burst 20 /parallel hello")
        records = await served.gateway.sessions.records("", session)
        same(witness.facts, of_records(records))
        assert line.breaks
        assert len(of_records(records).turns) == 2, "one turn, and nothing after it"


# -- threads ----------------------------------------------------------------------------------------------------------

def in_thread(type: str, id: str, **fields: Any) -> dict[str, Any]:
    return {"type": type, "id": id, "session_thread_id": "sthr_1", "turn_id": "t1", **fields}


THREAD = [
    in_thread("session.thread_created", "e2", parent_thread_id="sthr_0", agent_name="Helper", role="child"),
    {**in_thread("agent.message", "e20", content="of another turn"), "turn_id": "t0"},
    in_thread("span.model_request_start", "e3", model="m"),
    in_thread("agent.thinking", "e4", thinking="Hm."),
    in_thread("agent.tool_use", "e5", name="look"),
    in_thread("span.model_request_end", "e6"),
    in_thread("agent.tool_result", "e7", tool_use_id="e5", content="a cat"),
    in_thread("session.thread_status_terminated", "e8", status="terminated", stop_reason={"type": "end_turn"}),
]
TOLD = ("e2", "e5", "e7", "e8")
"""What of it is on the session's stream."""


def pages(size: int) -> wire.Answer:
    """The list of the thread's events, so many at a time."""
    async def answer(writer: asyncio.StreamWriter, asked: wire.ReceivedRequest) -> None:
        query = dict(pair.split("=") for pair in asked.path.partition("?")[2].split("&"))
        ids = [one["id"] for one in THREAD]
        after = ids.index(query["after_id"]) + 1 if "after_id" in query else 0
        start = int(query.get("page", after))
        page = {"data": THREAD[start:start + size], "has_more": start + size < len(THREAD),
                "next_page": str(start + size)}
        await wire.says(orjson.dumps(page))(writer, asked)

    return answer


@pytest.mark.parametrize("size", [1, 3, 100])
async def test_the_words_of_a_thread_are_read_from_its_list(size: int) -> None:
    frames, witness = [event(**one) for one in THREAD if one["id"] in TOLD], CheckedDecoder()
    stranger = ScriptedServer(stream=[wire.stream(*frames, text("Done.", "e9"), idle())], thread=[pages(size)])
    async with scripted_server(stranger) as remote:
        await heard(remote, witness)
    turn = witness.facts.turns[0]
    assert turn.words("thinking", "scope_1") == ["Hm."]
    assert turn.words("text", "scope_1") == []
    assert [part[0] for part in turn.messages["scope_1"][0].parts] == ["thinking", "call"]
    assert turn.results == [("scope_1", 0, "a cat", False)]
    assert turn.words("text") == ["Done."]


async def test_threads_that_cannot_be_read_are_asked_for_once() -> None:
    frames = [event(**one) for one in THREAD if one["id"] in TOLD]
    stranger = ScriptedServer(stream=[wire.stream(*frames, idle())])
    async with scripted_server(stranger) as remote:
        witness = CheckedDecoder()
        await heard(remote, witness)
    assert len(stranger.asked("thread")) == 1
    assert witness.facts.turns[0].results == [("scope_1", 0, "a cat", False)]


async def test_a_list_that_is_none_is_a_failure() -> None:
    frames = [event(**one) for one in THREAD if one["id"] in TOLD]
    async with scripted_server(
        ScriptedServer(stream=[wire.stream(*frames, idle())], thread=[wire.says(b'{"data":5}')])
    ) as remote:
        with pytest.raises(BackendFailed, match="a list that has no data"):
            await listen(CheckedDecoder(), remote.start_turn("s1", m.SendMessage(content="x")))


def test_an_id_that_stays_is_not_the_events_own() -> None:
    assert frame_of_event(SseEvent("message", "{}", "e1")).id == "e1"
    assert frame_of_event(SseEvent("message", "{}", "e1"), "e1").id == ""
