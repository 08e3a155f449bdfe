"""CAS's events over real HTTP: turns, tools of three kinds, asks, streams, cursors and threads."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.dialects.cas.client import MINE, Client, confirm, result, toolset, types
from tests.support.dialects.cas.reader import kept
from tests.support.gateway_server import serving, until

BUSY = "Session is currently processing a turn. Cancel the current turn or wait for completion."


# -- turns ------------------------------------------------------------------------------------------------------------

async def test_a_turn_from_message_to_idle(cas: Client) -> None:
    session = await cas.session()
    told = await cas.turn(session, "/think hello")
    assert types(told) == [
        "user.message", "session.status_running", "span.model_request_start", "agent.thinking", "agent.message",
        "span.model_request_end", "session.status_idle",
    ]
    message, running, start, thought, said, end, idle = told
    assert message["content"] == [{"type": "text", "text": "/think hello"}]
    assert running["status"] == "running"
    assert start["model"] == "demo-1"
    assert thought["thinking"]
    assert said["content"] == [{"type": "text", "text": "You said: hello"}]
    assert end["model_request_start_id"] == start["id"]
    assert end["is_error"] is False
    words = {"input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"}
    assert set(end["model_usage"]) == set(end["usage"]) == set(idle["usage"]) == words
    assert (idle["status"], idle["stop_reason"]) == ("idle", {"type": "end_turn"})
    for event in told:
        assert event["id"].startswith("evt_")
        assert event["turn_id"] == message["turn_id"]
        assert event["turn_id"].startswith("turn_")
        assert event["session_id"] == session
        assert event["processed_at"] and event["created_at"].endswith("Z")


async def test_the_answer_to_a_post_is_the_event_that_is_listed(cas: Client) -> None:
    session = await cas.session()
    form = aiohttp.FormData()
    form.add_field("file", b"hello", filename="a.txt")
    async with cas.served.http.post(cas.served.url(f"{cas.at}/files"), data=form) as response:
        file = (await response.json())["id"]
    sent = await cas.sent(session, {"type": "user.message", "content": [
        {"type": "text", "text": "see"}, {"type": "image", "source": {"type": "url", "url": "https://example.test/a.png"}},
        {"type": "document", "title": "notes", "source": {"type": "text", "data": "words"}},
        {"type": "document", "title": "paper", "source": {"type": "file", "file_id": file}},
    ]})
    assert sent[0]["content"][0] == {"type": "text", "text": "see"}
    assert [block["type"] for block in sent[0]["content"]] == ["text", "image", "text", "document"]
    assert (await cas.events(session))[0] == sent[0]


@pytest.mark.parametrize(("content", "expected"), [
    ("", 400), ([], 400), ([{"type": "text", "text": ""}], 400), ([{"type": "text", "text": ""}] * 2, 400),
    ([{"type": "image", "source": {"type": "file", "file_id": "file_none"}}], 404),
    ([{"type": "document", "source": {"type": "file", "file_id": "file_none"}}], 404),
])
async def test_a_message_without_words_or_with_a_file_that_is_not_there_is_refused(
    cas: Client, content: Any, expected: int,
) -> None:
    session = await cas.session()
    status, refused = await cas.send(session, {"type": "user.message", "content": content})
    kind = "invalid_request_error" if expected == 400 else "not_found_error"
    assert (status, refused["error"]["type"]) == (expected, kind)
    assert refused["error"]["param"].startswith("events.0.content")
    first = [{"type": "user.message", "content": content}]
    status, refused = await cas.call("POST", "/sessions", {
        "agent": "agent_demo", "environment": {"config": {"type": "cloud"}}, "initial_events": first})
    assert (status, refused["error"]["param"].startswith("initial_events.0.content")) == (expected, True)
    assert await cas.events(session) == []


async def test_a_second_message_has_to_wait(cas: Client) -> None:
    session = await cas.session()
    await cas.sent(session, "/slow 1000")
    status, answer = await cas.send(session, "again")
    assert (status, answer["error"]["type"], answer["error"]["message"]) == (409, "conflict_error", BUSY)
    await cas.sent(session, {"type": "user.interrupt"}, "again")
    async with cas.listening(session, "stream_start=replay") as stream:
        heard = kept(await stream.until("session.status_idle", times=2))
    assert [event["stop_reason"]["type"] for event in heard if event["type"] == "session.status_idle"] == [
        "cancelled", "end_turn"]
    turns = [event["turn_id"] for event in heard]
    assert len(set(turns)) == 2
    assert turns == sorted(turns, key=turns.index)


async def test_an_interrupt_in_every_state(cas: Client) -> None:
    session = await cas.session(toolset(calc="ask"))
    [idle] = await cas.sent(session, {"type": "user.interrupt"})
    assert (idle["type"], idle.get("turn_id")) == ("user.interrupt", None)
    assert types(await cas.events(session)) == ["user.interrupt"]
    for words in ("/slow 1000", "/permit"):
        [sent] = await cas.sent(session, words)
        async with cas.listening(session, f"after_id={sent['id']}") as stream:
            await stream.until("agent.tool_use", "span.model_request_start")
            await cas.sent(session, {"type": "user.interrupt"})
            heard = await stream.until("session.status_idle", stop_reason={"type": "cancelled"})
        assert all(frame.body["turn_id"] == sent["turn_id"] for frame in heard)
    shown = await cas.ok("GET", f"/sessions/{session}")
    assert shown["status"] == "idle"


@pytest.mark.parametrize(("events", "param"), [
    ([], "events"),
    (None, "events"),
    ([{"type": "user.shout"}], "events.0"),
    ([{"content": "x"}], "events.0"),
    ([{"type": "user.message"}], None),
    ([{"type": "user.message", "content": ""}], None),
    ([{"type": "user.message", "content": []}], None),
    ([{"type": "user.message", "content": [{"type": "video"}]}], None),
    ([{"type": "user.tool_confirmation", "tool_use_id": "evt_x"}], None),
    ([{"type": "user.tool_confirmation", "tool_use_id": "evt_x", "result": "perhaps"}], None),
    ([{"type": "user.custom_tool_result"}], None),
    (["hello"], "events.0"),
])
async def test_events_that_make_no_sense_are_refused(cas: Client, events: Any, param: str | None) -> None:
    session = await cas.session()
    good = {"type": "user.message", "content": "hi"}
    for body in ({"events": events}, {"events": [good, *events]} if events else {}):
        status, answer = await cas.call("POST", f"/sessions/{session}/events", body)
        assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
        if param is not None and body == {"events": events}:
            assert answer["error"]["param"].startswith(param)
    assert await cas.events(session) == []


async def test_an_outcome_is_kept_with_all_it_says(cas: Client) -> None:
    session = await cas.session()
    outcome = {"type": "user.define_outcome", "description": "done", "rubric": {"type": "text"}, "x": [1]}
    [sent] = await cas.sent(session, outcome)
    assert {key: sent[key] for key in outcome} == outcome
    assert sent["outcome_id"].startswith("outc_")
    assert (await cas.events(session)) == [sent]


async def test_a_failed_turn_is_told_and_over(cas: Client) -> None:
    session = await cas.session()
    for words in ("/fail x", "/fail-start x"):
        told = await cas.turn(session, words)
        assert types(told)[-2:] == ["session.error", "session.status_idle"]
        assert told[-2]["error"]["retry_status"] == {"type": "exhausted"}
        assert set(told[-2]["error"]) == {"type", "message", "retry_status"}
        assert told[-1]["stop_reason"] == {"type": "error"}
    assert types(await cas.turn(session, "still here"))[-1] == "session.status_idle"


async def test_every_directive_ends_well(cas: Client) -> None:
    session = await cas.session(toolset(clock="allow", calc="ask", search="allow"), MINE)
    for directive in ("/refuse", "/max-tokens", "/annotate", "/bridge", "/ui", "/image", "/plan", "/title Trip",
                      "/compact", "/json", "/burst 50", "/fork", "/provider-tool", "/tool search"):
        told = await cas.turn(session, f"{directive} x")
        assert types(told)[-1] == "session.status_idle", directive
        assert {event["turn_id"] for event in told} == {told[0]["turn_id"]}, directive
        answered = {event.get("tool_use_id") for event in told if event["type"].endswith("tool_result")}
        asked = {event["id"] for event in told if event["type"] in ("agent.tool_use", "agent.mcp_tool_use")}
        assert answered == asked, directive
    assert (await cas.ok("GET", f"/sessions/{session}"))["title"].startswith("Trip")


# -- tools and asks ---------------------------------------------------------------------------------------------------

async def asked(cas: Client, session: str, words: str) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The turn up to where it waits, and what it waits for by name."""
    told = await cas.turn(session, words)
    assert told[-1]["stop_reason"]["type"] == "requires_action", told[-1]
    names = {event["id"]: event["name"] for event in told if event["type"].endswith("tool_use")}
    return told, {names[event_id]: event_id for event_id in told[-1]["stop_reason"]["event_ids"]}


