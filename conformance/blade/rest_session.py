"""Section rest, continued: what can be changed of a session, and what is kept beside it."""

import io
import zipfile
from typing import Any
from uuid import uuid4

from conformance.blade.chat import EVENTS
from conformance.blade.examination import BladeExamination
from conformance.blade.scene import scene
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.json_round_trip import CARRIED, HUGE, came_back, written
from conformance.kit.multipart import Upload, form


@requirement("BL-REST-06")
async def a_session_is_shown_in_full(exam: BladeExamination) -> None:
    """GET has solution, primary_skill_snapshot, session_setup, and the viewer_role owner."""
    talk = await exam.open()
    body = await exam.got("session.full", talk.path)
    expect.equal("viewer_role of one's own session", "owner", body["viewer_role"])


@requirement("BL-REST-07")
async def intent_env_and_pin_are_changed(exam: BladeExamination) -> None:
    """Each change answers the session as changed, and GET shows the same."""
    talk = await exam.open()
    intent = f"Another intent {uuid4().hex}"
    body = expect.status(await talk.ask("PATCH", "", {"intent": intent}), 200).object()
    expect.equal("the intent", [intent] * 2, [body.get("intent"), (await talk.info())["intent"]])
    for pinned in (True, False):
        body = expect.status(await talk.ask("PATCH", "/pin", {"pinned": pinned}), 200).object()
        expect.equal("is_pinned", [pinned] * 2, [body.get("is_pinned"), (await talk.info())["is_pinned"]])
    body = expect.status(await talk.ask("PUT", "/env", {"env": {"REGION": "cn-hangzhou"}}), 200).object()
    expect.equal("the session that PUT env answers", talk.session, body.get("id"))


@requirement("BL-REST-08")
async def sharing_and_memory_are_switched(exam: BladeExamination) -> None:
    """Each switch answers its own value, and the session shows it."""
    talk = await exam.open()
    for place, asked, shown in (("/sharing", "shared", "shared"), ("/memory", "memory_enabled", "memory_enabled")):
        for value in (True, False):
            body = expect.status(exam.offered(await talk.ask("PATCH", place, {asked: value})), 200).object()
            expect.equal(f"{asked}, answered and shown", [value] * 2, [body.get(asked), (await talk.info())[shown]])


@requirement("BL-REST-09")
async def a_history_counts_tokens(exam: BladeExamination) -> None:
    """GET history has nodes and the tokens of prompt and tools."""
    seen = await scene(exam, "text")
    seen.chat()
    exam.offered(await exam.http.ask("GET", f"{seen.path}/history"))
    body = await exam.got("history", f"{seen.path}/history")
    expect.that(bool(body["nodes"]), "nodes after a chat", body)


@requirement("BL-REST-10")
async def a_session_goes_back_to_a_checkpoint(exam: BladeExamination) -> None:
    """Checkpoints name turns; checkout leaves the history alone and rewind shortens it."""
    talk = await exam.open()
    for _ in range(2):
        await talk.play("text")
    body = expect.status(exam.offered(await talk.ask("GET", "/checkpoints")), 200).json()
    points: list[Any] = (body.get("nodes") or []) if isinstance(body, dict) else body
    points = [exam.read("checkpoint", point, "a checkpoint") for point in points]
    before = await talk.messages()
    expect.that(bool(points), "checkpoints after two chats", body)
    expect.subset(
        "the turns of the history",
        {point["turn_id"] for point in points if point["turn_id"]},
        {it["turn_id"] for it in before},
    )
    place = {"checkpoint_id": points[0]["checkpoint_id"]}
    for position in ("before", "turn_end"):
        expect.status(await talk.ask("POST", "/checkout", place | {"position": position}), 200)
    expect.equal("the turns after checkout", len(before), len(await talk.messages()))
    expect.status(await talk.ask("POST", "/rewind", place), 200)
    expect.that(len(await talk.messages()) < len(before), "fewer turns after rewind", len(before))
    await talk.play("text", owner="BL-REST-10")


@requirement("BL-REST-11")
async def a_session_is_replayed(exam: BladeExamination) -> None:
    """The preview says what is supported; a replay is a session of its own; a wrong speed is refused."""
    talk = await exam.open()
    await talk.play("text")
    exam.offered(await talk.ask("GET", "/replay/preview"))
    preview = await exam.got("preview", f"{talk.path}/replay/preview")
    expect.equal("the session of the preview", talk.session, preview["session_id"])
    expect.refused(await talk.ask("POST", "/replay", {"speed": 3}), "the speed is 1, 2 or 5")
    if preview["supported"]:
        reply = expect.status(await talk.ask("POST", "/replay", {"speed": 5}), 200, 201)
        body = exam.read("created", reply.json(), "the answer to POST replay", "BL-REST-11")
        copy = f"/api/sessions/{body['session_id']}"
        exam.discard(copy)
        expect.that(body["session_id"] != talk.session, "a session of its own", body)
        changed = await exam.asked("PATCH", f"{copy}/replay", {"speed": 2})
        exam.read("replay", changed, "the answer to PATCH replay")


