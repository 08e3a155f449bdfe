"""Section session: the Session object, and the life its status tells of."""

from datetime import datetime
from uuid import uuid4

from conformance.blade.examination import BladeExamination
from conformance.kit import expect
from conformance.kit.case import requirement

STATUSES = ("created", "running", "completed", "failed", "interrupted", "waiting_for_input")
FLAGS = ("shared", "is_pinned", "memory_enabled", "is_persistent")


@requirement("BL-SESS-01")
async def a_session_is_complete(exam: BladeExamination) -> None:
    """A session has all its fields, before and after a chat."""
    talk = await exam.open()
    exam.fit("session", await exam.asked("GET", talk.path), "a new session")
    await talk.play("text")
    exam.fit("session", await exam.asked("GET", talk.path), "a session after a chat")


@requirement("BL-SESS-02")
async def a_session_is_found_by_its_id(exam: BladeExamination) -> None:
    """Two sessions have two ids, and each is found by its own."""
    ids = [await exam.session(), await exam.session()]
    expect.that(ids[0] != ids[1], "two sessions to have two ids", ids)
    for name in ids:
        expect.equal("the id of the session", name, (await exam.told("GET", f"/api/sessions/{name}")).get("id"))


@requirement("BL-SESS-03")
async def the_intent_is_kept(exam: BladeExamination) -> None:
    """A session has the intent it was created with."""
    intent = f"Examine everything, 检查 {uuid4().hex}"
    talk = await exam.open(intent=intent)
    expect.equal("the intent", intent, (await exam.told("GET", talk.path)).get("intent"))


@requirement("BL-SESS-04")
async def a_status_is_one_of_six(exam: BladeExamination) -> None:
    """Whatever happens in a session, its status is one of the six."""
    talk = await exam.open()
    expect.member("status", STATUSES, (await exam.told("GET", talk.path)).get("status"))
    for situation in ("text", "tool", "ask"):
        await talk.play(situation)
        expect.member("status", STATUSES, (await exam.told("GET", talk.path)).get("status"))


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
    (await talk.listen()).ended("completed")
    await talk.becomes("completed")


@requirement("BL-SESS-07")
async def a_finished_session_is_completed(exam: BladeExamination) -> None:
    """After a chat, with or without tools, the status is completed, and again after the next."""
    talk = await exam.open()
    for situation in ("text", "tool"):
        (await talk.play(situation)).ended("completed")
        await talk.becomes("completed")


@requirement("BL-SESS-08")
async def a_broken_session_is_failed(exam: BladeExamination) -> None:
    """After a chat that broke the status is failed, and the session can be talked in again."""
    talk = await exam.open()
    await talk.play("fail")
    await talk.becomes("failed")
    (await talk.play("text")).ended("completed")
    await talk.becomes("completed")


@requirement("BL-SESS-09")
async def a_stopped_session_is_interrupted(exam: BladeExamination) -> None:
    """After chat:stop the status is interrupted, and the session can be talked in again."""
    talk = await exam.open()
    await talk.send(exam.profile.prompt("slow"))
    await talk.until("turn:patch")
    await talk.link.emit("chat:stop", {"session_id": talk.session})
    await talk.listen()
    await talk.becomes("interrupted")
    (await talk.play("text")).ended("completed")


@requirement("BL-SESS-10")
async def a_question_makes_a_session_wait(exam: BladeExamination) -> None:
    """While a question is open the status is waiting_for_input; after the answer it is completed."""
    talk = await exam.open()
    question = (await talk.play("ask")).question()
    await talk.becomes("waiting_for_input")
    await talk.answer(question)
    await talk.becomes("completed")


@requirement("BL-SESS-11")
async def times_go_forward(exam: BladeExamination) -> None:
    """created_at stays, updated_at is not before it, and user_id is a string."""
    talk = await exam.open()
    before = await talk.info()
    await talk.play("text")
    after = await talk.info()
    expect.equal("created_at after a chat", before["created_at"], after["created_at"])
    expect.equal("user_id after a chat", before["user_id"], after["user_id"])
    created, updated = (datetime.fromisoformat(after[name]) for name in ("created_at", "updated_at"))
    expect.that(updated >= created, "updated_at not before created_at", after)
    expect.that(updated >= datetime.fromisoformat(before["updated_at"]), "updated_at not to go back", after)


@requirement("BL-SESS-12", "BL-SESS-13", "BL-SESS-14", "BL-SESS-16")
async def links_are_of_their_types(exam: BladeExamination) -> None:
    """solution_id, biz_role_id and model are strings, null or absent; replay_state is an object, null or absent."""
    talk = await exam.open()
    body = await exam.told("GET", talk.path)
    for name, kind in (("solution_id", str), ("biz_role_id", str), ("model", str), ("replay_state", dict)):
        expect.that(isinstance(body.get(name), (kind, type(None))), f"{name}: {kind.__name__} or null", body)


@requirement("BL-SESS-15")
async def flags_are_booleans(exam: BladeExamination) -> None:
    """The four flags are booleans, and is_persistent is what was asked for."""
    body = await exam.told("GET", (await exam.open(is_persistent=True)).path)
    for name in FLAGS:
        expect.that(isinstance(body.get(name), bool), f"{name} to be a boolean", body)
    expect.that(body["is_persistent"], "is_persistent as the session was created with", body)
