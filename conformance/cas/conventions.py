"""Section conventions: keys, errors, request ids, ids and times, and bodies that cannot be read."""

from contextlib import suppress
from typing import Any
from uuid import uuid4

from conformance.cas.examination import Body, CasExamination
from conformance.cas.run import message
from conformance.cas.scenes import replies
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable
from conformance.kit.http import Reply
from conformance.kit.multipart import Upload, form

LIMIT = 4 * 1024 * 1024
PREFIXES = {
    "/agents": "agent_",
    "/environments": "env_",
    "/files": "file_",
    "/memory_stores": "memstore_",
    "/vaults": "vault_",
}
MOUNTED = {"/memory_stores": "memory_store_ids", "/vaults": "vault_ids"}
UNREADABLE: tuple[tuple[bytes, str], ...] = (
    (b'{"agent": ', "the JSON breaks off"),
    (b"\xff\xfe\x00", "the body is not UTF-8"),
    (b"hello", "the body is a word"),
)


async def _with_key(exam: CasExamination, key: str | None) -> Reply:
    reply = await exam.ask("GET", "/sessions", key=key)
    if exam.http.key is None and reply.status != 401:
        raise NotTestable("no key was given, so the server may be open to all")
    return reply


@requirement("CAS-GEN-01")
async def a_missing_key_is_refused(exam: CasExamination) -> None:
    """Without Authorization the answer is 401 authentication_error."""
    exam.refused(await _with_key(exam, None), 401)


@requirement("CAS-GEN-01")
async def a_wrong_key_is_refused(exam: CasExamination) -> None:
    """With a key nobody has the answer is 401 authentication_error, whatever is asked for."""
    exam.refused(await _with_key(exam, f"wrong-{uuid4().hex}"), 401)
    for method, path in (("POST", "/sessions"), ("GET", f"/sessions/{exam.stranger()}/events/stream")):
        exam.refused(await exam.ask(method, path, key=f"wrong-{uuid4().hex}"), 401)


@requirement("CAS-GEN-02")
async def an_unknown_session_is_not_found(exam: CasExamination) -> None:
    """Whatever is asked of an unknown session is a 404 not_found_error that names it."""
    name = exam.stranger()
    path = f"/sessions/{name}"
    asked: tuple[tuple[str, str, Any], ...] = (
        ("GET", path, ...),
        ("POST", path, {"title": "x"}),
        ("DELETE", path, ...),
        ("POST", f"{path}/archive", {}),
        ("GET", f"{path}/events", ...),
        ("POST", f"{path}/events", {"events": [message("Hello")]}),
        ("GET", f"{path}/events/stream", ...),
    )
    for method, place, body in asked:
        headers = {"Accept": "text/event-stream"} if place.endswith("/stream") else None
        refusal = exam.refused(await exam.ask(method, place, body, headers=headers), 404)
        words = refusal["error"]["message"]
        expect.that(name in words and "not found" in words, f"words such as Session '{name}' was not found.", words)


@requirement("CAS-GEN-02")
async def unknown_things_are_not_found(exam: CasExamination) -> None:
    """An id nobody has, of whatever kind the server lists, is a 404 not_found_error."""
    for shelf, prefix in PREFIXES.items():
        if (await exam.ask("GET", shelf, query={"limit": "1"})).status == 200:
            exam.refused(await exam.ask("GET", f"{shelf}/{exam.stranger(prefix.rstrip('_'))}"), 404)
    talk = await exam.open()
    for shelf, prefix in (("threads", "sthr"), ("resources", "sesr")):
        if (await exam.ask("GET", f"{talk.path}/{shelf}")).status == 200:
            exam.refused(await exam.ask("GET", f"{talk.path}/{shelf}/{exam.stranger(prefix)}"), 404)


@requirement("CAS-GEN-02")
async def wrong_requests_have_matching_errors(exam: CasExamination) -> None:
    """A wrong request is an invalid_request_error, one that comes too late a conflict_error."""
    _is_error(exam, await exam.create({}), 400, "CAS-SESS-04")
    talk = await exam.open()
    _is_error(exam, await talk.attempt({"events": []}), 400, "CAS-EV-02")
    _is_error(exam, await exam.ask("GET", "/sessions", query={"limit": "0"}), 400, "CAS-GEN-04")
    with expect.preparing("an archived session"):
        await exam.have("session", "POST", f"{talk.path}/archive", {})
    _is_error(exam, await talk.attempt({"events": [message("Hello")]}), 409, "CAS-SESS-12")


def _is_error(exam: CasExamination, reply: Reply, status: int, owner: str) -> None:
    """Expect a refusal with this status; that it is refused at all is the owner's sentence."""
    is_error = reply.status < 400 and "error" in reply.object()
    expect.that(reply.status >= 400 or is_error, f"{reply.asked} to be refused", reply.told, owner)
    exam.refused(reply, status)


