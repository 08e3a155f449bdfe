"""CAS spoken to servers that are dead, slow, rude or wrong: a lawful stream or a clear failure, and never a hang."""

import asyncio

import orjson
import pytest

import gateway.model as m
from adapters.cas.client.remote import Remote
from gateway.errors import BackendFailed, GatewayError, Overloaded, RateLimited, TimedOut
from gateway.ports.remote import NewRemoteSession, RemoteAddress, RemoteAsk, RemoteTurnEnd, Timeouts
from tests.support.client import byte_server as wire
from tests.support.connection_faults import free_port
from tests.support.dialects.cas.facts import CheckedDecoder, Turn
from tests.support.dialects.cas.scripted_server import (
    ACCEPTED,
    ONCE,
    ScriptedServer,
    event,
    heard,
    idle,
    scripted_server,
    text,
)

IMPATIENT = Timeouts(connect=20, first_byte=0.3, idle=0.3, attempts=1)
RUNNING = event("session.status_running", "e1")


async def facts(*frames: bytes) -> Turn:
    """What is heard of a stream of these frames, to its end."""
    witness = CheckedDecoder()
    async with scripted_server(ScriptedServer(stream=[wire.stream(*frames)])) as remote:
        assert isinstance((await heard(remote, witness))[-1], RemoteTurnEnd)
    return witness.facts.turns[0]


async def failure(stranger: ScriptedServer, patience: Timeouts = ONCE) -> GatewayError:
    """What the failure is, after a stream that was lawful as far as it went."""
    async with scripted_server(stranger, patience) as remote:
        with pytest.raises(GatewayError) as failed:
            await heard(remote, CheckedDecoder())
    return failed.value


def streaming(*frames: bytes) -> ScriptedServer:
    return ScriptedServer(stream=[wire.stream(*frames)])


# -- nobody, and nothing ----------------------------------------------------------------------------------------------

async def test_nobody_is_there() -> None:
    remote = Remote(RemoteAddress(url=f"http://127.0.0.1:{free_port()}", patience=ONCE, key="secret-of-mine-0123"))
    for deed in (
        remote.about(),
        remote.open(NewRemoteSession()),
        remote.interrupt("s"),
        heard(remote, CheckedDecoder()),
    ):
        with pytest.raises(BackendFailed, match="cannot be reached") as failed:
            await deed
        assert "secret-of-mine" not in str(failed.value)
    await remote.close()


async def test_a_server_that_hangs_is_given_up() -> None:
    for before in ((), (wire.head(),), (wire.head(), wire.chunk(RUNNING)), (wire.head(), wire.chunk(RUNNING[:20]))):
        stranger = ScriptedServer()
        stranger.answers["stream"] = [wire.hangs(stranger.server, *before)]
        assert isinstance(await failure(stranger, IMPATIENT), TimedOut)


async def test_a_server_that_takes_no_message_is_given_up() -> None:
    stranger = ScriptedServer()
    stranger.answers["sent"] = [wire.hangs(stranger.server)]
    assert isinstance(await failure(stranger, IMPATIENT), TimedOut)


async def test_a_stream_that_ends_over_and_over_is_given_up() -> None:
    stranger = ScriptedServer(stream=[wire.stream(b": hello\n\n")])
    failed = await failure(stranger, Timeouts(connect=20, first_byte=30, idle=30, attempts=2))
    assert "ended the stream before the turn had ended" in failed.message
    assert len(stranger.asked("stream")) == 2


@pytest.mark.parametrize("more", [
    (), (text("hi", "e2"),), (event("event_start", event={"id": "e2", "type": "agent.message"}),),
    (event("event_start", "p1", event={"id": "e2", "type": "agent.message"}),),
])
async def test_a_stream_that_says_the_same_again_and_again_is_given_up(more: tuple[bytes, ...]) -> None:
    failed = await failure(streaming(RUNNING, *more), Timeouts(connect=20, first_byte=30, idle=30, attempts=2))
    assert "ended the stream" in failed.message


# -- refusals ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("status", "kind"), [
    (400, BackendFailed), (401, BackendFailed), (403, BackendFailed), (404, BackendFailed), (409, BackendFailed),
    (429, RateLimited), (500, Overloaded), (503, Overloaded), (301, BackendFailed), (307, BackendFailed),
])
async def test_refusals_are_told(status: int, kind: type[GatewayError]) -> None:
    said = orjson.dumps({"type": "error", "error": {"type": "x", "message": "Go away."}})
    refusal = wire.says(said, status, Location="http://127.0.0.1:9/elsewhere")
    for stranger in (ScriptedServer(sent=[refusal]), ScriptedServer(stream=[refusal])):
        failed = await failure(stranger)
        assert type(failed) is kind
        assert str(status) in failed.message
        assert ("Go away." in failed.message) is (status >= 400)


