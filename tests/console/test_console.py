"""The console over HTTP: the page, its headers, keys, sessions, records, and one stream with every column."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.console_client import ConsoleClient, Event
from tests.support.dialect_tables import ALL_DIALECTS, DIALECTS
from tests.support.gateway_server import serving, until

POLICY = {"default-src 'none'", "script-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"}
TALK = "/think /tool clock hello"


# -- the page ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("path", ["/console", "/console/", "/console/static/index.html"])
async def test_the_page_runs_nothing_but_its_own_files(console: ConsoleClient, path: str) -> None:
    served = console.served
    async with served.http.get(served.url(path)) as answer:
        assert (answer.status, answer.content_type) == (200, "text/html")
        policy = answer.headers["Content-Security-Policy"]
        assert {*policy.split("; ")} >= POLICY
        assert "unsafe" not in policy and "*" not in policy and "http" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        tag = answer.headers["ETag"]
    async with served.http.get(served.url(path), headers={"If-None-Match": tag}) as answer:
        assert (answer.status, await answer.read()) == (304, b"")


@pytest.mark.parametrize("path", [
    "nothing.js",
    "../console.py", "%2e%2e/console.py", "..%2fconsole.py", "/etc/passwd", "a%00b", ".hidden", "x\\y", "",
])
async def test_nothing_else_is_served(console: ConsoleClient, path: str) -> None:
    async with console.served.http.get(f"{console.served.address}/console/static/{path}") as answer:
        assert answer.status == 404
        assert (await answer.json())["error"]["code"] == "not_found"


async def test_a_browser_is_led_to_the_console_and_others_get_the_text(console: ConsoleClient) -> None:
    served = console.served
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    async with served.http.get(served.url("/"), headers=browser, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"], answer.headers["Vary"]) == (302, "/console/", "Accept")
    async with served.http.get(served.url("/")) as answer:
        assert "console    /console" in await answer.text()


async def test_the_console_can_be_taken_away(tmp_path: Path) -> None:
    async with serving(tmp_path, console=False) as served:
        for path in ("/console", "/console/static/index.html", "/console/api/hello", "/console/api/sessions"):
            async with served.http.get(served.url(path)) as answer:
                assert answer.status == 404, path
        async with served.http.get(served.url("/"), headers={"Accept": "text/html"}) as answer:
            assert (answer.status, "/console" in await answer.text()) == (200, False)


# -- keys -------------------------------------------------------------------------------------------------------------

async def test_the_page_and_the_greeting_need_no_key_and_all_else_does(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects=ALL_DIALECTS, auth="keys") as served:
        nobody = ConsoleClient(served)
        assert (await nobody.get("/hello"))["auth"] == ["keys"]
        for operation in served.gateway.console.operations:
            if not operation.is_public:
                path = operation.path.replace("{", "").replace("}", "")
                assert (await nobody.error(operation.method, path, 401))["code"] == "unauthenticated"


async def test_the_sessions_of_others_do_not_exist(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects=ALL_DIALECTS, auth="keys", admins=["bob"]) as served:
        ann, bob = [ConsoleClient(served, await served.gateway.keys.add(name)) for name in ("ann", "bob")]
        session = await ann.create(title="mine")
        assert [row["title"] for row in (await ann.get("/sessions"))["sessions"]] == ["mine"]
        assert (await bob.get("/sessions"))["sessions"] == []
        assert (await bob.get("/sessions?q=mine"))["sessions"] == []
        for operation in served.gateway.console.operations:
            if operation.path.startswith("/sessions/{id}"):
                path = operation.path.replace("{id}", session).replace("{", "").replace("}", "")
                body = {"POST": {}, "PATCH": {"title": "yours"}}.get(operation.method)
                async with bob.asks(operation.method, path, json=body) as answer:
                    assert answer.status in (400, 404), (operation.method, path, await answer.text())
                    assert session not in await answer.text() or answer.status == 404
        assert (await ann.get(f"/sessions/{session}"))["title"] == "mine"


async def test_a_user_is_not_shown_what_only_admins_may_see(tmp_path: Path) -> None:
    async with serving(tmp_path, auth="keys", admins=["bob"]) as served:
        ann, bob = [ConsoleClient(served, await served.gateway.keys.add(name)) for name in ("ann", "bob")]
        assert (await ann.get("/server"))["limits"] is None
        assert (await bob.get("/server"))["limits"]["turn_seconds"] == 3600
        may = (await ann.get("/server"))["may"]
        assert not any(may[name] for name in ("examine", "keys", "figures", "warnings"))
        for operation in served.gateway.console.operations:
            if operation.for_admins:
                path = operation.path.replace("{", "").replace("}", "")
                assert (await ann.error(operation.method, path, 403))["code"] == "forbidden"


async def test_the_page_of_another_site_may_not_use_the_api(console: ConsoleClient) -> None:
    error = await console.error("GET", "/sessions", 403, headers={"Origin": "https://evil.example"})
    assert error["code"] == "forbidden"
    await console.error("GET", "/sessions", 421, headers={"Host": "evil.example"})


# -- the server -------------------------------------------------------------------------------------------------------

async def test_the_server_shows_agents_and_addresses_to_paste(console: ConsoleClient) -> None:
    server = await console.get("/server")
    assert [dialect["name"] for dialect in server["dialects"]] == list(console.served.gateway.contexts)
    for dialect in server["dialects"]:
        assert dialect["url"] == console.served.url(dialect["mount"])
        assert all("curl" in line for line in dialect["examples"])
    assert [(agent["name"], agent["is_default"]) for agent in server["agents"]] == [("demo", True)]
    assert server["may"]["examine"]


# -- sessions ---------------------------------------------------------------------------------------------------------

async def test_a_session_is_created_renamed_and_deleted(console: ConsoleClient) -> None:
    session = await console.create(agent="demo", title="first", options={"greeting": "Hi", "api_key": "very-secret"})
    assert (await console.call("PATCH", f"/sessions/{session}", {"title": "second"}))["title"] == "second"
    shown = await console.get(f"/sessions/{session}")
    assert (shown["status"], shown["settings"]["secrets"]) == ("idle", ["api_key"])
    for path in ("", "/records", *(f"/frames?dialect={name}" for name in DIALECTS)):
        assert b"very-secret" not in await console.call("GET", f"/sessions/{session}{path}", raw=True)
    await console.call("DELETE", f"/sessions/{session}", status=204)
    assert (await console.error("GET", f"/sessions/{session}", 404))["code"] == "not_found"
    assert (await console.get("/sessions"))["sessions"] == []


async def test_a_long_list_is_read_in_pages(console: ConsoleClient) -> None:
    made = [await console.create(title=f"number {number}") for number in range(7)]
    found, cursor = list[str](), ""
    while cursor is not None:
        page = await console.get(f"/sessions?limit=3{cursor and f'&cursor={cursor}'}")
        assert len(page["sessions"]) <= 3
        found += [row["session_id"] for row in page["sessions"]]
        cursor = page["next"]
    assert found == made[::-1]


async def test_sessions_are_found_by_words_agent_and_status(console: ConsoleClient) -> None:
    one, other = await console.create(title="Trip to Rome"), await console.create()
    await console.talk(other, "the weather of Rome, please")
    await console.talk(one, "/fail")

    async def found(query: str) -> set[str]:
        return {row["session_id"] for row in (await console.get(f"/sessions?{query}"))["sessions"]}

    assert await found("q=rome") == {one, other}
    assert await found("q=trip%20ROME") == {one}
    assert await found("q=weather") == {other}
    assert await found("q=nothing") == set()
    assert await found("status=failed") == {one}
    assert await found("status=idle&q=rome") == {other}
    assert await found("agent=demo") == {one, other}
    assert await found("agent=nobody") == set()


async def test_a_session_that_waits_is_active_and_says_for_what(console: ConsoleClient) -> None:
    session = await console.create()
    await console.talk(session, "/ask")
    [row] = (await console.get("/sessions/active"))["sessions"]
    assert (row["session_id"], row["status"], row["asks"]) == (session, "waiting", 1)
    [ask] = (await console.get(f"/sessions/{session}"))["open_asks"]
    assert ask["ask"]["kind"] == "question"


# -- records and frames -----------------------------------------------------------------------------------------------

async def test_records_are_read_in_pages(console: ConsoleClient) -> None:
    session = await console.create()
    records = await console.talk(session, TALK)
    assert [record["seq"] for record in records] == list(range(1, len(records) + 1))
    assert (records[0]["name"], records[-1]["name"]) == ("session.created", "turn.ended")
    found, after = list[Any](), 0
    while after is not None:
        page = await console.get(f"/sessions/{session}/records?after={after}&limit=7")
        assert page["head"] == len(records)
        found += page["records"]
        after = page["next"]
    assert found == records


@pytest.mark.parametrize("name", DIALECTS)
async def test_frames_are_what_a_client_of_the_dialect_gets(console: ConsoleClient, name: str) -> None:
    session = await console.create()
    await console.talk(session, TALK)
    gateway = console.served.gateway
    view = await gateway.sessions.get("", session)
    options = gateway.console_columns.options(name, view).options
    chunks = await gateway.sessions.read("", session, name, options)
    bodies = [frame.body.decode() async for chunk in chunks for frame in chunk.frames]
    page = await console.get(f"/sessions/{session}/frames?dialect={name}&limit=2000")
    texts = [frame["text"] for item in page["items"] for frame in item["frames"]]
    assert len(texts) == len(bodies) > 3
    assert all(text.removeprefix("42").find(body) >= 0 for text, body in zip(texts, bodies, strict=True))
    assert all(frame["size"] == len(frame["text"].encode()) for item in page["items"] for frame in item["frames"])


async def test_frames_are_byte_for_byte_those_of_the_endpoint(console: ConsoleClient) -> None:
    session, served = await console.create(), console.served
    turn = {"messages": [{"role": "user", "content": TALK}], "stream": "delta"}
    async with served.http.post(served.url(f"/aap/sessions/{session}/turns"), json=turn) as answer:
        stream = (await answer.text()).removeprefix(": open\n\n")
    page = await console.get(f"/sessions/{session}/frames?dialect=aap")
    assert "".join(frame["text"] for item in page["items"] for frame in item["frames"]) == stream


# -- the stream -------------------------------------------------------------------------------------------------------

ALL = ",".join(["records", *DIALECTS])


async def collected(console: ConsoleClient, session: str, heads: int, last: str = "", most: int = 10**9) -> list[Event]:
    """The events of all columns until each column has the record `heads`, or so many events."""
    names = ["records", *DIALECTS]
    had = [int(part.partition("+")[0]) for part in last.split(".")] if last else [0] * len(names)
    found, left = list[Event](), {name for name, seq in zip(names, had, strict=True) if seq < heads}
    if not left:
        return []
    async with asyncio.timeout(60), console.events(f"/sessions/{session}/stream?columns={ALL}", last) as events:
        async for event in events:
            found.append(event)
            if event.data["seq"] == heads:
                left.discard(event.data.get("dialect", "records"))
            if not left or len(found) >= most:
                break
    return found


def by_column(events: list[Event]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    for event in events:
        columns.setdefault(event.data.get("dialect", "records"), []).append(event.data)
    return columns


async def test_every_column_is_whole_and_in_order(console: ConsoleClient) -> None:
    session = await console.create()
    records = await console.talk(session, TALK)
    columns = by_column(await collected(console, session, len(records)))
    assert columns.keys() == {"records", *DIALECTS}
    assert columns["records"] == records
    for name in DIALECTS:
        page = await console.get(f"/sessions/{session}/frames?dialect={name}&limit=2000")
        assert columns[name] == page["items"]


async def test_a_stream_that_is_resumed_anywhere_equals_one_that_was_not(console: ConsoleClient) -> None:
    session = await console.create()
    records = await console.talk(session, TALK)
    whole = by_column(await collected(console, session, len(records)))
    for place in (1, 9, 40, 77):
        first = await collected(console, session, len(records), most=place)
        rest = await collected(console, session, len(records), first[-1].id)
        assert by_column([*first, *rest]) == whole, place


@pytest.mark.parametrize("name", DIALECTS)
async def test_a_column_that_is_resumed_after_any_record_goes_on_with_all_origins(
    console: ConsoleClient, name: str,
) -> None:
    session = await console.create()
    records = await console.talk(session, TALK)
    path = f"/sessions/{session}/stream?columns={name}"
    whole = await column_after(console, path, "", len(records))
    for place, event in enumerate(whole[:-1], start=1):
        rest = await column_after(console, path, event.id, len(records))
        assert [one.data for one in rest] == [one.data for one in whole[place:]], event.id


async def column_after(console: ConsoleClient, path: str, last: str, heads: int) -> list[Event]:
    """The events of one column after that one, up to the record `heads`."""
    found = list[Event]()
    async with console.events(path, last) as events:
        async for event in events:
            found.append(event)
            if event.data["seq"] == heads and event.data["due"] is None:
                break
    return found


async def test_what_is_seen_live_is_what_is_read_later(console: ConsoleClient) -> None:
    session = await console.create()
    live = asyncio.create_task(collected(console, session, 28))
    await until(lambda: console.served.gateway.hub.watchers(session))
    records = await console.talk(session, TALK)
    assert len(records) == 28
    seen = by_column(await live)
    late = by_column(await collected(console, session, 28))
    for name in ("records", *DIALECTS):
        one, other = [[frame["text"] for item in column[name] for frame in item.get("frames", [])]
                      for column in (seen, late)]
        assert one == other, name
    assert seen["records"] == records


async def test_a_client_is_seen_to_watch_and_the_console_itself_is_not(console: ConsoleClient) -> None:
    session, served = await console.create(), console.served
    async with console.events(f"/sessions/{session}/stream?columns={ALL}") as events:
        await anext(events)
        assert len(served.gateway.hub.watchers(session)) == len(DIALECTS) + 1
        assert (await console.get(f"/sessions/{session}"))["watching"] == []
        path = f"/api/v1/cloud/sessions/{session}/events/stream"
        async with served.http.get(served.url(path)):
            await until(lambda: "cas" in served.gateway.hub.watchers(session))
            assert (await console.get(f"/sessions/{session}"))["watching"] == ["cas"]
    await until(lambda: not served.gateway.hub.watchers(session))


async def test_a_stream_ends_with_its_session(console: ConsoleClient) -> None:
    session = await console.create()
    async with console.events(f"/sessions/{session}/stream?columns={ALL}") as events:
        await anext(events)
        await console.call("DELETE", f"/sessions/{session}", status=204)
        last = [event async for event in events][-1]
        assert (last.name, last.data) == ("end", {"reason": "closed"})


# -- what is wrong ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("query", "word"), [
    ("columns=", "columns"), ("columns=nothing", "columns"), ("columns=records,records", "columns"),
    ("columns=" + ",".join(f"x{n}" for n in range(99)), "columns"), ("after=-1", "after"), ("after=x", "after"),
    ("nothing=1", "nothing"),
])
async def test_a_wrong_stream_is_refused_by_name(console: ConsoleClient, query: str, word: str) -> None:
    session = await console.create()
    assert word in (await console.error("GET", f"/sessions/{session}/stream?{query}", 400))["message"]


@pytest.mark.parametrize("last", ["x", "1.2", "-1", "1+x", "9" * 99, "1.2.3.4.5.6.7.8.9.1.2.3.4.5.6"])
async def test_a_wrong_last_event_id_is_refused(console: ConsoleClient, last: str) -> None:
    session = await console.create()
    headers = {"Last-Event-ID": last}
    error = await console.error("GET", f"/sessions/{session}/stream?columns=records", 400, headers=headers)
    assert error["param"] == "Last-Event-ID"


@pytest.mark.parametrize("path", [
    "/sessions?limit=0", "/sessions?limit=9999", "/sessions?cursor=%21", "/sessions?status=happy", "/sessions?x=y",
    "/sessions/ID/records?after=-3", "/sessions/ID/records?limit=5000", "/sessions/ID/frames",
    "/sessions/ID/frames?dialect=x",
])
async def test_a_wrong_question_is_refused(console: ConsoleClient, path: str) -> None:
    session = await console.create()
    assert (await console.error("GET", path.replace("ID", session), 400))["code"] == "invalid"


@pytest.mark.parametrize("body", [
    [], "x", {"agent": 1}, {"title": "x" * 501}, {"options": {"a": 1}}, {"client_tools": [{}]},
    {"client_tools": [{"name": "t"}] * 65},
])
async def test_a_wrong_new_session_is_refused(console: ConsoleClient, body: Any) -> None:
    assert (await console.error("POST", "/sessions", 400, body))["code"] == "invalid"
    assert (await console.error("POST", "/sessions", 404, {"agent": "nobody"}))["param"] == "agent"
    assert (await console.get("/sessions"))["sessions"] == []


async def test_a_path_that_is_not_there_says_so(console: ConsoleClient) -> None:
    assert "nothing at" in (await console.error("GET", "/nowhere", 404))["message"]
    assert "possible: GET" in (await console.error("DELETE", "/server", 405))["message"]


