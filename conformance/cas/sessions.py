"""Section sessions: the Session object over its life, its list, its metadata, and how it ends."""

from functools import partial
from typing import Any

from conformance.cas import scenes
from conformance.cas.conversation import Conversation, is_idle
from conformance.cas.examination import Body, CasExamination
from conformance.cas.object_comparison import agree, fitting_members
from conformance.cas.requirement_owners import need
from conformance.cas.run import message
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.http import Reply
from conformance.kit.json_round_trip import CARRIED, HUGE, came_back, written

CHANGING = ("updated_at", "stats", "usage", "status", "turn_status")


def steady(session: Body) -> Body:
    """What does not change by itself."""
    return {name: value for name, value in session.items() if name not in CHANGING}


async def _listed(exam: CasExamination, **query: str) -> list[Body]:
    """The examined agent's sessions, as the list has them."""
    pairs = {"agent_id": await exam.own_agent(), "limit": "100", **query}
    found: list[Body] = (await exam.have("sessions", "GET", "/sessions", query=pairs))["data"]
    return found


@requirement("CAS-SESS-01")
async def a_new_session_has_every_field(exam: CasExamination) -> None:
    """With nothing but agent and environment all fields are there, with their defaults."""
    session = await exam.agreed(await exam.admit(), "agent_id", "environment_id", "agent")
    expect.equal("agent_id and environment_id", (await exam.agent(), await exam.environment()), _parties(session))
    expect.equal("the id of the snapshot", session["agent_id"], session["agent"]["id"])
    for name in ("resources", "vault_ids", "memory_store_ids"):
        expect.equal(f"{name} of a new session", [], session[name])
    for name in ("environment_variables", "metadata"):
        expect.equal(f"{name} of a new session", {}, session[name])
    expect.equal("status, turn_status and archived_at", ("idle", "idle", None), _state(session))
    spent = [session["stats"][name] for name in ("active_seconds", "duration_seconds")]
    expect.that(max(spent) < 1, "stats of 0", session["stats"])


def _parties(session: Body) -> tuple[str, str]:
    return session["agent_id"], session["environment_id"]


def _state(session: Body) -> tuple[Any, ...]:
    return session["status"], session["turn_status"], session["archived_at"]


@requirement("CAS-SESS-01")
async def what_is_given_comes_back(exam: CasExamination) -> None:
    """Title and metadata are those of the request; unknown fields are ignored."""
    given = {"title": "An examination «中文»", "metadata": {"reason": "conformance", "empty": ""}}
    session = await exam.agreed(await exam.admit(**given, examiners_extra={"a": 1}), *given)
    expect.equal("title and metadata", given, {name: session[name] for name in given})


@requirement("CAS-SESS-01")
async def metadata_come_back_as_they_came(exam: CasExamination) -> None:
    """Whatever value metadata have is shown as it was sent, at once and later, or refused with a 400."""
    for name, value in (*CARRIED.items(), *HUGE.items()):
        if name and value is not None:
            body = {"agent": await exam.agent(), "environment_id": await exam.environment(), "metadata": {name: value}}
            reply = await exam.create(..., body=written(body))
            if reply.status != 201:
                exam.refused(reply, 400)
                continue
            talk = Conversation(exam, reply.json())
            for session in (talk.session, await talk.info()):
                came_back("metadata", {name: value}, session["metadata"])


@requirement("CAS-SESS-02")
async def every_answer_is_the_session(exam: CasExamination) -> None:
    """Create, get, list, update and archive show the same object."""
    await exam.own_agent()
    talk = await exam.admit(title="one", metadata={"a": "1"}, environment_variables="A=1")
    made = steady(talk.session)
    _is_same("the session from GET", made, await talk.info())
    listed = [session for session in await _listed(exam) if session["id"] == talk.id]
    expect.equal("the number of sessions of this id in the list", 1, len(listed))
    _is_same("the session in the list", made, listed[0])
    updated = await exam.have("session", "POST", talk.path, {"title": "two"})
    _is_same("the session from an update", made | {"title": "two"}, updated)
    archived = await exam.have("session", "POST", f"{talk.path}/archive", {})
    expect.that(archived["archived_at"] is not None, "archived_at to be set", archived)
    _is_same("the session from archiving", made | {"title": "two", "archived_at": archived["archived_at"]}, archived)


