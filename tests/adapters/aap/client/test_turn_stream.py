"""A turn over lines that break and from servers that misbehave: heard once and in order, or a clear failure."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest

import gateway.model as m
from adapters.aap.client.decoder import frame_decoder
from adapters.aap.client.turn_stream import EVENT_ID, StreamInterrupted, TurnStream, frames_of_body
from gateway.client import HttpClient
from gateway.errors import BackendFailed, ConnectionLost, GatewayError, Overloaded, RateLimited, TimedOut
from gateway.ports.remote import DecodedItem, NewRemoteSession, RemoteTurnEnd, Timeouts
from tests.support.client.byte_server import (
    END,
    ReceivedRequest,
    Server,
    chunk,
    hangs,
    head,
    raw,
    says,
    serving,
    stream,
)
from tests.support.dialects.aap.conversations import CheckingEngine, facts
from tests.support.dialects.aap.remote_conversation import (
    MADE,
    META,
    QUICK,
    SETTINGS,
    START,
    STOP,
    RemoteConversation,
    all_of,
    answer_to,
    conversing,
    cutting_proxy,
    event,
    spoken_to,
    turn,
)
from tests.support.examples import cuts, whole_in_the_proof
from tests.support.gateway_server import serving as gateway

EVENTS = (START, event("text_delta", delta="Hé"), event("tool_call", toolCallId="c", name="clock", input={}),
          event("tool_result", toolCallId="c", content="noon"), event("text_delta", delta="llo"), STOP)
TOLD = [("text", "Hé"), ("call", "c", "clock", {}), ("result", "c", "noon"), ("text", "llo"), ("ended", "end_turn")]
WHOLE = head() + b"".join(map(chunk, EVENTS)) + END


def told(heard: Sequence[DecodedItem]) -> list[Any]:
    house = CheckingEngine()
    house.start()
    house.take(heard)
    return facts(house.records)


KEEPING = says(orjson.dumps({"version": 3, "agents": [{
    "name": "stranger", "version": "1.0.0", "capabilities": {"stream": {"delta": {}}, "history": {"full": {}}},
}]}))
"""An agent that keeps its history."""


async def hear(server: Server, patience: Timeouts = QUICK) -> list[DecodedItem]:
    """One turn with a server that has told of its agent and made a session; what fails is raised, never waited for."""
    async with asyncio.timeout(30), conversing(server.url) as talk:
        talk.remote._upstream.timeouts = patience
        return list(await all_of(talk.remote.start_turn(talk.session_id, m.SendMessage(content="hi"))))


# -- lines that break -------------------------------------------------------------------------------------------------

class Resumable:
    """Answers a turn with some bytes, and whoever comes again with so many of the events that are left."""

    def __init__(self, first: bytes, *, ids: bool = True, each: int = 100, from_the_start: bool = False) -> None:
        self.first, self.ids, self.each, self.from_the_start = first, ids, each, from_the_start

    async def __call__(self, writer: asyncio.StreamWriter, asked: ReceivedRequest) -> None:
        if asked.path == "/sessions/s1":
            writer.write(head(kind="application/json") + chunk(b'{"agent": {"name": "stranger"}}') + END)
            return
        writer.write(self.first if asked.method == "POST" else head() + b"".join(map(chunk, self.rest(asked))))
        writer.close()

    def rest(self, asked: ReceivedRequest) -> list[bytes]:
        query = parse_qs(urlsplit(asked.path).query)
        assert query["stream"] == ["delta"]
        had = 0 if self.from_the_start else int(query["after"][0].rpartition(".")[2])
        events = [(f"id: 7.{n}\n".encode() if self.ids else b"") + one for n, one in enumerate(EVENTS, 1)]
        return events[had:][:self.each]


@whole_in_the_proof
async def test_a_stream_that_is_cut_at_any_byte_is_heard_once_and_in_order() -> None:
    """Where not even the head of the answer came, nobody knows whether the message was taken: that is told."""
    answer = Resumable(b"")
    async with serving(META, answer) as server, spoken_to(server.url) as remote:
        for cut in [*cuts(WHOLE, 13), len(WHOLE)]:
            answer.first = WHOLE[:cut]
            async with asyncio.timeout(30):
                if cut < len(head()):
                    with pytest.raises(ConnectionLost, match="broke"):
                        await all_of(remote.start_turn("s1", m.SendMessage(content="hi")))
                else:
                    assert told(await all_of(remote.start_turn("s1", m.SendMessage(content="hi")))) == TOLD, cut


@pytest.mark.parametrize("answer", [
    Resumable(head(), each=1), Resumable(head(), each=1, ids=False), Resumable(head() + chunk(START), each=2),
    Resumable(head() + b"".join(map(chunk, EVENTS[:3])), from_the_start=True),
], ids=["one by one", "without ids", "two by two", "told from the start"])
async def test_a_stream_in_many_pieces_is_one_stream(answer: Resumable) -> None:
    async with serving(META, MADE, answer) as server:
        assert told(await hear(server)) == TOLD
        posts = [asked for asked in server.asked if asked.method == "POST" and asked.path.endswith("/turns")]
        assert len(posts) == 1, "the message is sent once"


async def test_the_last_id_is_what_a_stream_is_taken_up_after() -> None:
    async with serving(META, MADE, Resumable(head() + chunk(START), each=2)) as server:
        await hear(server)
        paths = [asked.path.partition("after=")[2] for asked in server.asked if "/current" in asked.path]
        assert paths == ["1&stream=delta", "7.3&stream=delta", "7.5&stream=delta"]


async def test_a_line_that_never_gets_further_is_given_up() -> None:
    async with serving(META, MADE, Resumable(head() + chunk(START), each=0)) as server:
        with pytest.raises(ConnectionLost, match=r"broke|ended its stream"):
            await hear(server)
        assert len([asked for asked in server.asked if "/current" in asked.path]) == QUICK.attempts


@pytest.mark.parametrize("again", [
    says(b'{"error": "no such route"}', 404), says(b"{}", 405), says(b'{"error": "after: what?"}', 400),
    says(b"", 204), says(b"{}"),
], ids=["404", "405", "400", "204", "no stream"])
async def test_a_server_that_cannot_resume_has_cut_the_turn(again: Any) -> None:
    async with serving(META, MADE, stream(START, EVENTS[1], ends=False), again) as server:
        with pytest.raises(ConnectionLost, match="broke"):
            await hear(server)


async def test_a_server_that_comes_back_after_a_while_is_waited_for() -> None:
    busy = says(b'{"error": "stopping"}', 503)
    farewell = stream(START, EVENTS[1], b"retry: 20\n: server restarts; reconnect\n\n")
    async with serving(META, MADE, farewell, busy, busy, Resumable(b"")) as server:
        assert told(await hear(server)) == TOLD


async def test_a_real_server_over_a_line_that_is_cut_anywhere_hears_each_message_once(tmp_path: Path) -> None:
    """In the head of an answer or later, in a turn or in its continuation."""
    async with gateway(tmp_path) as served, cutting_proxy(served.port) as line, spoken_to(f"{line.url}/aap") as remote:
        for cut in (*range(0, 900, 60), 4):
            talk = RemoteConversation(remote, await remote.open(NewRemoteSession(settings=SETTINGS)))
            await talk.say("hello")
            line.cut_after = cut
            pending = await talk.hear(remote.start_turn(talk.session_id, m.SendMessage(content="/parallel hello")))
            line.cut_after = cut
            answers = [(asked, answer_to(asked.ask)) for asked in pending]
            assert await talk.hear(remote.answer(talk.session_id, answers)) == []
            log = list(await served.gateway.sessions.records("", talk.session_id))
            assert in_any_order(facts(talk.house.records)) == in_any_order(facts(log)), cut
            line.cut_after = None
        assert line.cuts > 20


def in_any_order(found: list[Any]) -> list[str]:
    """Words in order, and everything else that was told."""
    return [*(fact[1] for fact in found if fact[0] == "text"), *sorted(map(str, found))]


@pytest.mark.parametrize(("people", "posts"), [(1, 1), (0, 2), (2, 1)], ids=["taken", "not taken", "nobody can tell"])
async def test_whether_a_message_was_taken_is_found_out_from_the_history(people: int, posts: int) -> None:
    history = [{"role": "user", "content": "hi"}] * people
    whole, lost = Resumable(WHOLE), [b""]

    async def answer(writer: asyncio.StreamWriter, asked: ReceivedRequest) -> None:
        if "/history" in asked.path:
            body = orjson.dumps({"history": {"full": history}})
            writer.write(head(kind="application/json") + chunk(body) + END)
        elif asked.method == "POST" and lost:
            lost.pop()
            writer.close()
        else:
            await whole(writer, asked)

    async with serving(KEEPING, MADE, answer) as server:
        if people == 2:
            with pytest.raises(ConnectionLost, match="broke"):
                await hear(server)
        else:
            assert told(await hear(server)) == TOLD
        assert len([asked for asked in server.asked if asked.path.endswith("/turns")]) == posts


# -- servers that misbehave -------------------------------------------------------------------------------------------

IMPATIENT = Timeouts(connect=5, first_byte=0.3, idle=0.3, total=20, attempts=2)
BAD = {
    "half a JSON": (stream(START, b'event: text_delta\ndata: {"delta": "a\n\n'), "a text_delta that is not JSON"),
    "wrong UTF-8": (stream(START, b'event: text_delta\ndata: {"delta": "\xff"}\n\n'), "not UTF-8"),
    "no stream": (says(b"{}"), "answered with application/json, not with a stream"),
    "a page": (says(b"<html>", kind="text/html"), "answered with text/html, not with a stream"),
    "a frame that cannot be": (turn(event("text_delta", delta=5)), "a text_delta of the server cannot be understood"),
    "no HTTP": (raw(b"SSH-2.0-OpenSSH\r\n"), "broke"),
    "a chunk that cannot be": (raw(head() + b"zz\r\n"), "broke"),
    "a redirect": (says(b"", 302, Location="http://127.0.0.1:9/"), "answered 302 with a redirect"),
    "401": (says(b'{"error": "who?"}', 401), "answered 401: who\\?"),
    "404": (says(b'{"error": "no session"}', 404), "answered 404: no session"),
    "409": (says(b'{"error": "a turn runs"}', 409), "answered 409: a turn runs"),
    "nothing": (stream(), "ended its stream before the turn was over"),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_server_fails_in_clear_words(name: str) -> None:
    answer, words = BAD[name]
    async with serving(META, MADE, answer, says(b"{}", 404)) as server:
        with pytest.raises(BackendFailed, match=words):
            await hear(server)


@pytest.mark.parametrize(("status", "error"), [(429, RateLimited), (500, Overloaded), (503, Overloaded)])
async def test_a_server_that_is_busy_is_not_told_twice(status: int, error: type[GatewayError]) -> None:
    async with serving(META, MADE, says(b'{"error": "later"}', status, Retry_After="7")) as server:
        with pytest.raises(error, match="later") as refused:
            await hear(server)
        assert refused.value.details == {"upstream_status": status, "retry_after": 7}
        assert len(server.asked) == 3


async def test_a_server_that_is_not_there_is_tried_and_given_up() -> None:
    async with serving(META, MADE) as server, spoken_to(server.url, patience=IMPATIENT) as remote:
        await remote.open(NewRemoteSession())
        url = server.url
    async with spoken_to(url, patience=IMPATIENT) as remote:
        with pytest.raises(BackendFailed, match="cannot be reached"):
            await remote.about()
        remote._card = None
        with pytest.raises(BackendFailed, match="cannot be reached"):
            await all_of(remote.start_turn("s1", m.SendMessage(content="hi")))


@pytest.mark.parametrize("before", [(), (head(),), (head(), chunk(START), chunk(EVENTS[1]))],
                         ids=["at once", "before the first event", "in the middle"])
async def test_a_server_that_hangs_is_not_waited_for_without_end(before: tuple[bytes, ...]) -> None:
    async def hang(writer: asyncio.StreamWriter, asked: ReceivedRequest) -> None:
        await hangs(server, *before)(writer, asked)

    async with serving(META, MADE, hang) as server:
        with pytest.raises(TimedOut, match="sent nothing for"):
            await hear(server, IMPATIENT)
        async with asyncio.timeout(60):
            await server.gone.wait()


LAWFUL: dict[str, tuple[Any, list[Any]]] = {
    "garbage frames": (
        turn(b"event: weather\ndata: not JSON\n\n", b"data: [1]\n\n", b": a comment\n\n", event("usage", tokens=3),
             b"nonsense without a colon\n\n", EVENTS[1]),
        [("text", "Hé"), ("ended", "end_turn")],
    ),
    "events after the end": (turn(EVENTS[1], STOP, EVENTS[4], EVENTS[2]), [("text", "Hé"), ("ended", "end_turn")]),
    "a call without input": (
        turn(event("tool_call", toolCallId="c", name="clock"), EVENTS[3]),
        [("call", "c", "clock", {}), ("result", "c", "noon"), ("ended", "end_turn")],
    ),
    "a result of no call": (turn(EVENTS[3], EVENTS[1]), [("text", "Hé"), ("ended", "end_turn")]),
    "no start": (stream(EVENTS[1], STOP), [("text", "Hé"), ("ended", "end_turn")]),
    "no words at all": (turn(), [("ended", "end_turn")]),
    "names inside of the data": (
        stream(*(b"data: " + orjson.dumps({"event": name, **body}) + b"\n\n" for name, body in (
            ("turn_start", {}), ("text_delta", {"delta": "a"}), ("turn_stop", {"stopReason": "refusal"})))),
        [("text", "a"), ("ended", "refusal")],
    ),
}


@pytest.mark.parametrize("name", LAWFUL)
async def test_what_is_odd_but_can_be_understood_is_heard_lawfully(name: str) -> None:
    answer, expected = LAWFUL[name]
    async with serving(META, MADE, answer) as server:
        assert told(await hear(server)) == expected


@pytest.mark.parametrize("said", [
    turn(EVENTS[2], EVENTS[2]), stream(START, EVENTS[1], event("turn_stop", stopReason="tool_use")),
    stream(START, event("turn_stop", stopReason="whatever")),
], ids=["two calls with one id", "waits for nothing", "a reason nobody knows"])
async def test_what_makes_no_sense_ends_the_turn_with_a_fault(said: Any) -> None:
    async with serving(META, MADE, said) as server:
        heard = await hear(server)
        assert isinstance(heard[-1], RemoteTurnEnd) and heard[-1].outcome is m.Outcome.FAILED and heard[-1].fault
        told(heard)


async def test_a_server_that_does_not_say_that_a_turn_goes_on_is_heard() -> None:
    waits = stream(EVENTS[2], event("turn_stop", stopReason="tool_use"))
    async with serving(META, MADE, waits, stream(EVENTS[3], EVENTS[4], STOP)) as server:
        async with conversing(server.url) as talk:
            assert await talk.say("hi") == RemoteTurnEnd()
        assert facts(talk.house.records)[-3:] == TOLD[-3:]


async def test_calls_that_are_at_work_while_a_turn_waits_come_back_in_its_continuation() -> None:
    """Also at a server that keeps no history: what was heard is remembered."""
    inner = event("tool_call", toolCallId="i", name="inner", input={})
    question = event("tool_call", toolCallId="q", name="Ask", input={"questions": [{"question": "Which?"}]})
    waits = stream(START, inner, question, event("turn_stop", stopReason="tool_use"))
    goes_on = turn(event("tool_result", toolCallId="i", content="done"), EVENTS[4])
    async with serving(META, MADE, waits, goes_on) as server, conversing(server.url) as talk:
        await talk.say("hi", kindly=False)
        assert facts(talk.house.records)[-4:] == [
            ("result", "i", "done"), ("result", "q", "neither"), ("text", "llo"), ("ended", "end_turn")]


async def test_a_server_that_has_not_noticed_that_we_hung_up_is_asked_again() -> None:
    async def hang(writer: asyncio.StreamWriter, asked: ReceivedRequest) -> None:
        await hangs(server, head(), chunk(START), chunk(EVENTS[1]))(writer, asked)

    busy = says(b'{"error": "a turn runs"}', 409)
    async with serving(META, MADE, hang, busy, busy, turn(EVENTS[4]), busy) as server, conversing(server.url) as talk:
        async with aclosing(talk.remote.start_turn(talk.session_id, m.SendMessage(content="hi"))) as heard:
            await anext(heard)
        again = talk.remote.start_turn(talk.session_id, m.SendMessage(content="hi"))
        assert told(await all_of(again)) == [("text", "llo"), ("ended", "end_turn")]
        before = len(server.asked)
        with pytest.raises(BackendFailed, match="a turn runs"):
            await all_of(talk.remote.start_turn(talk.session_id, m.SendMessage(content="hi")))
        assert len(server.asked) == before + 1, "somebody else's turn is left alone"


# -- turns that are not streamed --------------------------------------------------------------------------------------

def test_a_whole_turn_is_told_as_the_frames_it_would_have_had() -> None:
    blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}, {"type": ["odd"]}, {"no": "type"},
              {"type": "tool_use", "toolCallId": "c", "name": "clock", "input": {}}]
    body = {"stopReason": "end_turn", "messages": [
        {"role": "assistant", "content": blocks}, {"role": "tool", "toolCallId": "c", "content": "noon"},
        {"role": "assistant", "content": "b"}, {"role": "user", "content": "?"}, {"role": "assistant"},
    ]}
    decode = frame_decoder().decode
    assert frames_of_body(body) == [
        decode("turn_start", {}),
        decode("thinking", blocks[0]),
        decode("text", blocks[1]),
        decode("tool_call", blocks[4]),
        decode("tool_result", {"toolCallId": "c", "content": "noon"}),
        decode("text", {"text": "b"}),
        decode("turn_stop", {"stopReason": "end_turn"}),
    ]
    for reason in ("tool_use", "error", "novel"):
        assert frames_of_body({"stopReason": reason, "messages": []})[-1] == decode("turn_stop", {"stopReason": reason})


@pytest.mark.parametrize("body", [None, [], {}, {"stopReason": 3}, {"stopReason": "end_turn", "messages": [7]}])
def test_a_whole_turn_that_is_none_is_refused(body: Any) -> None:
    with pytest.raises(BackendFailed, match="the answer of the server cannot be understood"):
        frames_of_body(body)


def test_an_id_names_the_turn_and_the_number() -> None:
    assert EVENT_ID.fullmatch("7.12") and not EVENT_ID.fullmatch("7") and not EVENT_ID.fullmatch("٣.1")


async def test_a_key_that_a_server_repeats_is_not_heard() -> None:
    key = "a-key-of-many-letters"
    async with serving(META, MADE, turn(event("text_delta", delta=f"it is {key}"))) as server:
        async with conversing(server.url, key=key) as talk:
            heard = await all_of(talk.remote.start_turn(talk.session_id, m.SendMessage(content="hi")))
        assert told(heard)[0] == ("text", "it is ***")
        assert {asked.headers["authorization"] for asked in server.asked} == {f"Bearer {key}"}


async def test_who_hangs_up_is_not_waited_for() -> None:
    """Also where nobody waits for the next frame just now."""
    async with serving(META, MADE, stream(START, EVENTS[1], ends=False)) as server:
        upstream = HttpClient(server.url)
        async with TurnStream(upstream, "s1", "delta", {}) as spoken:
            spoken.hang_up()
            with pytest.raises(StreamInterrupted):
                await spoken.read()
        await upstream.close()
        assert server.asked == []
