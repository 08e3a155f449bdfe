"""CAS's sessions over real HTTP: made, read, listed, changed, archived, deleted; and every sort of bad input."""

from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tests.support.dialects.cas.client import AT, MINE, Client, toolset
from tests.support.gateway_server import serving
from tests.support.key_stores import key_store

FIELDS = {
    "id", "type", "agent", "agent_id", "environment_id", "status", "turn_status", "title", "metadata", "resources",
    "vault_ids", "memory_store_ids", "environment_variables", "stats", "archived_at", "created_at", "updated_at",
    "usage", "outcome_evaluations",
}


async def test_a_session_is_the_same_object_everywhere(cas: Client) -> None:
    made = await cas.new(title="Trip", metadata={"a": "b"}, environment_variables="A=1;B=\nC=x=y;")
    assert set(made) == FIELDS
    assert made["id"].startswith("sess_")
    assert (made["type"], made["status"], made["turn_status"]) == ("session", "idle", "idle")
    assert (made["title"], made["metadata"]) == ("Trip", {"a": "b"})
    assert made["environment_variables"] == {"A": "1", "B": "", "C": "x=y"}
    assert made["stats"] == {"active_seconds": 0, "duration_seconds": 0}
    assert made["agent"]["id"] == made["agent_id"] == "agent_demo"
    assert made["environment_id"].startswith("env_")
    assert made["archived_at"] is None
    at = f"/sessions/{made['id']}"
    assert await cas.ok("GET", at) == made
    assert (await cas.ok("GET", "/sessions"))["data"] == [made]
    assert set(await cas.ok("POST", at, {"title": "New"})) == FIELDS
    assert set(await cas.ok("POST", f"{at}/archive", {})) == FIELDS


async def test_the_same_routes_are_there_under_v1(cas: Client) -> None:
    newer = Client(cas.served, at=f"{AT}/v1")
    session = await newer.session()
    assert (await cas.ok("GET", f"/sessions/{session}"))["id"] == session
    assert [event["type"] for event in await newer.turn(session, "hi")][-1] == "session.status_idle"
    status, body = await newer.call("GET", "/sessions/sess_x")
    assert (status, body["error"]["type"]) == (404, "not_found_error")


async def test_the_snapshot_of_an_agent_stays_when_the_agent_changes(cas: Client) -> None:
    agent_id = await cas.agent(MINE, system="Be brief.")
    made = await cas.new(agent={"id": agent_id, "type": "agent", "version": 0})
    await cas.ok("POST", f"/agents/{agent_id}", {"name": "renamed", "version": 1})
    shown = await cas.ok("GET", f"/sessions/{made['id']}")
    assert shown["agent"] == made["agent"]
    assert (shown["agent"]["name"], shown["agent"]["version"]) == ("made", 1)
    newer = await cas.new(agent=agent_id)
    assert (newer["agent"]["name"], newer["agent"]["version"]) == ("renamed", 2)
    older = await cas.new(agent={"id": agent_id, "version": 1})
    assert older["agent"]["name"] == "made"