async def test_three_kinds_of_tools_at_once(cas: Client) -> None:
    session = await cas.session(toolset(clock="allow", calc="ask"), MINE)
    told, pending = await asked(cas, session, "/parallel")
    assert set(pending) == {"calc", "mine"}
    uses = {event["name"]: event for event in told if event["type"].endswith("tool_use")}
    assert (uses["clock"]["type"], uses["clock"]["evaluated_permission"]) == ("agent.tool_use", "allow")
    assert uses["calc"]["evaluated_permission"] == "ask"
    assert uses["mine"]["type"] == "agent.custom_tool_use"
    shown = await cas.ok("GET", f"/sessions/{session}")
    assert (shown["status"], shown["turn_status"]) == ("idle", "idle")
    after = await cas.turn(session, confirm(pending["calc"]), result(pending["mine"], "sunny"))
    assert types(after)[:3] == ["user.tool_confirmation", "user.custom_tool_result", "session.status_running"]
    assert after[1]["content"] == [{"type": "text", "text": "sunny"}]
    assert after[1]["is_error"] is False
    assert {event["turn_id"] for event in after} == {told[0]["turn_id"]}
    [back] = [event for event in after if event["type"] == "agent.tool_result"]
    assert back["tool_use_id"] == pending["calc"]
    assert after[-1]["stop_reason"] == {"type": "end_turn"}