def _is_same(what: str, wanted: Body, seen: Body) -> None:
    """Expect the same session; what the client gave it has neither more nor less."""
    first, second = fitting_members("session", wanted, steady(seen))
    agree(what, first, second)
    for name in ("metadata", "environment_variables"):
        expect.equal(f"{name} of {what}", first.get(name), second.get(name))


@requirement("CAS-SESS-03")
async def a_session_says_whether_it_runs(exam: CasExamination) -> None:
    """While a turn runs status and turn_status are running; before and after both are idle."""
    scene = await scenes.running(exam)
    async with expect.while_it_runs(partial(scene.was_over, "begun")):
        expect.equal("status while a turn runs", ("running", "running", None), _state(scene.look("begun")))
    expect.equal("status after the turn", ("idle", "idle", None), _state(scene.look("slow")))


@requirement("CAS-SESS-09")
async def metadata_has_limits(exam: CasExamination) -> None:
    """16 keys, keys of 64 and values of 512 characters are taken; one more of any is a 400."""
    good = {f"key{place:02}": "x" for place in range(14)} | {"k" * 64: "x", "long": "v" * 512}
    talk = await exam.admit(metadata=good)
    expect.equal("metadata", good, talk.session["metadata"])
    for bad in (good | {"more": "x"}, {"k" * 65: "x"}, {"long": "v" * 513}):
        exam.refused(await exam.attempt(metadata=bad), 400)


@requirement("CAS-SESS-10")
async def the_newest_comes_first(exam: CasExamination) -> None:
    """GET /sessions is newest first, order=asc oldest first."""
    await exam.own_agent()
    names = [(await exam.open()).id for _ in range(3)]
    expect.equal("the sessions", names[::-1], [session["id"] for session in await _listed(exam)])
    expect.equal("order=asc", names, [session["id"] for session in await _listed(exam, order="asc")])


@requirement("CAS-SESS-10")
async def archived_sessions_are_hidden(exam: CasExamination) -> None:
    """An archived session is listed only with include_archived=true."""
    await exam.own_agent()
    gone, here = await exam.open(), await exam.open()
    with expect.preparing("an archived session"):
        await exam.have("session", "POST", f"{gone.path}/archive", {})
    expect.equal("the sessions", [here.id], [session["id"] for session in await _listed(exam)])
    with_archived = await _listed(exam, include_archived="true")
    expect.equal("include_archived", [here.id, gone.id], [session["id"] for session in with_archived])
    shown = [session["archived_at"] is not None for session in with_archived]
    expect.equal("whether they are shown as archived", [False, True], shown)


@requirement("CAS-SESS-10")
async def sessions_are_filtered(exam: CasExamination) -> None:
    """statuses[], agent_id and created_at[gt], [gte], [lt], [lte] leave out what does not fit."""
    await exam.own_agent()
    first, second = await exam.open(), await exam.open()
    await exam.open(agent=(await exam.new_agent())["id"])
    both, none = [second.id, first.id], list[str]()
    early, late = "2001-01-01T00:00:00Z", "2999-01-01T00:00:00Z"
    expected: list[tuple[dict[str, str], list[str]]] = [
        ({}, both),
        ({"statuses[]": "idle"}, both),
        ({"statuses[]": "terminated"}, none),
        *(({f"created_at[{after}]": early}, both) for after in ("gt", "gte")),
        *(({f"created_at[{after}]": late}, none) for after in ("gt", "gte")),
        *(({f"created_at[{before}]": early}, none) for before in ("lt", "lte")),
        *(({f"created_at[{before}]": late}, both) for before in ("lt", "lte")),
    ]
    for query, wanted in expected:
        found = [session["id"] for session in await _listed(exam, **query)]
        expect.equal(f"the sessions for {query}", wanted, found)