@pytest.mark.parametrize(("body", "param"), [
    ({"agent": "agent_none"}, None),
    ({"agent": None}, "agent"),
    ({"agent": {"version": 1}}, "agent.id"),
    ({"agent": 7}, "agent"),
    ({"environment": None}, None),
    ({"environment": {"name": "x"}}, "environment.config"),
    ({"environment": "env_none"}, None),
    ({"environment": {"config": "cloud"}}, "environment.config"),
    ({"environment": {"config": [{}]}}, "environment.config"),
    ({"title": 7}, "title"),
    ({"metadata": {str(n): "v" for n in range(17)}}, "metadata"),
    ({"metadata": {"k" * 65: "v"}}, "metadata"),
    ({"metadata": {"k": "v" * 513}}, "metadata"),
    ({"metadata": {"k": 1}}, "metadata.k"),
    ({"resources": [{"type": "ftp"}]}, "resources.0.type"),
    ({"resources": [{"type": "file"}]}, "resources.0.file_id"),
    ({"resources": [{"file_id": "file_none"}]}, "resources.0.file_id"),
    ({"resources": [{"type": "github_repository"}]}, "resources.0.url"),
    ({"vault_ids": ["vault_none"]}, None),
    ({"memory_store_ids": ["memstore_none"]}, None),
    ({"environment_variables": "1A=b"}, "environment_variables"),
    ({"environment_variables": ["A=b"]}, "environment_variables"),
    ({"initial_events": [{"type": "user.interrupt"}]}, "initial_events.0.type"),
    ({"initial_events": [{"type": "user.message", "content": "a"}] * 2}, "initial_events"),
])
async def test_a_new_session_that_makes_no_sense_is_refused(cas: Client, body: Any, param: str | None) -> None:
    whole = {"agent": "agent_demo", "environment": {"config": {"type": "cloud"}}, **body}
    status, answer = await cas.call("POST", "/sessions", whole, X_Request_Id="mine-1")
    assert status in (400, 404), answer
    assert (answer["type"], answer["request_id"]) == ("error", "mine-1")
    assert answer["error"]["type"] in ("invalid_request_error", "not_found_error")
    assert answer["error"]["message"]
    if param is not None:
        assert answer["error"]["param"] == param
    assert (await cas.ok("GET", "/sessions"))["data"] == []


async def test_a_self_hosted_environment_takes_no_variables(cas: Client) -> None:
    inline = {"config": {"type": "self_hosted"}}
    kept = await cas.ok("POST", "/environments", {"name": "own", "config": {"type": "self_hosted"}})
    for environment in ({"environment": inline}, {"environment": None, "environment_id": kept["id"]}):
        body = {"agent": "agent_demo", "environment_variables": "A=1", **environment}
        status, answer = await cas.call("POST", "/sessions", body)
        assert status == 400, answer
        assert "'A'" in answer["error"]["message"]
        body["environment_variables"] = ""
        assert (await cas.call("POST", "/sessions", body))[0] == 201


async def test_an_environment_may_be_named_described_or_left_blank(cas: Client) -> None:
    made = await cas.new(environment={"name": "  ", "config": {"type": "cloud"}})
    shown = await cas.ok("GET", f"/environments/{made['environment_id']}")
    assert shown["name"] == "Session Environment"
    for word in ("environment", "environment_id"):
        other = await cas.new(**{"environment": None, word: made["environment_id"]})
        assert other["environment_id"] == made["environment_id"]


async def test_the_list_is_newest_first_and_can_be_narrowed(cas: Client) -> None:
    made = [await cas.session() for _ in range(5)]
    agent = await cas.agent(MINE)
    other = str((await cas.new(agent=agent))["id"])

    async def ids(query: str) -> list[str]:
        return [one["id"] for one in (await cas.ok("GET", f"/sessions?{query}"))["data"]]

    assert await ids("") == [other, *made[::-1]]
    assert await ids("order=asc&limit=2") == made[:2]
    assert await ids(f"agent_id={agent}") == [other]
    assert await ids("statuses[]=idle&statuses[]=running&limit=1") == [other]
    assert await ids("statuses[]=running") == []
    await cas.ok("POST", f"/sessions/{made[0]}/archive")
    assert made[0] not in await ids("")
    assert made[0] in await ids("include_archived=true")
    assert await ids("created_at[gt]=2999-01-01T00:00:00Z") == []
    assert len(await ids("created_at[gte]=2000-01-01T00:00:00Z")) == 5