async def test_answers_may_come_one_by_one(cas: Client) -> None:
    session = await cas.session(toolset(calc="ask"), MINE)
    _, pending = await asked(cas, session, "/parallel")
    [sent] = await cas.sent(session, result(pending["mine"], [{"type": "text", "text": "rain"}], is_error=True))
    assert sent["is_error"] is True
    assert (await cas.ok("GET", f"/sessions/{session}"))["status"] == "idle"
    status, answer = await cas.send(session, result(pending["mine"], "again"))
    assert (status, answer["error"]["type"]) == (409, "conflict_error")
    before = await cas.every(session)
    status, _ = await cas.send(session, confirm(pending["calc"]), result(pending["mine"], "again"))
    assert status == 409
    assert await cas.every(session) == before, "all or none"
    after = await cas.turn(session, confirm(pending["calc"], "deny", deny_message="too dear"))
    assert after[0]["deny_message"] == "too dear"
    [back] = [event for event in after if event["type"] == "agent.tool_result"]
    assert (back["is_error"], back["content"][0]["text"]) == (True, "Tool call denied: too dear")
    for late in (confirm(pending["calc"]), confirm("evt_none"), result("evt_none")):
        assert (await cas.send(session, late))[0] in (400, 409)


async def test_the_wrong_kind_of_answer_is_refused(cas: Client) -> None:
    session = await cas.session(toolset(calc="ask"), MINE)
    _, pending = await asked(cas, session, "/parallel")
    for wrong in (confirm(pending["mine"]), result(pending["calc"], "x")):
        status, answer = await cas.send(session, wrong)
        assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert (await cas.ok("GET", f"/sessions/{session}"))["status"] == "idle"


async def test_a_question_is_answered_as_a_custom_tool(cas: Client) -> None:
    session = await cas.session()
    told, pending = await asked(cas, session, "/ask")
    assert set(pending) == {"AskUserQuestion"}
    assert [event["type"] for event in told if event.get("name") == "AskUserQuestion"] == ["agent.custom_tool_use"]
    after = await cas.turn(session, result(pending["AskUserQuestion"], "Red"))
    assert [event["tool_use_id"] for event in after if event["type"] == "agent.tool_result"] == [*pending.values()]
    assert after[0]["content"] == [{"type": "text", "text": "Red"}]
    assert "Colour: Red" in str(after)


@pytest.mark.parametrize("answers", ['{"Colour": "Red", "Fruits": ["Apple", "Cherry"]}', '["Red", "Apple, Cherry"]'])
async def test_two_questions_are_answered_apart(cas: Client, answers: str) -> None:
    session = await cas.session()
    _, pending = await asked(cas, session, "/ask")
    status, refused = await cas.send(session, result(pending["AskUserQuestion"], '{"Colour": "Red"}'))
    assert (status, "question 1 is not answered" in refused["error"]["message"]) == (400, True)
    after = await cas.turn(session, result(pending["AskUserQuestion"], answers))
    assert after[0]["content"] == [{"type": "text", "text": answers}], "history has the client's own words"
    assert "Colour: Red; Fruits: Apple, Cherry" in str(after)