@requirement("BL-REST-12")
async def a_shared_session_is_read_by_anybody(exam: BladeExamination) -> None:
    """A share token shows the messages without a key until it is revoked."""
    talk = await exam.open()
    await talk.play("text")
    made = expect.status(exam.offered(await talk.ask("POST", "/share", {"ttl_seconds": 600})), 200, 201).json()
    share = exam.read("share", made, "the answer to POST share")
    path = f"/api/share/{share['token']}"
    shown = await exam.asked("GET", path, key=None)
    ids = [turn["turn_id"] for turn in shown] if isinstance(shown, list) else shown
    expect.equal("how many turns are shown", len(await talk.messages()), len(ids))
    revoked = expect.status(await talk.ask("DELETE", f"/share/{share['token']}"), 200).object()
    expect.equal("revoked", True, revoked.get("revoked"))
    expect.refused(await exam.http.ask("GET", path, key=None), "the share was revoked")


@requirement("BL-REST-13")
async def a_session_is_exported(exam: BladeExamination) -> None:
    """GET export is a ZIP file with something in it, and preview-import takes it."""
    talk = await exam.open()
    await talk.play("text")
    reply = expect.status(exam.offered(await talk.ask("GET", "/export")), 200)
    expect.that(zipfile.is_zipfile(io.BytesIO(reply.body)), "a ZIP file", reply.body[:40].hex(" "))
    sent = form({"file": Upload("session.zip", reply.body, "application/zip")})
    path = "/api/sessions/preview-import"
    preview = await exam.http.ask("POST", path, body=sent.body, content_type=sent.content_type)
    expect.that(isinstance(expect.status(preview, 200).json(), dict), "an object", preview.told)


@requirement("BL-REST-14")
async def files_are_kept_in_the_workspace(exam: BladeExamination) -> None:
    """A file is written, listed, read, renamed, copied, uploaded and deleted."""
    talk = await exam.open()
    reply = exam.offered(await talk.ask("PUT", "/files/notes/a.txt", {"content": "Hello, 你好"}))
    written = expect.status(reply, 200, 201).object()
    expect.equal("success", True, written.get("success"))
    expect.that(
        "你好" in expect.status(await talk.ask("GET", "/files/notes/a.txt"), 200).text, "the content", "another"
    )
    renamed = expect.status(await talk.ask("POST", "/rename/notes/a.txt", {"new_name": "b.txt"}), 200).object()
    expect.that(str(renamed.get("path")).endswith("b.txt"), "the new path", renamed)
    sheet = form({"files": Upload("c.txt", b"Uploaded"), "paths": '["c.txt"]'})
    reply = await talk.ask("POST", "/upload/notes", body=sheet.body, content_type=sheet.content_type)
    exam.read("uploaded", expect.status(reply, 200, 201).json(), "the answer to POST upload")
    listed = await exam.got("listing", f"{talk.path}/ls/notes")
    expect.equal("the files", ["b.txt", "c.txt"], sorted(item["name"] for item in listed))
    gone = expect.status(await talk.ask("DELETE", "/files/notes/b.txt"), 200).object()
    expect.equal("deleted", True, gone.get("deleted"))
    expect.status(await talk.ask("GET", "/files/notes/b.txt"), 404)


@requirement("BL-REST-14")
async def no_path_leaves_the_workspace(exam: BladeExamination) -> None:
    """Paths that climb out of the folder are refused for reading."""
    talk = await exam.open()
    for path in ("%2e%2e%2f%2e%2e%2fetc%2fpasswd", "a%2f%2e%2e%2f%2e%2e%2fb"):
        expect.refused(await talk.ask("GET", f"/files/{path}"), "the path leaves the session's folder")


@requirement("BL-REST-14", destructive="writes a file that a careless server puts outside of the session's folder")
async def nothing_is_written_outside_the_workspace(exam: BladeExamination) -> None:
    """Paths that climb out of the folder are refused for writing."""
    talk = await exam.open()
    name = f"examined-{uuid4().hex}"
    for path in (f"%2e%2e%2f%2e%2e%2f{name}", f"a%2f%2e%2e%2f%2e%2e%2f{name}"):
        reply = await talk.ask("PUT", f"/files/{path}", {"content": "x"})
        expect.refused(reply, "the path leaves the session's folder")


@requirement("BL-REST-15")
async def extra_info_is_kept(exam: BladeExamination) -> None:
    """upset_extra_info answers what it keeps, again and again, and extra_info reads the last."""
    talk = await exam.open()
    for extra in ({"ticket": "T-1"}, {"ticket": "T-2", "deep": {"a": [1, None]}}):
        reply = exam.offered(await talk.ask("POST", "/upset_extra_info", {"extra": extra}))
        body: Any = expect.status(reply, 200, 201).json()
        told = exam.read("extra", body, "extra info")
        for seen in (told, await exam.got("extra", f"{talk.path}/extra_info")):
            expect.equal("extra", extra, seen["extra"])
            expect.equal("session_id", talk.session, seen["session_id"])
    heard = [item.name for item in talk.link.heard if item.name in EVENTS]
    expect.equal("chat events of it", [], heard)


@requirement("BL-REST-15")
async def extra_info_carries_any_json(exam: BladeExamination) -> None:
    """Whatever JSON is in extra is read as it was sent; numbers too large may be refused."""
    talk = await exam.open()
    for extra in (CARRIED, HUGE):
        reply = exam.offered(await talk.ask("POST", "/upset_extra_info", body=written({"extra": extra})))
        if extra is HUGE and 400 <= reply.status < 500:
            return
        body = expect.keyed("the answer", expect.status(reply, 200, 201).json(), "extra")
        came_back("extra", extra, body["extra"])
        came_back("extra, read again", extra, (await exam.got("extra", f"{talk.path}/extra_info"))["extra"])