@pytest.mark.parametrize("most", [0, 2000])
async def test_a_filter_finds_the_same_by_the_lists_of_agents_and_by_a_look_at_all(
    cas: Client, monkeypatch: pytest.MonkeyPatch, most: int,
) -> None:
    """With no sessions that may be found by lists, all are looked at."""
    monkeypatch.setattr("adapters.cas.server.routes.sessions.MAX_SCANNED", most)
    mine, others = await cas.agent(MINE), await cas.agent(MINE)
    made = [str((await cas.new(agent=agent))["id"]) for agent in (mine, others, mine, others, mine)]
    plain = await cas.session()

    async def ids(query: str) -> list[str]:
        return [one["id"] for one in (await cas.ok("GET", f"/sessions?{query}"))["data"]]

    assert await ids(f"agent_id={mine}") == made[::-2]
    assert await ids(f"agent_id={mine}&order=asc&limit=2") == [made[0], made[2]]
    assert await ids(f"agent_id={mine}&after_id={made[3]}") == [made[2], made[0]], "the cursor is another agent's"
    assert await ids(f"agent_id={mine}&before_id={made[1]}&limit=1") == [made[2]]
    assert await ids(f"agent_id={mine}&before_id={made[2]}") == [made[4]]
    assert await ids(f"agent_id={mine}&after_id={made[2]}") == [made[0]]
    assert await ids(f"agent_id={mine}&agent_id={others}") == made[::-1]
    shown = await cas.ok("GET", f"/sessions/{plain}")
    assert plain in await ids(f"agent_id={shown['agent']['id']}")
    assert await ids("agent_id=nobodys") == await ids(f"agent_id={mine}&statuses=running") == []
    assert await ids("statuses=nothing_like_it") == []
    assert await ids(f"statuses=nothing_like_it,idle&agent_id={others}") == [made[3], made[1]]


async def test_pages_of_sessions_follow_each_other_in_both_directions(cas: Client) -> None:
    made = [await cas.session() for _ in range(5)][::-1]
    page = await cas.ok("GET", "/sessions?limit=2")
    assert (page["first_id"], page["last_id"], page["has_more"]) == (made[0], made[1], True)
    seen = [one["id"] for one in page["data"]]
    while page["next_page"]:
        page = await cas.ok("GET", f"/sessions?limit=2&page={page['next_page']}")
        seen += [one["id"] for one in page["data"]]
    assert seen == made
    after = await cas.ok("GET", f"/sessions?limit=2&after_id={made[1]}")
    assert [one["id"] for one in after["data"]] == made[2:4]
    before = await cas.ok("GET", f"/sessions?limit=2&before_id={made[3]}")
    assert [one["id"] for one in before["data"]] == made[1:3]
    assert before["has_more"] is True


@pytest.mark.parametrize("query", [
    "limit=0", "limit=-1", "limit=x", "order=up", "after_id=sess_none", "page=nonsense", "include_archived=perhaps",
    "created_at[gt]=yesterday", "after_id=a&before_id=b", "after_id=a&page=b",
])
async def test_a_query_that_makes_no_sense_is_refused(cas: Client, query: str) -> None:
    session = await cas.session()
    paths = ["/sessions"] + ([f"/sessions/{session}/events"] if "archived" not in query else [])
    for path in paths:
        status, answer = await cas.call("GET", f"{path}?{query}")
        assert (status, answer["error"]["type"]) == (400, "invalid_request_error"), path


async def test_an_update_replaces_metadata(cas: Client) -> None:
    session = await cas.session(metadata={"a": "1", "b": "2"}, title="old", environment_variables="A=1")
    shown = await cas.ok("POST", f"/sessions/{session}", {"metadata": {"b": "3", "c": None}})
    assert (shown["metadata"], shown["title"]) == ({"b": "3"}, "old")
    assert shown["environment_variables"] == {"A": "1"}
    shown = await cas.ok("POST", f"/sessions/{session}", {"title": "new"})
    assert (shown["metadata"], shown["title"]) == ({"b": "3"}, "new")
    updates = await cas.events(session)
    assert [event["type"] for event in updates] == ["session.updated", "session.updated"]
    assert [event.get("metadata") for event in updates] == [{"b": "3"}, None]
    assert updates[1]["title"] == "new"
    assert (await cas.call("POST", f"/sessions/{session}", {"metadata": {"k": "v" * 513}}))[0] == 400