@requirement("CAS-SESS-11")
async def an_update_changes_what_it_names(exam: CasExamination) -> None:
    """title leaves metadata alone and metadata leaves title alone; metadata is replaced, or merged if so set up."""
    talk = await exam.open(title="one", metadata={"a": "1"})
    for body in ({"title": "two"}, {}, {"metadata": {"b": "2"}}):
        await exam.have("session", "POST", talk.path, body)
    kept = {"a": "1"} if exam.profile.metadata_update == "merge" else {}
    session = await talk.info()
    expect.equal("title and metadata", ("two", kept | {"b": "2"}), (session["title"], session["metadata"]))
    if exam.profile.metadata_update == "merge":
        await exam.have("session", "POST", talk.path, {"metadata": {"a": None}})
        expect.equal("metadata after a null", {"b": "2"}, (await talk.info())["metadata"])


@requirement("CAS-SESS-12")
async def an_archived_session_is_read_only(exam: CasExamination) -> None:
    """An archived session can be read, with its events, and takes no message."""
    talk = await exam.open()
    await talk.say(exam.profile.prompt("text"))
    before = await talk.events()
    session = await exam.have("session", "POST", f"{talk.path}/archive", ...)
    expect.that(session["archived_at"] is not None, "archived_at to be set", session)
    read = await exam.have("session", "GET", talk.path)
    need("session", read, "archived_at")
    expect.equal("archived_at", session["archived_at"], read["archived_at"])
    exam.refused(await talk.attempt({"events": [message("Hello")]}), 409)
    said = [event["id"] for event in await talk.events() if event["type"] == "user.message"]
    expect.equal("the messages", [event["id"] for event in before if event["type"] == "user.message"], said)


@requirement("CAS-SESS-12")
async def a_deleted_session_is_gone(exam: CasExamination) -> None:
    """DELETE is answered with session_deleted; afterwards the session and its events are 404 and it is not listed."""
    await exam.own_agent()
    talk = await exam.open()
    body = await exam.have("deleted", "DELETE", talk.path)
    expect.equal("the id", talk.id, body["id"])
    for path in (talk.path, f"{talk.path}/events"):
        exam.refused(await exam.ask("GET", path), 404)
    exam.refused(await exam.ask("DELETE", talk.path), 404)
    expect.equal("the sessions", [], await _listed(exam, include_archived="true"))


@requirement("CAS-SESS-13")
async def a_cancelled_turn_ends(exam: CasExamination) -> None:
    """cancel is a 202 while a turn runs; the turn ends with the stop reason cancelled, and another can begin."""
    talk = await exam.open()
    async with talk.follow() as follower:
        accepted = await talk.begin(exam.profile.prompt("slow"), follower)
        async with expect.while_it_runs(partial(talk.is_over, accepted)):
            body = await exam.have("canceling", "POST", f"{talk.path}/cancel", ..., status=202)
        expect.equal("the id", talk.id, body["id"])
        idle = (await follower.until(is_idle, "session.status_idle"))[-1]
    expect.equal("the stop reason", "cancelled", idle["stop_reason"]["type"])
    (await talk.say(exam.profile.prompt("text"))).stopped("end_turn").spoke()


@requirement("CAS-SESS-13")
async def cancelling_an_idle_session_is_harmless(exam: CasExamination) -> None:
    """cancel is a 200 when nothing runs, and the next turn is whole."""
    talk = await exam.open()
    await exam.have("canceling", "POST", f"{talk.path}/cancel", ..., status=200)
    (await talk.say(exam.profile.prompt("text"))).stopped("end_turn").spoke()


@requirement("CAS-SESS-15")
async def an_empty_object_is_accepted(exam: CasExamination) -> None:
    """cancel, archive and DELETE take the body {}, and do what they do without one."""
    talk = await exam.open()
    replies: list[Reply] = []
    for method, path in (("POST", f"{talk.path}/cancel"), ("POST", f"{talk.path}/archive"), ("DELETE", talk.path)):
        replies.append(expect.status(await exam.ask(method, path, {}), 200, 202, 204))
    for schema, reply in zip(("canceling", "session", "deleted"), replies, strict=True):
        exam.fitting(schema, reply)