async def test_a_result_may_come_as_that_of_a_tool(cas: Client) -> None:
    session = await cas.session(toolset(calc="ask"), MINE)
    _, pending = await asked(cas, session, "/parallel")
    status, refused = await cas.send(session, {"type": "user.tool_result", "tool_use_id": pending["calc"]})
    assert (status, refused["error"]["param"]) == (400, "tool_use_id")
    mine = {"type": "user.tool_result", "tool_use_id": pending["mine"], "content": [{"type": "text", "text": "sunny"}]}
    after = await cas.turn(session, mine, confirm(pending["calc"]))
    assert after[0]["custom_tool_use_id"] == pending["mine"]
    assert "mine returned sunny" in str(after)


async def test_a_system_message_is_there_for_its_turn_and_all_that_follow(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        cas = Client(served)
        session = await cas.session(agent=await cas.agent(toolset(calc="ask"), system="Be brief."))
        words = [{"type": "text", "text": "Be "}, {"type": "text", "text": "kind."}]
        brief = {"type": "system.message", "content": words}
        sent = await cas.sent(session, "hello", brief)
        assert types(sent) == ["user.message", "system.message"]
        assert sent[1]["content"] == brief["content"]
        view = await served.gateway.sessions.get("", session)
        assert view.settings.system == "Be brief.\n\nBe kind."
        await until(lambda: view.turn_id is None)
        assert [one for one in await cas.events(session) if one["type"] == "system.message"] == sent[1:]
        for wrong in ([brief], [brief, "hello"], ["hello", brief, brief], [{"type": "user.interrupt"}, brief],
                      ["hello", {"type": "system.message", "content": []}]):
            assert (await cas.send(session, *wrong))[0] == 400


@pytest.mark.parametrize(("decision", "words"), [("allow", "I went on."), ("deny", "I stopped.")])
async def test_a_continuation_is_confirmed(cas: Client, decision: str, words: str) -> None:
    session = await cas.session()
    told, pending = await asked(cas, session, "/continue")
    assert told[-2]["evaluated_permission"] == "ask"
    after = await cas.turn(session, confirm(pending["confirm_continue"], decision))
    assert types(after)[:3] == ["user.tool_confirmation", "agent.tool_result", "session.status_running"]
    assert after[1]["tool_use_id"] == pending["confirm_continue"]
    assert words in str(after)


async def test_a_rollback_is_chosen_as_a_custom_tool(cas: Client) -> None:
    session = await cas.session()
    told, pending = await asked(cas, session, "/rollback")
    assert "session.error" in types(told)
    after = await cas.turn(session, result(pending["choose_rollback"], "step"))
    assert "I rolled back to: step." in str(after)


async def test_who_goes_on_without_answering_ends_the_turn_that_waits(cas: Client) -> None:
    session = await cas.session(toolset(calc="ask"))
    told, _ = await asked(cas, session, "/permit")
    after = await cas.turn(session, "never mind")
    place = types(after).index("user.message")
    old, new = after[:place], after[place:]
    assert (types(old)[0], types(old)[-1]) == ("user.interrupt", "session.status_idle")
    assert {event["turn_id"] for event in old} == {told[0]["turn_id"]}, "its end is told before the message"
    assert old[-1]["stop_reason"] == {"type": "cancelled"}
    assert types(new)[1] == "session.status_running"
    assert [event["stop_reason"] for event in new if event["type"] == "session.status_idle"] == [{"type": "end_turn"}]


# -- lists ------------------------------------------------------------------------------------------------------------

async def test_events_can_be_paged_filtered_and_turned_around(cas: Client) -> None:
    session = await cas.session()
    for words in ("one", "/think two", "/tool clock three"):
        await cas.turn(session, words)
    whole = await cas.every(session)
    assert await cas.events(session, "limit=100&order=desc") == whole[::-1]
    wanted = [event for event in whole if event["type"] in ("agent.message", "agent.thinking")]
    assert await cas.events(session, "types[]=agent.message&types[]=agent.thinking") == wanted
    assert await cas.events(session, "type=agent.thinking") == [e for e in wanted if e["type"] == "agent.thinking"]
    assert await cas.events(session, "types=agent.message,agent.thinking&order=desc") == wanted[::-1]
    assert await cas.events(session, "created_at[lt]=2000-01-01T00:00:00Z") == []
    for order in ("asc", "desc"):
        line = whole if order == "asc" else whole[::-1]
        for place, event in enumerate(line):
            after = await cas.events(session, f"order={order}&limit=3&after_id={event['id']}")
            assert after == line[place + 1:place + 4]
            before = await cas.events(session, f"order={order}&limit=3&before_id={event['id']}")
            assert before == line[max(0, place - 3):place]
        seen, query = list[dict[str, Any]](), "limit=4"
        while query:
            page = await cas.ok("GET", f"/sessions/{session}/events?order={order}&{query}")
            seen += page["data"]
            assert (page["first_id"], page["last_id"]) == (page["data"][0]["id"], page["data"][-1]["id"])
            query = f"limit=4&page={page['next_page']}" if page["has_more"] else ""
        assert seen == line


async def test_a_cursor_of_another_session_is_refused(cas: Client) -> None:
    session, other = await cas.session(), await cas.session()
    told = await cas.turn(session, "hello")
    await cas.turn(other, "hello")
    stem = told[0]["id"].rpartition("_")[0]
    for cursor in ((await cas.events(other))[0]["id"], "evt_x", "nonsense", f"{stem}_1", f"{stem}_9999", f"{stem}_-1",
                   f"{stem}_02", f"{stem}_2-9", f"{stem}_", f"{stem}_" + "9" * 40):
        for path in ("events", "events/stream"):
            status, answer = await cas.call("GET", f"/sessions/{session}/{path}?after_id={cursor}")
            assert (status, answer["error"]["type"]) == (400, "invalid_request_error"), cursor
        status, _ = await cas.call("GET", f"/sessions/{session}/events/stream", Last_Event_ID=cursor)
        assert status == 400


# -- streams ----------------------------------------------------------------------------------------------------------

async def test_a_stream_begins_at_once_and_shows_that_it_lives(tmp_path: Path) -> None:
    async with serving(tmp_path, limits={"heartbeat_seconds": 0.05}) as served:
        cas = Client(served)
        session = await cas.session()
        async with cas.listening(session, Accept="application/json") as stream:
            async with asyncio.timeout(60):
                lines = [await stream.response.content.readline() for _ in range(6)]
        assert lines == [b": heartbeat\n", b"\n"] * 3


async def test_the_stream_goes_on_over_turns_and_asks(cas: Client) -> None:
    session = await cas.session(toolset(calc="ask"))
    async with cas.listening(session) as stream:
        await cas.sent(session, "one")
        await stream.until("session.status_idle")
        await cas.sent(session, "/permit two")
        [*_, idle] = await stream.until("session.status_idle")
        [event_id] = idle.body["stop_reason"]["event_ids"]
        await cas.sent(session, confirm(event_id))
        await stream.until("session.status_idle", stop_reason={"type": "end_turn"})
        assert [frame.body for frame in stream.frames] == await cas.every(session)


@pytest.mark.parametrize("how", ["after_id", "header", "accept"])
async def test_resuming_after_every_event_while_more_arrive(cas: Client, how: str) -> None:
    session = await cas.session()
    for words in ("one", "/think two", "/fork three"):
        await cas.turn(session, words)
    history = await cas.every(session)
    [last] = await cas.sent(session, "/slow 40 four")

    async def resumed(event: dict[str, Any]) -> list[dict[str, Any]]:
        headers = {"Last_Event_ID": event["id"]} if how != "after_id" else {}
        path = "events" if how == "accept" else "events/stream"
        headers |= {"Accept": "text/event-stream"} if how == "accept" else {}
        query = f"after_id={event['id']}" if how == "after_id" else ""
        async with cas.listening(session, query, path=path, **headers) as stream:
            return kept(await stream.until("session.status_idle", turn_id=last["turn_id"]))

    found = await asyncio.gather(*(resumed(event) for event in history))
    whole = await cas.every(session)
    for place, rest in enumerate(found):
        assert rest == whole[place + 1:]


async def test_a_list_has_a_hundred_items_at_most(cas: Client) -> None:
    session = await cas.session()
    await cas.sent(session, *({"type": "user.interrupt"} for _ in range(101)))
    for limit in ("101", "1000", "9" * 5000):
        page = await cas.ok("GET", f"/sessions/{session}/events?limit={limit}")
        assert (len(page["data"]), page["has_more"]) == (100, True)


async def test_previews_come_word_by_word_and_add_up(cas: Client) -> None:
    session = await cas.session()
    query = "event_deltas[]=agent.message&event_deltas[]=agent.thinking"
    async with cas.listening(session, query) as with_previews, cas.listening(session) as without:
        await cas.sent(session, "/think /slow 3 hello")
        heard = await with_previews.until("session.status_idle")
        plain = await without.until("session.status_idle")
    assert kept(heard) == [frame.body for frame in plain] == await cas.every(session)
    starts = {frame.body["event"]["id"]: frame.body["event"]["type"] for frame in heard if frame.type == "event_start"}
    for event_id, kind in starts.items():
        [whole] = [frame for frame in heard if frame.id == event_id and frame.is_kept]
        deltas = [frame.body["delta"] for frame in heard if frame.body.get("event_id") == event_id]
        assert whole.type == kind
        assert all(delta["type"] == "content_delta" and delta["index"] == 0 for delta in deltas)
        text = "".join(delta["content"]["text"] for delta in deltas)
        assert text == (whole.text if kind == "agent.message" else whole.body["thinking"])
    assert set(starts.values()) == {"agent.message", "agent.thinking"}
    assert (await cas.call("GET", f"/sessions/{session}/events/stream?event_deltas[]=agent.dream"))[0] == 400


@pytest.mark.parametrize("cursor", ["the delta", "the event"])
async def test_who_resumes_in_the_middle_of_an_event_gets_the_rest_of_it(cas: Client, cursor: str) -> None:
    session = await cas.session()
    async with cas.listening(session, "event_deltas[]=agent.message") as stream:
        await cas.sent(session, "/slow 30 hello")
        [*_, delta] = await stream.until("event_delta", times=5)
    event_id = delta.body["event_id"]
    last = delta.id if cursor == "the delta" else event_id
    async with cas.listening(session, "event_deltas[]=agent.message", Last_Event_ID=last) as stream:
        rest = await stream.until("session.status_idle")
    assert rest[0].type == "event_delta"
    [whole] = [frame for frame in rest if frame.type == "agent.message" and frame.id == event_id]
    later = [frame.body["delta"]["content"]["text"] for frame in rest if frame.body.get("event_id") == event_id]
    assert whole.text.endswith("".join(later))
    assert "".join(later) != whole.text
    assert kept(rest) == (await cas.every(session))[-len(kept(rest)):]


async def test_an_incremental_session_has_the_raw_stream(cas: Client) -> None:
    session = await cas.session(incremental_streaming_enabled=True, delta_flush_interval_ms=50)
    assert "incremental" not in str(await cas.ok("GET", f"/sessions/{session}"))
    async with cas.listening(session) as stream, cas.listening(session, "event_deltas[]=agent.message") as other:
        await cas.sent(session, "/think hello")
        heard = await stream.until("session.status_idle")
        previews = await other.until("session.status_idle")
    order = [frame.type for frame in heard]
    assert order.index("agent.message_start") < order.index("agent.content_block_start")
    assert order.index("agent.message_stop") < order.index("agent.message") < order.index("span.model_request_end")
    assert not {"event_start", "event_delta"} & set(order)
    assert not any(frame.type.startswith("agent.content_block") for frame in previews)
    assert {"event_start", "event_delta"} <= {frame.type for frame in previews}
    assert kept(heard) == kept(previews) == await cas.every(session)
    text = "".join(frame.body["delta"].get("text", "") for frame in heard if frame.type == "agent.content_block_delta")
    assert text == "You said: hello"


async def test_an_incremental_session_can_be_resumed_anywhere_in_a_picture(cas: Client) -> None:
    session = await cas.session(incremental_streaming_enabled=True)
    async with cas.listening(session) as stream:
        await cas.sent(session, "/image hello")
        heard = await stream.until("session.status_idle")
    deltas = [frame.body["delta"]["text"] for frame in heard if frame.type == "agent.content_block_delta"]
    assert deltas[0].startswith("![image](data:image/png;base64,")
    for place, frame in enumerate(heard[:-1]):
        async with cas.listening(session, f"after_id={frame.id}") as stream:
            assert await stream.until("session.status_idle") == heard[place + 1:]


async def test_a_client_that_stops_reading_is_given_up_and_can_come_back(tmp_path: Path) -> None:
    limits = {"send_seconds": 0.3, "heartbeat_seconds": 0.1}
    async with serving(tmp_path, limits=limits) as served:
        cas = Client(served)
        session = await cas.session()
        host, port = served.address.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port), limit=1)
        path = f"/api/v1/cloud/sessions/{session}/events/stream?event_deltas[]=agent.message"
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        await until(lambda: served.gateway.hub.subscribers == 1)
        told = await cas.turn(session, "/burst 4000 hello")
        await until(lambda: served.gateway.hub.subscribers == 0)
        writer.close()
        async with cas.listening(session, f"after_id={told[0]['id']}") as stream:
            assert kept(await stream.until("session.status_idle")) == told[1:]


