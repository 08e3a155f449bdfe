"""Section rest, continued: memories, API keys and scheduled tasks."""

from uuid import uuid4

from conformance.blade import key, memory, task
from conformance.blade.examination import BladeExamination
from conformance.kit import expect
from conformance.kit.case import requirement


@requirement("BL-REST-16")
async def memories_are_kept(exam: BladeExamination) -> None:
    """A memory is made with 201, found by keyword, changed, disabled and deleted."""
    word = uuid4().hex
    reply = await exam.http.ask("POST", memory.PATH, {"content": f"Remember {word}"})
    expect.status(exam.offered(reply), 201)
    made = exam.read("memory", reply.json(), "a new memory")
    expect.equal("the type by default", "feedback", made["type"])
    path = f"{memory.PATH}/{made['id']}"
    found = await exam.got("memories", memory.PATH, query={"keyword": word})
    expect.equal("the memories found", [[made["id"]], 1], [[item["id"] for item in found["items"]], found["total"]])
    changed = expect.keyed("it", await exam.asked("PUT", path, {"content": f"Forget {word}"}), "content", "type")
    expect.equal(
        "the content changed, the type kept", [f"Forget {word}", "feedback"], [changed["content"], changed["type"]]
    )
    disabled = expect.keyed("it", await exam.asked("PATCH", path, {"disabled": True}), "disabled")
    expect.equal("disabled", True, disabled["disabled"])
    expect.equal("ok", True, expect.keyed("the answer", await exam.asked("DELETE", path), "ok")["ok"])
    expect.status(await exam.http.ask("GET", path), 404)


@requirement("BL-REST-16")
async def memories_are_paged(exam: BladeExamination) -> None:
    """limit is 1 to 100 and 20 by default; outside of that it is refused."""
    word = uuid4().hex
    ids = [(await memory.remembered(exam, content=f"{word} {number}"))["id"] for number in range(3)]
    found: list[int] = []
    for offset in ("0", "2"):
        query = {"keyword": word, "limit": "2", "offset": offset}
        page = await exam.got("memories", memory.PATH, query=query)
        expect.equal("total", 3, page["total"])
        found += [item["id"] for item in page["items"]]
    expect.equal("the memories, page by page", sorted(ids), sorted(found))
    for limit in ("0", "101"):
        expect.refused(await exam.http.ask("GET", memory.PATH, query={"limit": limit}), "limit is 1 to 100")


@requirement("BL-REST-16")
async def memories_are_handled_in_batches(exam: BladeExamination) -> None:
    """disable, enable and delete answer {ok, count}; another action is refused."""
    ids = [(await memory.remembered(exam))["id"] for _ in range(2)]
    for action in ("disable", "enable", "delete"):
        body = await exam.told("POST", f"{memory.PATH}/batch", {"action": action, "ids": ids})
        expect.equal(f"ok and count of {action}", [True, 2], [body.get("ok"), body.get("count")])
    for name in ids:
        expect.status(await exam.http.ask("GET", f"{memory.PATH}/{name}"), 404)
    wrong = {"action": "frame", "ids": ids}
    expect.refused(await exam.http.ask("POST", f"{memory.PATH}/batch", wrong), "there is no such action")


@requirement("BL-REST-16", destructive="deletes an empty list of memories, which a careless server takes for all")
async def an_empty_batch_is_refused(exam: BladeExamination) -> None:
    """A batch without ids is refused and deletes nothing."""
    kept = await memory.remembered(exam)
    reply = await exam.http.ask("POST", f"{memory.PATH}/batch", {"action": "delete", "ids": []})
    expect.refused(reply, "the batch names no memory")
    expect.status(await exam.http.ask("GET", f"{memory.PATH}/{kept['id']}"), 200)


@requirement("BL-REST-17")
async def keys_are_kept(exam: BladeExamination) -> None:
    """A key is made with 201, renamed, and deleted with 204; names have 1 to 50 characters."""
    reply = expect.status(exam.offered(await exam.http.ask("POST", key.PATH, {"name": "Examiners"})), 201)
    body = expect.keyed("a new key", reply.json())
    made = expect.keyed("a new key", body.get("key") or body, "id")
    path = f"{key.PATH}{made['id']}"
    renamed = await exam.told("PATCH", path, {"name": "Renamed"})
    expect.equal("the name", ["Renamed"] * 2, [renamed.get("name"), (await exam.got("key", path))["name"]])
    for name in ("", "x" * 51):
        expect.refused(await exam.http.ask("POST", key.PATH, {"name": name}), "a name has 1 to 50 characters")
    expect.status(await exam.http.ask("DELETE", path), 204)
    expect.status(await exam.http.ask("GET", path), 404)


@requirement("BL-REST-17")
async def keys_work_as_tokens(exam: BladeExamination) -> None:
    """A new key is taken for REST and for the socket, until it is deleted."""
    made, plaintext = await key.minted(exam)
    expect.status(await exam.http.ask("GET", "/api/sessions", key=plaintext), 200)
    link = await exam.link({"token": plaintext})
    expect.that(link.is_open, "an open connection", "a closed one")
    expect.status(await exam.http.ask("DELETE", f"{key.PATH}{made['id']}"), 204)
    if exam.http.key is not None:
        expect.status(await exam.http.ask("GET", "/api/sessions", key=plaintext), 401)


@requirement("BL-REST-18")
async def tasks_are_kept(exam: BladeExamination) -> None:
    """A task is made with 201, listed, changed, stopped, started and deleted with 204."""
    made = expect.status(exam.offered(await exam.http.ask("POST", task.PATH, task.TASK)), 201).json()
    expect.that(isinstance(made, dict) and isinstance(made.get("id"), str), "the task with its id", made)
    path = f"{task.PATH}/{made['id']}"
    body = await exam.asked("GET", task.PATH)
    listed = body if isinstance(body, list) else body.get("items", []) if isinstance(body, dict) else []
    names = [item.get("id") for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    expect.that(made["id"] in names, "the task to be listed", body)
    changed = await exam.told("PATCH", path, {"title": "Weekly", "cron": "0 9 * * 1"})
    expect.equal(
        "title, cron, prompt",
        ["Weekly", "0 9 * * 1", task.TASK["prompt"]],
        [changed.get(name) for name in ("title", "cron", "prompt")],
    )
    for verb, enabled in (("stop", False), ("start", True)):
        expect.equal(f"enabled after {verb}", enabled, (await exam.told("POST", f"{path}/{verb}")).get("enabled"))
    expect.status(await exam.http.ask("DELETE", path), 204)
    expect.status(await exam.http.ask("GET", path), 404)


@requirement("BL-REST-18")
async def wrong_tasks_are_refused(exam: BladeExamination) -> None:
    """A task needs a title of 1 to 200 characters, a prompt, and a cron of five fields."""
    await task.scheduled(exam)
    for wrong in ({"title": ""}, {"title": "x" * 201}, {"prompt": ""}, {"cron": "whenever"}, {"cron": ""}):
        reply = await exam.http.ask("POST", task.PATH, task.TASK | wrong)
        expect.refused(reply, f"{wrong} is wrong")


@requirement("BL-REST-18")
async def tasks_have_a_calendar(exam: BladeExamination) -> None:
    """The calendar tells when a task is due between two times."""
    made = await task.scheduled(exam)
    query = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-04T00:00:00Z"}
    calendar = await exam.got("calendar", f"{task.PATH}/calendar", query=query)
    due = [item["occurrences"] for item in calendar if item["task_id"] == made["id"]]
    expect.that(len(due) == 1 and len(due[0]) == 3, "a daily task to be due three times in three days", calendar)
