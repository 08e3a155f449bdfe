"""Section session: the Session object, and whether its status tells the truth."""

from collections.abc import Iterator
from datetime import datetime

from conformance.blade import session
from conformance.blade.offline.view import BladeView, RecordedChat
from conformance.blade.schema_owners import expect_shape
from conformance.kit import expect
from conformance.offline.recording import Exchange, mapping
from conformance.offline.rule import Rule, rule

Found = Iterator[Exchange | str]
AFTER = {
    "completed": ("BL-SESS-07", "completed"),
    "failed": ("BL-SESS-08", "failed"),
    "interrupted": ("BL-SESS-09", "interrupted"),
    "asked": ("BL-SESS-10", "waiting_for_input"),
}


def _shown(view: BladeView) -> list[tuple[Exchange, str]]:
    return [(item, name) for item, (name,) in view.recording.of("GET /api/sessions/{}") if item.is_done]


def _made(view: BladeView) -> list[tuple[str, Exchange]]:
    """The sessions that were created, by id; what goes by no id is another requirement's."""
    made = [item for item, _ in view.recording.of("POST /api/sessions") if item.is_done]
    named = [(mapping(item.json).get("session_id"), item) for item in made]
    return [(name, item) for name, item in named if isinstance(name, str)]


@rule("BL-SESS-01", needs="session")
def a_session_is_complete(view: BladeView) -> Found:
    """A session has all its fields."""
    for item, _ in _shown(view):
        yield item
        expect_shape("session", item.reply.json(), "a session")


@rule("BL-SESS-02", needs="session")
def a_session_is_found_by_its_id(view: BladeView) -> Found:
    """A session has the id it is asked for by, and every new one has its own."""
    made = [name for name, _ in _made(view)]
    for item, name in _shown(view):
        yield item
        expect.equal("the id of the session", name, mapping(item.json).get("id"))
    expect.equal("sessions with one id", len(made), len(set(made)))


@rule("BL-SESS-03", needs="look at a session that was created")
def the_intent_is_kept(view: BladeView) -> Found:
    """A session has the intent it was created with, until it is given another."""
    made = dict(_made(view))
    for item, name in _shown(view):
        if name in made and not view.is_touched(name, made[name].ended, item.ended):
            yield item
            wanted = mapping(made[name].sent).get("intent")
            expect.that(wanted in (None, mapping(item.json).get("intent")), f"the intent {wanted!r}", item.json)


@rule("BL-SESS-04", needs="session")
def a_status_is_one_of_six(view: BladeView) -> Found:
    """The status is one of the six."""
    for item, _ in _shown(view):
        yield item
        expect.member("status", session.STATUSES, mapping(item.json).get("status"))


@rule("BL-SESS-05", needs="look at a session in which nothing was said")
def a_new_session_is_created(view: BladeView) -> Found:
    """Before anything is said the status is created."""
    made = dict(_made(view))
    for item, name in _shown(view):
        if name in made and not view.is_touched(name, made[name].order, item.ended):
            yield item
            expect.equal("the status", "created", mapping(item.json).get("status"))


@rule("BL-SESS-06", needs="look at a session while its chat ran")
def a_busy_session_is_running(view: BladeView) -> Found:
    """While a chat goes on the status is running; a first look may come too early."""
    for spoken in view.whole:
        patches = [it.order for it in spoken.packets if it.name == "turn:patch"]
        looks = [item for item, name in _shown(view) if name == spoken.session and patches]
        during = [item for item in looks if patches[0] < item.order and item.ended < patches[-1]]
        if during:
            yield during[-1]
            expect.equal("the status", "running", mapping(during[-1].json).get("status"))


def _kind(spoken: RecordedChat) -> str:
    has_question = bool(spoken.chat.end.get("pause_tool")) or any(
        turn.end is not None and turn.end.get("status") == "paused" for turn in spoken.chat.turns
    )
    return "asked" if spoken.status == "completed" and has_question else spoken.status


def _after(kind: str, requirement: str, status: str) -> Rule:
    def check(view: BladeView) -> Found:
        for spoken in view.whole:
            looks = [item for item, name in _shown(view) if name == spoken.session and item.order > spoken.end]
            looks = [item for item in looks if not view.is_touched(spoken.session, spoken.end, item.ended)]
            if looks and _kind(spoken) == kind:
                yield looks[-1]
                expect.equal("the status", status, mapping(looks[-1].json).get("status"))

    check.__name__ = f"after_{kind}_the_session_is_{status}"
    check.__doc__ = f"After a chat that ended {kind} the status is {status}; a first look may come too early."
    return rule(requirement, needs=f"look at a session after a chat that ended {kind}")(check)


STATES = tuple(_after(kind, *row) for kind, row in AFTER.items())


@rule("BL-SESS-11", needs="session")
def times_go_forward(view: BladeView) -> Found:
    """updated_at is not before created_at, which stays what it was; user_id is a string."""
    first: dict[str, str] = {}
    for item, body in view.looks:
        yield item
        created, updated = (datetime.fromisoformat(body[name]) for name in ("created_at", "updated_at"))
        expect.that(updated >= created, "updated_at not before created_at", body)
        expect.equal("created_at", first.setdefault(body["id"], body["created_at"]), body["created_at"])
        expect.that(isinstance(body["user_id"], str), "user_id: a string", body)


@rule("BL-SESS-12", "BL-SESS-13", "BL-SESS-14", "BL-SESS-16", needs="session")
def links_are_of_their_types(view: BladeView) -> Found:
    """solution_id, biz_role_id and model are strings, null or absent; replay_state is an object, null or absent."""
    for item, _ in _shown(view):
        yield item
        for name, kind in (("solution_id", str), ("biz_role_id", str), ("model", str), ("replay_state", dict)):
            fits = isinstance(mapping(item.json).get(name), (kind, type(None)))
            expect.that(fits, f"{name}: {kind.__name__} or null", item.json)


@rule("BL-SESS-15", needs="session")
def flags_are_booleans(view: BladeView) -> Found:
    """The four flags are booleans."""
    for item, _ in _shown(view):
        yield item
        for name in session.FLAGS:
            expect.that(isinstance(mapping(item.json).get(name), bool), f"{name} to be a boolean", item.json)