async def test_what_was_sent_once_is_tried_again_under_its_key() -> None:
    stranger = ScriptedServer(
        sent=[wire.raw(b"HTTP/1.1 "), wire.says(b"", 503, Retry_After="0"), wire.says(ACCEPTED, 202)],
        stream=[wire.stream(RUNNING, text("hi", "e2"), idle())],
    )
    async with scripted_server(stranger, Timeouts(connect=20, first_byte=30, idle=30)) as remote:
        assert isinstance((await heard(remote, CheckedDecoder()))[-1], RemoteTurnEnd)
    keys = {one.headers["idempotency-key"] for one in stranger.asked("sent")}
    assert len(stranger.asked("sent")) == 3 and len(keys) == 1


@pytest.mark.parametrize("body", [
    b"", b"{", b"[]", b"null", b"{}", b'{"data":[]}', b'{"data":["x"]}', b'{"data":[{}]}', b'{"data":{"id":"e"}}',
])
async def test_an_answer_that_makes_no_sense_is_a_failure(body: bytes) -> None:
    assert isinstance(await failure(ScriptedServer(sent=[wire.says(body, 202)])), BackendFailed)
    sessions = ScriptedServer(get_agents=[wire.says(body)], get_models=[wire.says(body)], post_agents=[wire.says(body)])
    async with scripted_server(sessions) as remote:
        for deed in (remote.about(), remote.open(NewRemoteSession())):
            with pytest.raises(BackendFailed):
                await deed


async def test_a_page_is_no_stream() -> None:
    failed = await failure(ScriptedServer(stream=[wire.says(b"<h1>It works!</h1>", kind="text/html")]))
    assert "not with a stream of events" in failed.message


# -- nonsense on the stream -------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("frame", "why"), [
    (b'event: agent.message\ndata: {"type":"agent.mess\n\n', "not JSON"),
    (b"data: \xff\xfe\n\n", "not UTF-8"),
    (b"data: [1]\n\n", "not an object"),
    (b'data: "hello"\n\n', "not an object"),
    (b"data: null\n\n", "not an object"),
    (event("error", error={"type": "overloaded_error", "message": "Come back later."}), "Come back later."),
    (event("agent.message", "e2", content=5), "'content' should be a text or a list of blocks"),
    (event("agent.message", "e2", content=["x"]), "'content' should be a text or a list of blocks"),
    (event("agent.thinking", "e2", thinking=[]), "'thinking' should be a text"),
    (event("agent.tool_use", "e2", input={}), "'name' is missing"),
    (event("agent.tool_use", "e2", name="t", input="x"), "'input' should be an object"),
    (event("session.thread_created", "e2"), "does not name the thread"),
    (event("session.status_idle", "e2", stop_reason=[]), "'stop_reason' should be an object"),
    (idle("e2", "requires_action"), "does not say for what"),
    (idle("e2", "requires_action", event_ids=["e7"]), "'e7', which it never asked for"),
    (idle("e2", "requires_action", event_ids="e7"), "'stop_reason.event_ids' should be a list"),
])
async def test_what_cannot_be_is_a_failure_in_clear_words(frame: bytes, why: str) -> None:
    failed = await failure(streaming(RUNNING, frame, idle()))
    assert isinstance(failed, BackendFailed)
    assert why in failed.message


async def test_what_nobody_knows_says_nothing() -> None:
    turn = await facts(
        RUNNING, event("agent.sings", "e2", tune="la"), event("x"), b"data: {}\n\n", b": a comment\n\n",
        b"retry: 5\n\n", b"event: nothing\n\n", event("event_delta", "e3", event_id="e9", delta={}),
        event("event_start", event={}),
        event("event_delta", event_id="e9", delta={"index": "x", "content": {"text": 3}}),
        event("agent.message", "e4", content=[{"type": "hologram"}, {"type": "text", "text": "hi", "mood": "good"}]),
        event("agent.message", "e5"), event("agent.thinking", "e6"), idle(),
    )
    assert turn.words("text") == ["hi"]


