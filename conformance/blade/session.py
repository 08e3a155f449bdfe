"""Section session: the Session object, and the life its status tells of."""

from datetime import datetime
from uuid import uuid4

from conformance.blade.damaged_members import sound
from conformance.blade.examination import BladeExamination
from conformance.blade.scene import scene
from conformance.kit import expect
from conformance.kit.case import requirement

STATUSES = ("created", "running", "completed", "failed", "interrupted", "waiting_for_input")
FLAGS = ("shared", "is_pinned", "memory_enabled", "is_persistent")
NEEDED = ("id", "intent", "status", "created_at", "updated_at", "user_id", *FLAGS)
LINKS = ("solution_id", "biz_role_id", "model", "replay_state")


@requirement("BL-SESS-01")
async def a_session_is_complete(exam: BladeExamination) -> None:
    """A session has all its fields, before and after a chat."""
    seen = await scene(exam, "text")
    for body in (seen.before, seen.look()):
        expect.subset("the members of a session", NEEDED, body)


@requirement("BL-SESS-02")
async def a_session_is_found_by_its_id(exam: BladeExamination) -> None:
    """Two sessions have two ids, and each is found by its own."""
    ids = [await exam.session(), await exam.session()]
    expect.that(ids[0] != ids[1], "two sessions to have two ids", ids)
    for name in ids:
        expect.equal("the id of the session", name, (await exam.got("session", f"/api/sessions/{name}"))["id"])


@requirement("BL-SESS-03")
async def the_intent_is_kept(exam: BladeExamination) -> None:
    """A session has the intent it was created with."""
    intent = f"Examine everything, 检查 {uuid4().hex}"
    path = f"/api/sessions/{await exam.session(intent=intent)}"
    with expect.owned("BL-SESS-02"):
        body = await exam.got("session", path)
    expect.equal("the intent", intent, body["intent"])


@requirement("BL-SESS-04")
async def a_status_is_one_of_six(exam: BladeExamination) -> None:
    """Whatever happens in a session, its status is one of the six."""
    for situation in ("text", "tool", "ask"):
        seen = await scene(exam, situation)
        for body in (seen.before, seen.look(0), seen.look()):
            expect.member("status", STATUSES, sound(body["status"]))


@requirement("BL-SESS-05")
async def a_new_session_is_created(exam: BladeExamination) -> None:
    """Before anything is said the status is created, subscribed to or not."""
    await (await exam.open()).becomes("created")


@requirement("BL-SESS-06")
async def a_busy_session_is_running(exam: BladeExamination) -> None:
    """From the first delta to the last the status is running."""
    talk = await exam.open()
    await talk.send(exam.profile.prompt("slow"))
    await talk.until("turn:patch")
    await talk.becomes("running")


@requirement("BL-SESS-07")
async def a_finished_session_is_completed(exam: BladeExamination) -> None:
    """After a chat, with or without tools, the status is completed, and again after the next."""
    for situation in ("text", "tool"):
        seen = await scene(exam, situation)
        for place, _ in enumerate(seen.chats):
            expect.equal("the status of the session", "completed", seen.look(place)["status"])


@requirement("BL-SESS-08")
async def a_broken_session_is_failed(exam: BladeExamination) -> None:
    """After a chat that broke the status is failed."""
    seen = await scene(exam, "fail")
    seen.chat()
    expect.equal("the status of the session", "failed", seen.look()["status"])


@requirement("BL-SESS-09")
async def a_stopped_session_is_interrupted(exam: BladeExamination) -> None:
    """After chat:stop the status is interrupted."""
    talk = await exam.open()
    await talk.send(exam.profile.prompt("slow"))
    await talk.until("turn:patch")
    await talk.link.emit("chat:stop", {"session_id": talk.session})
    chat = await talk.listen()
    expect.that(chat.end["status"] == "interrupted", "chat:end (interrupted)", chat.shown, "BL-WS-06")
    await talk.becomes("interrupted")


@requirement("BL-SESS-10")
async def a_question_makes_a_session_wait(exam: BladeExamination) -> None:
    """While a question is open the status is waiting_for_input; after the answer it is not."""
    seen = await scene(exam, "ask")
    seen.chat().question()
    expect.equal("the status of the session", "waiting_for_input", seen.look(0)["status"])
    seen.chat(1)
    expect.that(seen.look(1)["status"] != "waiting_for_input", "another status after the answer", seen.look(1))


@requirement("BL-SESS-11")
async def times_go_forward(exam: BladeExamination) -> None:
    """created_at stays, updated_at is not before it, and user_id is a string."""
    seen = await scene(exam, "text")
    before, after = seen.before, seen.look()
    expect.equal("created_at after a chat", before["created_at"], after["created_at"])
    expect.equal("user_id after a chat", before["user_id"], after["user_id"])
    created, updated = (datetime.fromisoformat(sound(after[name])) for name in ("created_at", "updated_at"))
    expect.that(updated >= created, "updated_at not before created_at", after)
    expect.that(updated >= datetime.fromisoformat(sound(before["updated_at"])), "updated_at not to go back", after)


@requirement("BL-SESS-12", "BL-SESS-13", "BL-SESS-14", "BL-SESS-16")
async def links_are_of_their_types(exam: BladeExamination) -> None:
    """solution_id, biz_role_id and model are strings, null or absent; replay_state is an object, null or absent."""
    body = await (await exam.open()).info()
    for name in LINKS:
        sound(body.get(name))


@requirement("BL-SESS-15")
async def flags_are_booleans(exam: BladeExamination) -> None:
    """The four flags are booleans, and is_persistent is what was asked for."""
    body = await (await exam.open(is_persistent=True)).info()
    for name in FLAGS:
        expect.that(isinstance(sound(body[name]), bool), f"{name} to be a boolean", body)
    expect.that(body["is_persistent"], "is_persistent as the session was created with", body)