# -- threads ----------------------------------------------------------------------------------------------------------

async def test_a_fork_is_a_thread(cas: Client) -> None:
    session = await cas.session()
    [coordinator] = (await cas.ok("GET", f"/sessions/{session}/threads"))["data"]
    assert (coordinator["role"], coordinator["parent_thread_id"]) == ("coordinator", None)
    assert (coordinator["status"], coordinator["stop_reason"]) == ("idle", {"type": "end_turn"})
    assert set(coordinator["agent"]) == {"id", "type", "name", "model", "version"}
    told = await cas.turn(session, "/fork look around")
    page = await cas.ok("GET", f"/sessions/{session}/threads")
    first, child = page["data"]
    assert first["id"] == coordinator["id"]
    assert (child["role"], child["parent_thread_id"], child["name"]) == ("child", coordinator["id"], "Helper")
    assert (child["status"], child["stop_reason"]) == ("terminated", {"type": "end_turn"})
    assert await cas.ok("GET", f"/sessions/{session}/threads/{child['id']}") == child
    [call] = [event for event in told if event["type"] == "agent.tool_use"]
    assert child["created_by_tool_use_id"] == call["id"]
    threads = [event for event in told if "thread" in event["type"]]
    assert types(threads) == [
        "session.thread_created", "session.thread_status_running", "agent.thread_message_sent",
        "agent.thread_message_received", "session.thread_status_idle", "session.thread_status_terminated",
    ]
    created, running, sent, received, idle, ended = threads
    assert {created["session_thread_id"], running["session_thread_id"], idle["session_thread_id"]} == {child["id"]}
    assert (created["parent_thread_id"], created["agent_name"]) == (coordinator["id"], "Helper")
    assert (sent["direction"], sent["from_session_thread_id"]) == ("coordinator_to_child", coordinator["id"])
    assert (received["direction"], received["to_session_thread_id"]) == ("child_to_parent", coordinator["id"])
    assert (idle["stop_reason"], ended["status"]) == ({"type": "end_turn"}, "terminated")
    assert [event["content"][0]["text"] for event in told if event["type"] == "agent.message"] == [
        event["content"][0]["text"] for event in told
        if event["type"] == "agent.message" and "session_thread_id" not in event], "a child's words stay in its thread"