@requirement("CAS-GEN-03")
async def a_request_id_is_kept(exam: CasExamination) -> None:
    """The request's own x-request-id comes back, on answers, refusals and streams alike."""
    talk = await exam.open()
    own = f"req-{uuid4().hex}"
    paths = (talk.path, f"/sessions/{exam.stranger()}")
    replies = [await exam.ask("GET", path, headers={"x-request-id": own}) for path in paths]
    for reply in replies:
        expect.equal(f"x-request-id of the answer to {reply.asked}", own, _request_id(reply.headers))
    expect.equal("request_id in the body", own, exam.refused(replies[-1], 404)["request_id"])
    async with talk.follow(headers={"x-request-id": own}) as follower:
        expect.equal("x-request-id of the stream", own, _request_id(follower.stream.headers))


@requirement("CAS-GEN-03")
async def a_request_id_is_given(exam: CasExamination) -> None:
    """A request without an id gets a new one, and a refusal repeats it in its body."""
    replies = [await exam.ask("GET", path) for path in ("/sessions", "/sessions", f"/sessions/{exam.stranger()}")]
    names = [_request_id(reply.headers) for reply in replies]
    expect.that(all(names) and len(set(names)) == len(names), "a new x-request-id on every answer", names)
    expect.equal("request_id in the body", names[-1], exam.refused(replies[-1], 404)["request_id"])


def _request_id(headers: Any) -> str | None:
    return next((value for name, value in headers.items() if name.lower() == "x-request-id"), None)


@requirement("CAS-GEN-06")
async def ids_have_prefixes_and_times_are_utc(exam: CasExamination) -> None:
    """Sessions, turns, events and threads: the schemas say how ids and times look."""
    scene = await replies(exam)
    threads: list[Body] = []
    with suppress(NotTestable):
        threads = scene.threads("text")
    for told in (scene.session, *scene.accepted, *scene.told, *threads, *scene.listed):
        latest = told.get("updated_at") or told.get("processed_at") or told["created_at"]
        expect.that(told["created_at"][:19] <= latest[:19], "created_at to be the earliest time", told)


async def _made(exam: CasExamination, path: str, json: Any = ..., **more: Any) -> Any:
    """What is made at this path, whose id must be of its kind and whose times must be times."""
    reply = await exam.ask("POST", path, json, **more)
    if reply.status not in (200, 201):
        raise NotTestable(f"nothing can be made at {path}: {reply.told}")
    made = exam.fitting("made", reply)
    expect.that(made["id"].startswith(PREFIXES[path]), f"an id such as {PREFIXES[path]}… from {reply.asked}", made)
    return made


@requirement("CAS-GEN-06")
async def agents_and_the_like_have_prefixes(exam: CasExamination) -> None:
    """Agents, environments, vaults and memory stores, as far as the server has them, have ids of their kind."""
    bodies = {
        "/agents": {"name": "Prefixes", "model": await exam.model()},
        "/environments": {"name": "Prefixes", "config": exam.profile.environment_config},
        "/vaults": {"display_name": "Prefixes"},
        "/memory_stores": {"name": "Prefixes"},
    }
    made: dict[str, str] = {}
    for path, body in bodies.items():
        with suppress(NotTestable):
            made[path] = (await _made(exam, path, body))["id"]
    if not made:
        raise NotTestable("nothing of the kind can be made")
    await _mounted(exam, {MOUNTED[path]: [name] for path, name in made.items() if path in MOUNTED})


async def _mounted(exam: CasExamination, given: dict[str, list[str]]) -> None:
    """Expect a session that takes these ids to show them."""
    reply = await exam.attempt(**given)
    if reply.status == 201:
        made, read = reply.json(), await exam.have("session", "GET", f"/sessions/{reply.json()['id']}")
        for session in (made, read):
            expect.equal("vaults and memory stores", given, {name: session[name] for name in given})


@requirement("CAS-GEN-06")
async def files_and_mounts_have_prefixes(exam: CasExamination) -> None:
    """Files and session resources have ids of their kind."""
    sent = form({"file": Upload("examination.txt", b"x", "text/plain")})
    file = await _made(exam, "/files", body=sent.body, content_type=sent.content_type)
    session = (await exam.admit(resources=[{"file_id": file["id"]}])).session
    for resource in session["resources"]:
        expect.that("id" not in resource or resource["id"].startswith("sesr_"), "an id such as sesr_…", resource)


@requirement("CAS-GEN-07")
async def a_body_that_is_not_json_is_refused(exam: CasExamination) -> None:
    """Bodies that cannot be read are the client's error, on sessions and on events."""
    talk = await exam.open()
    for path in ("/sessions", f"{talk.path}/events"):
        for body, _ in UNREADABLE:
            exam.refused(await exam.ask("POST", path, body=body), 400)


@requirement("CAS-GEN-07")
async def a_body_that_is_too_large_is_refused(exam: CasExamination) -> None:
    """A body of more than 4 MiB is a 400; one of 1 MiB is not too large."""
    talk = await exam.open()
    reply = await talk.attempt({"events": [{"type": "user.define_outcome", "description": "x" * LIMIT}]})
    exam.refused(reply, 400)
    reply = await talk.attempt({"events": [{"type": "user.define_outcome", "description": "x" * (LIMIT // 4)}]})
    expect.status(reply, 202)
