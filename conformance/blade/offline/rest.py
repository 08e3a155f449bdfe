"""Section rest: the answers of every route, and what they say of each other."""

from collections.abc import Iterator

from conformance.blade.offline.view import BladeView, done, member, turns_in
from conformance.blade.schema_owners import SCHEMAS, OwnedShapes, expect_shape
from conformance.kit import expect
from conformance.offline.recording import Exchange
from conformance.offline.rule import rule
from conformance.offline.shape_rules import shaped

Found = Iterator[Exchange | str]
ROUTES = shaped(
    OwnedShapes(),
    """
    POST   /api/sessions                             200,201 created      BL-REST-01
    GET    /api/sessions                             200     sessions     BL-REST-05
    GET    /api/sessions/{}                          200     session.full BL-REST-06
    GET    /api/sessions/{}/messages                 200     messages     BL-REST-02
    PATCH  /api/sessions/{}                          200     session      BL-REST-07
    PUT    /api/sessions/{}/env                      200     session      BL-REST-07
    GET    /api/sessions/{}/history                  200     history      BL-REST-09
    GET    /api/sessions/{}/replay/preview           200     preview      BL-REST-11
    PATCH  /api/sessions/{}/replay                   200     replay       BL-REST-11
    POST   /api/sessions/{}/share                    200,201 share        BL-REST-12
    POST   /api/sessions/{}/upset_extra_info         200,201 extra        BL-REST-15
    GET    /api/sessions/{}/extra_info               200     extra        BL-REST-15
    POST   /api/memories                             200,201 memory       BL-MEM-01,BL-MEM-04
    GET    /api/memories                             200     memories     BL-REST-16
    GET    /api/memories/{}                          200     memory       BL-MEM-01
    GET    /api/user/api-keys/{}                     200     key          BL-KEY-01
    POST   /api/scheduled-tasks                      200,201 task         BL-TASK-01
    GET    /api/scheduled-tasks/{}                   200     task         BL-TASK-01
    GET    /api/scheduled-tasks/calendar             200     calendar     BL-REST-18
    GET    /api/config/models                        200     models       BL-REST-19
    GET    /api/auth/me                              200     me           BL-REST-20
    GET    /api/version                              200     version      BL-REST-21
    """,
)


@rule("BL-REST-03", needs="request that was refused")
def refusals_are_said_in_words(view: BladeView) -> Found:
    """Errors below /api have a 4xx or 5xx status and the body {detail}."""
    for item in view.recording.exchanges:
        if item.path.startswith("/api/") and (item.status or 0) >= 400 and item.is_whole:
            yield item
            expect_shape("error", item.reply.json(), f"the refusal of {item.asked}")


@rule("BL-REST-04", needs="session that was deleted")
def a_deleted_session_is_gone(view: BladeView) -> Found:
    """DELETE answers {deleted true}, and then the session is a 404."""
    gone = {names[0]: item for item, names in done(view, "DELETE /api/sessions/{}")}
    for item in gone.values():
        yield item
        expect.equal("deleted", True, member(item.reply.json(), "deleted"))
    for item, (name,) in view.recording.of("GET /api/sessions/{}"):
        if name in gone and gone[name].ended < item.order and item.is_whole and item.status != 401:
            yield item
            expect.status(item.reply, 404)


@rule("BL-REST-05", needs="list of sessions")
def pages_have_their_counts(view: BladeView) -> Found:
    """limit and offset are those asked for, by default 20 and 0, and no page is longer than its limit."""
    for item, _ in done(view, "GET /api/sessions"):
        yield item
        body = item.reply.json()
        wanted = [int(item.param("limit") or 20), int(item.param("offset") or 0)]
        expect.equal("limit and offset", wanted, [member(body, "limit"), member(body, "offset")])
        expect.that(len(body["items"]) <= wanted[0], f"at most {wanted[0]} sessions", len(body["items"]))