async def test_an_update_changes_variables_and_vaults(cas: Client) -> None:
    vault = (await cas.ok("POST", "/vaults", {"display_name": "v"}))["id"]
    session = await cas.session(metadata={"a": "1"}, environment_variables="A=1")
    for given, held in (({"B": "2"}, {"B": "2"}), ("C=3", {"C": "3"}), ({}, {})):
        shown = await cas.ok("POST", f"/sessions/{session}", {"environment_variables": given})
        assert shown["environment_variables"] == held
    shown = await cas.ok("POST", f"/sessions/{session}", {"vault_ids": [vault]})
    assert (shown["vault_ids"], shown["metadata"], shown["environment_variables"]) == ([vault], {"a": "1"}, {})
    assert shown == await cas.ok("GET", f"/sessions/{session}")
    for change, param in (({"environment_variables": "CAW_X=1"}, "environment_variables"),
                          ({"vault_ids": ["vault_none"]}, "vault_ids")):
        status, refused = await cas.call("POST", f"/sessions/{session}", change)
        assert (status, refused["error"]["param"]) == (400, param)


async def test_the_variables_of_a_self_hosted_environment_stay_its_own(cas: Client) -> None:
    session = await cas.session(environment={"config": {"type": "self_hosted"}})
    status, refused = await cas.call("POST", f"/sessions/{session}", {"environment_variables": "A=1"})
    assert (status, refused["error"]["param"]) == (400, "environment_variables")


@pytest.mark.parametrize("word", ["status", "resources", "environment", "environment_id", "memory_store_ids"])
async def test_what_an_update_cannot_change_is_refused_by_its_name(cas: Client, word: str) -> None:
    session = await cas.session()
    before = await cas.ok("GET", f"/sessions/{session}")
    status, refused = await cas.call("POST", f"/sessions/{session}", {"title": "new", word: before.get(word)})
    assert (status, refused["error"]["param"]) == (400, word)
    assert await cas.ok("GET", f"/sessions/{session}") == before


async def test_an_update_can_be_told_to_merge(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects={"cas": {"metadata": "merge"}}) as served:
        cas = Client(served)
        session = await cas.session(metadata={"a": "1", "b": "2"})
        shown = await cas.ok("POST", f"/sessions/{session}", {"metadata": {"b": None, "c": "3"}})
        assert shown["metadata"] == {"a": "1", "c": "3"}
        many = {f"k{n}": "v" for n in range(15)}
        status, answer = await cas.call("POST", f"/sessions/{session}", {"metadata": many})
        assert (status, answer["error"]["param"]) == (400, "metadata")


async def test_an_archived_session_can_be_read_and_nothing_else(cas: Client) -> None:
    session = await cas.session()
    await cas.turn(session, "hi")
    events = await cas.events(session)
    shown = await cas.ok("POST", f"/sessions/{session}/archive", {})
    assert shown["archived_at"]
    assert shown["status"] == "idle"
    assert (await cas.ok("POST", f"/sessions/{session}/archive"))["archived_at"] == shown["archived_at"]
    assert (await cas.events(session))[:len(events)] == events
    for status, answer in [
        await cas.send(session, "more"), await cas.send(session, {"type": "user.interrupt"}),
        await cas.call("POST", f"/sessions/{session}", {"title": "x"}),
        await cas.call("POST", f"/sessions/{session}/resources", {"type": "github_repository", "url": "https://x"}),
    ]:
        assert (status, answer["error"]["type"]) == (409, "conflict_error")
    assert (await cas.call("POST", f"/sessions/{session}/cancel", {}))[0] == 200


async def test_archiving_ends_what_runs(cas: Client) -> None:
    session = await cas.session()
    async with cas.listening(session) as stream:
        await cas.sent(session, "/slow 1000")
        await stream.until("session.status_running")
        await cas.ok("POST", f"/sessions/{session}/archive")
        heard = await stream.until("session.updated")
    assert heard[-2].type == "session.status_idle"
    assert heard[-2].body["stop_reason"] == {"type": "cancelled"}