async def test_a_thread_has_events_and_a_stream_of_its_own(cas: Client) -> None:
    session = await cas.session()
    told = await cas.turn(session, "/fork look around")
    [coordinator, child] = (await cas.ok("GET", f"/sessions/{session}/threads"))["data"]
    at = f"/sessions/{session}/threads/{child['id']}"
    own = (await cas.ok("GET", f"{at}/events?limit=100"))["data"]
    assert "agent.message" in types(own)
    assert all(child["id"] in (event.get("session_thread_id"), event.get("to_session_thread_id"),
                               event.get("from_session_thread_id")) for event in own)
    path = f"threads/{child['id']}/stream"
    async with cas.listening(session, path=path) as stream:
        assert kept(await stream.until("session.thread_status_terminated")) == own
    async with cas.listening(session, f"after_id={own[2]['id']}", path=path) as stream:
        assert kept(await stream.until("session.thread_status_terminated")) == own[3:]
    status, _ = await cas.call("GET", f"{at}/stream?after_id={told[0]['id']}")
    assert status == 400, "a cursor of another thread"
    everything = (await cas.ok("GET", f"/sessions/{session}/threads/{coordinator['id']}/events?limit=100"))["data"]
    assert [event for event in told if event in everything] == everything
    assert (await cas.call("GET", f"/sessions/{session}/threads/sthr_none"))[0] == 404
    assert (await cas.call("GET", f"/sessions/{session}/threads/sthr_none/events"))[0] == 404