@rule("BL-REST-02", needs="history")
def a_history_is_a_bare_array(view: BladeView) -> Found:
    """GET messages is a bare array of TurnProjections."""
    for item, _ in done(view, "GET /api/sessions/{}/messages"):
        yield item
        expect.that(isinstance(item.reply.json(), list), "a bare array", item.reply.told)


@rule("BL-REST-07", needs="session that was changed")
def a_changed_session_is_answered(view: BladeView) -> Found:
    """PATCH {intent} and PATCH pin {pinned} answer the changed session."""
    for item, _ in done(view, "PATCH /api/sessions/{}"):
        if member(item.sent, "intent") is not None:
            yield item
            expect.equal("intent", item.sent["intent"], member(item.reply.json(), "intent"))
    for item, _ in done(view, "PATCH /api/sessions/{}/pin"):
        yield item
        expect.equal("is_pinned", member(item.sent, "pinned"), member(item.reply.json(), "is_pinned"))


@rule("BL-REST-08", needs="change of sharing or memory")
def switches_answer_what_they_set(view: BladeView) -> Found:
    """PATCH sharing answers {shared}, PATCH memory {memory_enabled}."""
    for place, name in (("sharing", "shared"), ("memory", "memory_enabled")):
        for item, _ in done(view, f"PATCH /api/sessions/{{}}/{place}"):
            yield item
            expect.equal(name, member(item.sent, name), member(item.reply.json(), name))


@rule("BL-REST-10", needs="list of checkpoints")
def checkpoints_are_listed(view: BladeView) -> Found:
    """GET checkpoints lists {checkpoint_id, turn_id}."""
    for item, _ in done(view, "GET /api/sessions/{}/checkpoints"):
        yield item
        found = turns_in(item.reply.json())
        expect.that(found is not None, "a list of checkpoints", item.reply.told)
        for point in found or []:
            SCHEMAS.fit("checkpoint", point, "a checkpoint")


@rule("BL-REST-12", needs="share that was revoked")
def a_revoked_share_is_gone(view: BladeView) -> Found:
    """DELETE share/{token} answers {revoked true}, and then the share is refused."""
    gone: dict[str, Exchange] = {}
    for route in ("DELETE /api/share/{}", "DELETE /api/sessions/{}/share/{}"):
        for item, names in done(view, route):
            yield item
            expect.equal("revoked", True, member(item.reply.json(), "revoked"))
            gone[names[-1]] = item
    for item, (name,) in view.recording.of("GET /api/share/{}"):
        if name in gone and gone[name].ended < item.order and item.is_whole:
            yield item
            expect.refused(item.reply, "the share was revoked")


@rule("BL-REST-19", needs="answer to GET /api/config/models")
def the_default_model_is_listed(view: BladeView) -> Found:
    """The default model is one of the models."""
    for item, _ in done(view, "GET /api/config/models"):
        yield item
        body = item.reply.json()
        names = [member(it, "id") or member(it, "name") or it for it in member(body, "models") or []]
        expect.that(member(body, "default") in names, "the default among the models", body)


@rule("BL-REST-21", needs="answer to GET /api/health or /healthz")
def the_server_is_well(view: BladeView) -> Found:
    """GET /api/health and /healthz answer {status ok}."""
    for path in ("/api/health", "/healthz"):
        for item, _ in view.recording.of(f"GET {path}"):
            if item.is_whole:
                yield item
                expect.equal("status", "ok", member(expect.status(item.reply, 200).json(), "status"))


@rule("BL-FLOW-28", needs="chat over REST")
def a_chat_over_rest_says_what_chat_end_would(view: BladeView) -> Found:
    """POST with a message answers what chat:end would say."""
    for item in view.recording.exchanges:
        is_chat = item.method == "POST" and item.path.endswith(("/chat", "/invoke", "/run", "/headless"))
        if is_chat and item.is_done and member(item.sent, "message"):
            yield item
            SCHEMAS.fit("event.chat-end", item.reply.json(), f"the answer to {item.asked}")
            if item.json["status"] == "completed" and not item.json.get("pause_tool"):
                result = member(item.json, "result")
                expect.that(bool(member(result, "output")), "result.output", item.json)