async def test_calls_and_results_that_do_not_fit_are_put_right() -> None:
    turn = await facts(
        RUNNING, event("agent.tool_use", "e2", name="a"), event("agent.tool_use", "e2", name="b", input={"x": 1}),
        event("agent.tool_use", name="c"), event("agent.tool_result", "e3", tool_use_id="e7", content="who?"),
        event("agent.tool_result", "e4", tool_use_id="e2", content="one"),
        event("agent.tool_result", "e5", tool_use_id="e2", content="two"), event("agent.tool_result", "e6"),
        text("done", "e8"), idle(),
    )
    calls = [part[1:3] for message in turn.messages["root"] for part in message.parts if part[0] == "call"]
    assert calls == [("a", {}), ("c", {})]
    assert [result[1:] for result in turn.results] == [
        (0, "one", False), (1, "The turn ended before this call came back.", True)]


async def test_nothing_counts_after_the_end() -> None:
    witness = CheckedDecoder()
    after = (text("more", "e100"), idle("e101"), event("agent.tool_use", "e102", name="t"))
    async with scripted_server(streaming(RUNNING, text("hi", "e2"), idle(), *after)) as remote:
        assert isinstance((await heard(remote, witness))[-1], RemoteTurnEnd)
    assert witness.facts.turns[0].words("text") == ["hi"]
    assert len(witness.facts.turns) == 2 and witness.facts.turns[1] == Turn()


async def test_other_turns_are_not_told() -> None:
    turn = await facts(
        event("agent.message", "e1", turn_id="t0", content=[{"type": "text", "text": "old"}]),
        event("session.status_idle", "e2", turn_id="t0"), text("new", "e3"), idle(),
    )
    assert turn.words("text") == ["new"]


async def test_a_session_that_is_gone_ends_the_turn() -> None:
    for type in ("session.status_terminated", "session.deleted"):
        turn = await facts(RUNNING, text("hi", "e2"), event(type, "e3"))
        assert turn.ended[0] is m.StopReason.ERROR and "closed the session" in turn.ended[2][1]


async def test_a_server_without_spans_threads_and_previews_is_heard() -> None:
    """The least that the dialect asks of a server."""
    turn = await facts(
        RUNNING, text("Let me see.", "e2"), event("agent.tool_use", "e3", name="look", input={"at": 1}),
        event("agent.tool_result", "e4", tool_use_id="e3", content=[{"type": "text", "text": "a cat"}]),
        text("A cat.", "e5"), idle(usage={"input_tokens": 9, "output_tokens": 3}),
    )
    said = [[part[1] for part in message.parts] for message in turn.messages["root"]]
    assert said == [["Let me see.", "look"], ["A cat."]]
    assert turn.messages["root"][-1].usage == (9, 3, 0, 0)
    assert turn.results == [("root", 0, "a cat", False)]


async def test_a_server_that_asks_without_saying_for_what_is_answered() -> None:
    stranger = ScriptedServer(stream=[wire.stream(
        RUNNING, event("agent.tool_use", "e2", name="free", evaluated_permission="allow"),
        event("agent.tool_use", "e3", name="risky", evaluated_permission="ask"), idle("e4", "requires_action"),
    )])
    async with scripted_server(stranger) as remote:
        asked = [one for one in await heard(remote, CheckedDecoder()) if isinstance(one, RemoteAsk)]
    assert [one.ref for one in asked] == ["e3"]


async def test_the_words_of_threads_that_are_not_listed_are_heard_where_they_stand() -> None:
    turn = await facts(
        RUNNING, event("session.thread_created", "e2", session_thread_id="sthr_1", parent_thread_id="sthr_0",
                       agent_name="Helper", role="child"),
        event("agent.message", "e3", session_thread_id="sthr_1", content="I am here."),
        event("agent.message", "e4", session_thread_id="sthr_0", content="So am I."), idle(),
    )
    assert (turn.words("text", "scope_1"), turn.words("text")) == (["I am here."], ["So am I."])


async def test_many_messages_at_once_do_not_mix() -> None:
    async with scripted_server(streaming(RUNNING, text("hi", "e2"), idle())) as remote:
        witnesses = [CheckedDecoder() for _ in range(20)]
        await asyncio.gather(*(heard(remote, witness, f"s{at}") for at, witness in enumerate(witnesses)))
    assert [witness.facts.turns[0].words("text") for witness in witnesses] == [["hi"]] * 20