async def test_what_is_deleted_is_gone(cas: Client) -> None:
    session = await cas.session(resources=[{"type": "github_repository", "url": "https://example.test/r"}])
    async with cas.listening(session) as stream:
        assert await cas.ok("DELETE", f"/sessions/{session}", {}) == {"id": session, "type": "session_deleted"}
        assert (await stream.until("session.deleted"))[-1].type == "session.deleted"
        assert await stream.over()
    for method, path in [("GET", ""), ("DELETE", ""), ("GET", "/events"), ("GET", "/events/stream"),
                         ("POST", "/archive"), ("POST", "/cancel"), ("GET", "/threads"), ("GET", "/resources")]:
        status, answer = await cas.call(method, f"/sessions/{session}{path}")
        assert (status, answer["error"]["message"]) == (404, f"Session '{session}' was not found.")


async def test_cancel_ends_the_turn(cas: Client) -> None:
    session = await cas.session()
    status, answer = await cas.call("POST", f"/sessions/{session}/cancel", {})
    assert (status, answer) == (200, {"id": session, "type": "session", "status": "canceling"})
    [sent] = await cas.sent(session, "/slow 1000")
    assert (await cas.ok("GET", f"/sessions/{session}"))["turn_status"] == "running"
    status, answer = await cas.call("POST", f"/sessions/{session}/cancel")
    assert (status, answer["status"]) == (202, "canceling")
    last = (await cas.events(session))[-1]
    assert (last["type"], last["stop_reason"], last["turn_id"]) == (
        "session.status_idle", {"type": "cancelled"}, sent["turn_id"])
    shown = await cas.ok("GET", f"/sessions/{session}")
    assert (shown["status"], shown["turn_status"]) == ("idle", "idle")


async def test_usage_and_time_add_up(cas: Client) -> None:
    session = await cas.session()
    ends = [(await cas.turn(session, "one two"))[-1], (await cas.turn(session, "/slow 2 three"))[-1]]
    shown = await cas.ok("GET", f"/sessions/{session}")
    for word in ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"):
        assert shown["usage"][word] == sum(end["usage"][word] for end in ends)
    assert shown["stats"]["duration_seconds"] >= shown["stats"]["active_seconds"] >= 0.1


async def test_what_is_mounted_is_shown_without_its_secrets(cas: Client) -> None:
    repository = {"type": "github_repository", "url": "https://example.test/r", "authorization_token": "hush"}
    made = await cas.new(resources=[repository])
    [shown] = made["resources"]
    assert (shown["type"], shown["url"], shown["mount_path"]) == ("github_repository", "https://example.test/r", None)
    assert shown["id"].startswith("sesr_")
    at = f"/sessions/{made['id']}/resources"
    added = await cas.ok("POST", at, {**repository, "mount_path": "/data/r"})
    assert added["mount_path"] == "/data/r"
    page = await cas.ok("GET", at)
    assert page["data"] == [shown, added]
    assert (await cas.ok("GET", f"{at}?limit=1"))["has_more"] is True
    assert await cas.ok("GET", f"{at}/{added['id']}") == added
    assert "hush" not in str([made, page, added, await cas.ok("GET", "/sessions")])
    assert await cas.ok("DELETE", f"{at}/{shown['id']}", {}) == {"id": shown["id"], "type": "session_resource_deleted"}
    assert (await cas.ok("GET", f"/sessions/{made['id']}"))["resources"] == [added]
    assert (await cas.call("GET", f"{at}/{shown['id']}"))[0] == 404
    assert (await cas.call("DELETE", f"{at}/{shown['id']}"))[0] == 404
    assert (await cas.call("POST", at, {"type": "ftp"}))[1]["error"]["param"] == "type"