async def test_a_child_that_asks_blocks_and_can_be_answered(cas: Client) -> None:
    session = await cas.session()
    told, pending = await asked(cas, session, "/fork-ask hello")
    [coordinator, child] = (await cas.ok("GET", f"/sessions/{session}/threads"))["data"]
    assert child["status"] == "blocked"
    assert child["stop_reason"] == coordinator["stop_reason"] == told[-1]["stop_reason"]
    [waits] = [event for event in told if event["type"] == "session.thread_status_idle"]
    assert (waits["stop_reason"], waits["status"]) == (child["stop_reason"], "blocked")
    rest = await cas.ok("GET", f"/sessions/{session}/events?order=asc&after_id={waits['id']}")
    assert rest["data"] == told[-1:], "it can be resumed after, and nothing is repeated"
    after = await cas.turn(session, result(pending["AskUserQuestion"], "Blue"))
    assert after[0]["session_thread_id"] == child["id"]
    assert "Colour: Blue" in str(after)
    child = await cas.ok("GET", f"/sessions/{session}/threads/{child['id']}")
    assert (child["status"], child["stop_reason"]) == ("terminated", {"type": "end_turn"})


async def test_a_sub_agent_of_a_scenario_is_told_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text("""
rules:
  - when: go
    steps:
      - fork: helper
        steps:
          - call: { name: calc, input: { expression: 6*7 }, permission: ask }
          - say: "It is {answer}."
      - say: done
""")
    agents = {"play": {"backend": "scripted", "settings": {"scenario": str(tmp_path / "scenario.yaml")}}}
    async with serving(tmp_path, agents=agents) as served:
        cas = Client(served)
        session = await cas.session(agent="agent_play")
        told, pending = await asked(cas, session, "go")
        child = (await cas.ok("GET", f"/sessions/{session}/threads"))["data"][1]
        waits = {"type": "requires_action", "event_ids": [pending["calc"]]}
        assert (child["status"], child["stop_reason"], told[-1]["stop_reason"]) == ("blocked", waits, waits)
        rest = await cas.turn(session, confirm(pending["calc"]))
        assert [one for one in types([*told, *rest]) if "thread" in one] == [
            "session.thread_created", "session.thread_status_running", "agent.thread_message_sent",
            "session.thread_status_idle", "session.thread_status_running", "agent.thread_message_received",
            "session.thread_status_idle", "session.thread_status_terminated",
        ]


