"""Section rest: creating, reading and deleting sessions, errors, and what the server says of itself."""

import asyncio
from uuid import uuid4

from conformance.blade import key, memory, task
from conformance.blade.examination import BladeExamination
from conformance.blade.scene import scene
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable
from conformance.kit.http import Reply


@requirement("BL-REST-01")
async def a_session_is_created(exam: BladeExamination) -> None:
    """POST answers {session_id}, with the plainest body and with every optional field null."""
    for more in ({}, dict.fromkeys(("solution_id", "biz_role_id", "template_id", "primary_skill_id", "model", "env"))):
        reply = expect.status(await exam.create(**more), 200, 201)
        exam.read("created", reply.json(), "the answer to POST /api/sessions")


@requirement("BL-REST-02")
async def messages_are_a_bare_array(exam: BladeExamination) -> None:
    """Empty before the first chat; afterwards turns with the compaction fields and failure_reason, all null."""
    path = f"/api/sessions/{await exam.session()}"
    expect.equal("the messages of a new session", [], await exam.asked("GET", f"{path}/messages"))
    seen = await scene(exam, "tool")
    seen.kept()
    for turn in await exam.got("messages", f"{seen.path}/messages"):
        expect.equal("compaction_id of a message", None, turn["compaction_id"])


def _words(exam: BladeExamination, reply: Reply, *statuses: int) -> None:
    exam.read("error", expect.status(reply, *statuses).json(), f"the refusal of {reply.asked}")


@requirement("BL-REST-03")
async def unknown_things_are_404(exam: BladeExamination) -> None:
    """Whatever is asked of an unknown session is a 404 with {detail}."""
    path = f"/api/sessions/{exam.stranger()}"
    for method, place, body in (
        ("GET", "", ...),
        ("PATCH", "", {"intent": "x"}),
        ("DELETE", "", ...),
        ("GET", "/messages", ...),
        ("PATCH", "/pin", {"pinned": True}),
    ):
        _words(exam, await exam.http.ask(method, path + place, body), 404)


@requirement("BL-REST-03")
async def other_unknown_things_are_404(exam: BladeExamination) -> None:
    """An unknown memory, key or task, as far as the server lists things of the kind, is a 404 with {detail}."""
    for path, name in ((memory.PATH, 2**31 - 7), (key.PATH, exam.stranger()), (task.PATH, exam.stranger())):
        if (await exam.http.ask("GET", path)).status == 200:
            for method in ("GET", "DELETE"):
                _words(exam, await exam.http.ask(method, f"{path.rstrip('/')}/{name}"), 404)


@requirement("BL-REST-03")
async def wrong_bodies_are_refused_in_words(exam: BladeExamination) -> None:
    """Bodies that are not JSON, or of the wrong shape, are a 4xx with {detail}."""
    talk = await exam.open()
    for body in (b"", b"{", b"[]", b"\xff\xfe"):
        _words(exam, await exam.http.ask("POST", "/api/sessions", body=body), 400, 422)
    for place, wrong in (("", {"intent": 7}), ("/pin", {"pinned": "perhaps"}), ("/env", {"env": "x"})):
        method = "PUT" if place == "/env" else "PATCH"
        _words(exam, await talk.ask(method, place, wrong), 400, 422)


@requirement("BL-REST-03")
async def a_wrong_token_is_401(exam: BladeExamination) -> None:
    """Without a token and with a wrong one everything but version and health is a 401 with {detail}."""
    if exam.http.key is None:
        raise NotTestable("the examiners were given no key")
    talk = await exam.open()
    has_memories = (await exam.http.ask("GET", "/api/memories")).status != 404
    for path in ("/api/sessions", talk.path, f"{talk.path}/messages", *["/api/memories"] * has_memories):
        for token in (None, f"sk-blade-v2-{uuid4().hex}"):
            _words(exam, await exam.http.ask("GET", path, key=token), 401)


@requirement("BL-REST-04")
async def a_deleted_session_is_gone(exam: BladeExamination) -> None:
    """DELETE answers {deleted true}; afterwards session and messages are 404."""
    session = await exam.session()
    path = f"/api/sessions/{session}"
    body = await exam.told("DELETE", path)
    expect.equal("deleted", True, body.get("deleted"))
    for place in ("", "/messages"):
        expect.status(await exam.http.ask("GET", path + place), 404)
    with expect.owned("BL-REST-05"):
        items = (await exam.got("sessions", "/api/sessions", query={"limit": "100"}))["items"]
    expect.that(session not in [item["id"] for item in items], "the session not to be listed", session)


@requirement("BL-REST-19")
async def models_are_listed(exam: BladeExamination) -> None:
    """GET /api/config/models names the models and which of them is the default."""
    exam.offered(await exam.http.ask("GET", "/api/config/models"))
    body = await exam.got("models", "/api/config/models")
    names = [model["id"] for model in body["models"]]
    expect.that(body["default"] in names or not names, "the default to be one of the models", body)


@requirement("BL-REST-20")
async def the_user_is_named(exam: BladeExamination) -> None:
    """GET /api/auth/me tells who the token belongs to, the same user the sessions belong to."""
    exam.offered(await exam.http.ask("GET", "/api/auth/me"))
    me = await exam.got("me", "/api/auth/me")
    session = await exam.session()
    with expect.owned("BL-SESS-02"):
        shown = await exam.got("session", f"/api/sessions/{session}")
    expect.equal("the user_id of a new session", shown["user_id"], me["id"])


@requirement("BL-REST-21")
async def version_and_health_need_no_key(exam: BladeExamination) -> None:
    """GET /api/version, /api/health and /healthz are answered without a key."""
    await exam.got("version", "/api/version", key=None)
    for path in ("/api/health", "/healthz"):
        expect.equal(path, "ok", (await exam.told("GET", path, key=None)).get("status"))


@requirement("BL-REST-05")
async def sessions_are_listed_in_pages(exam: BladeExamination) -> None:
    """By default 20 from 0; limit and offset cut pages that neither repeat nor skip; q finds an intent."""
    word = uuid4().hex
    made = set(await asyncio.gather(*(exam.session(intent=f"Examine {word} {number}") for number in range(5))))
    body = await exam.got("sessions", "/api/sessions")
    expect.equal("limit and offset by default", (20, 0), (body["limit"], body["offset"]))
    found: list[str] = []
    for offset in range(0, 6, 2):
        query = {"q": word, "limit": "2", "offset": str(offset)}
        page = await exam.got("sessions", "/api/sessions", query=query)
        expect.equal("limit and offset", (2, offset), (page["limit"], page["offset"]))
        expect.equal("total", 5, page["total"])
        found += [item["id"] for item in page["items"]]
    if found and not made.intersection(found):  # then sessions do not go by the ids they were made under
        with expect.owned("BL-SESS-02"):
            name = sorted(made)[0]
            expect.equal("the id of a session", name, (await exam.got("session", f"/api/sessions/{name}"))["id"])
    expect.equal("the sessions found, page by page", sorted(made), sorted(found))
    for wrong in ({"limit": "0"}, {"offset": "-1"}, {"limit": "many"}):
        _words(exam, await exam.http.ask("GET", "/api/sessions", query=wrong), 400, 422)