async def test_a_session_may_begin_with_events(cas: Client) -> None:
    made = await cas.new(initial_events=[
        {"type": "user.define_outcome", "description": "done"}, {"type": "user.message", "content": "hello"},
    ])
    async with cas.listening(made["id"]) as stream:
        heard = await stream.until("session.status_idle")
    assert [frame.type for frame in heard][:3] == ["user.define_outcome", "user.message", "session.status_running"]


async def test_the_head_of_a_stream_has_no_body(cas: Client) -> None:
    session = await cas.session()
    for path in (f"/sessions/{session}/events/stream", f"/sessions/{session}/events"):
        assert await cas.call("HEAD", path, Accept="text/event-stream") == (200, None)
        assert (await cas.ok("GET", f"/sessions/{session}"))["id"] == session, "the connection is as it was"


async def test_other_peoples_sessions_do_not_exist(tmp_path: Path) -> None:
    keys = key_store(tmp_path / "data")
    ann_key, bob_key = keys.add("ann"), keys.add("bob")
    async with serving(tmp_path, auth="keys") as served:
        ann, bob = Client(served, ann_key), Client(served, bob_key)
        session = await ann.session()
        assert (await ann.ok("GET", f"/sessions/{session}"))["id"] == session
        for method, path in [("GET", ""), ("GET", "/events"), ("GET", "/events/stream"), ("POST", "/archive"),
                             ("DELETE", ""), ("GET", "/threads"), ("GET", "/resources"), ("POST", "/cancel")]:
            status, answer = await bob.call(method, f"/sessions/{session}{path}")
            assert (status, answer["error"]["message"]) == (404, f"Session '{session}' was not found.")
        assert (await bob.ok("GET", "/sessions"))["data"] == []
        assert (await bob.call("GET", f"/sessions?after_id={session}"))[0] == 400
        for key in (None, "wrong"):
            status, answer = await Client(served, key).call("GET", "/sessions")
            assert (status, answer["error"]["type"]) == (401, "authentication_error")
        async with served.http.get(served.url(f"{AT}/sessions"), headers={"X-Api-Key": ann_key}) as response:
            assert response.status == 200


@pytest.mark.parametrize(("raw", "told"), [
    (b"", "empty"), (b"{", "not JSON"), (b"[]", "object"), (b'"x"', "object"), (b"\xff", "not JSON"),
    (b" " * (5 * 1024 * 1024), "larger"),
])
async def test_a_body_that_is_not_one_is_refused(cas: Client, raw: bytes, told: str) -> None:
    session = await cas.session()
    for path in ("/sessions", f"/sessions/{session}/events", "/agents"):
        status, answer = await cas.call("POST", path, raw=BytesIO(raw))
        assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
        assert told in answer["error"]["message"]


async def test_nothing_here_and_the_wrong_method_are_told_in_the_right_shape(cas: Client) -> None:
    status, answer = await cas.call("GET", "/nowhere", X_Request_Id="r-7")
    assert (status, answer["error"]["type"], answer["request_id"]) == (404, "not_found_error", "r-7")
    status, answer = await cas.call("PATCH", "/sessions")
    assert (status, answer["error"]["type"]) == (405, "invalid_request_error")


async def test_a_keyed_request_is_carried_out_once(cas: Client) -> None:
    body = {"agent": "agent_demo", "environment": {"config": {"type": "cloud"}}}
    first = await cas.call("POST", "/sessions", body, Idempotency_Key="k1")
    assert await cas.call("POST", "/sessions", body, Idempotency_Key="k1") == first
    assert (await cas.call("POST", "/sessions", {**body, "title": "x"}, Idempotency_Key="k1"))[0] == 409
    assert len((await cas.ok("GET", "/sessions"))["data"]) == 1


async def test_tools_of_the_agent_are_the_sessions(cas: Client) -> None:
    session = await cas.session(toolset(clock="allow"), MINE)
    told = await cas.turn(session, "/tool calc")
    assert "I do not have the tool calc." in str(told)