@pytest.mark.parametrize("way", ["interrupt", "cancel", "archive", "never mind"])
async def test_a_child_that_nobody_answers_is_cancelled_with_its_session(cas: Client, way: str) -> None:
    session = await cas.session()
    await asked(cas, session, "/fork-ask hello")
    if way in ("cancel", "archive"):
        await cas.call("POST", f"/sessions/{session}/{way}", {})
    else:
        await cas.sent(session, {"type": "user.interrupt"} if way == "interrupt" else way)
    async with cas.listening(session, "stream_start=replay") as stream:
        await stream.until("session.status_idle")
        [*_, ended] = await stream.until("session.thread_status_terminated")
        [*_, idle] = await stream.until("session.status_idle")
    assert (ended.body["stop_reason"], idle.body["stop_reason"]) == ({"type": "cancelled"}, {"type": "cancelled"})
    [_, child] = (await cas.ok("GET", f"/sessions/{session}/threads"))["data"]
    assert (child["status"], child["stop_reason"]) == ("terminated", {"type": "cancelled"})


@pytest.mark.parametrize(("words", "why"), [
    ("/fail", "error"), ("/refuse", "refusal"), ("/max-tokens", "max_tokens"), ("hello", "end_turn"),
])
async def test_end_turn_is_for_turns_that_came_to_their_end(cas: Client, words: str, why: str) -> None:
    session = await cas.session()
    told = await cas.turn(session, words)
    [coordinator] = (await cas.ok("GET", f"/sessions/{session}/threads"))["data"]
    assert told[-1]["stop_reason"] == coordinator["stop_reason"] == {"type": why}


async def test_a_cancelled_coordinator_has_not_come_to_its_end(cas: Client) -> None:
    session = await cas.session()
    await cas.sent(session, "/slow 1000", {"type": "user.interrupt"})
    [coordinator] = (await cas.ok("GET", f"/sessions/{session}/threads"))["data"]
    assert (coordinator["status"], coordinator["stop_reason"]) == ("idle", {"type": "cancelled"})


async def test_a_thread_can_be_archived_but_not_the_coordinator(cas: Client) -> None:
    session = await cas.session()
    await cas.turn(session, "/fork look around")
    [coordinator, child] = (await cas.ok("GET", f"/sessions/{session}/threads"))["data"]
    status, answer = await cas.call("POST", f"/sessions/{session}/threads/{coordinator['id']}/archive", {})
    assert (status, answer["error"]["type"]) == (409, "conflict_error")
    archived = await cas.ok("POST", f"/sessions/{session}/threads/{child['id']}/archive", {})
    assert (archived["status"], archived["stop_reason"]) == ("archived", {"type": "archive"})
    assert archived["archived_at"]
    assert await cas.ok("POST", f"/sessions/{session}/threads/{child['id']}/archive") == archived
    last = (await cas.every(session))[-1]
    assert (last["type"], last["session_thread_id"]) == ("session.thread_status_terminated", child["id"])
    assert (last["status"], last["stop_reason"]) == ("archived", {"type": "archive"})


async def test_a_thread_at_work_cannot_be_archived(cas: Client) -> None:
    session = await cas.session()
    await asked(cas, session, "/fork-ask hello")
    [_, child] = (await cas.ok("GET", f"/sessions/{session}/threads"))["data"]
    status, answer = await cas.call("POST", f"/sessions/{session}/threads/{child['id']}/archive")
    assert (status, answer["error"]["type"]) == (409, "conflict_error")
    assert answer["error"]["message"] == f"Thread '{child['id']}' is still running; archive it later."
