"""Section tasks: the jobs that a server knows by name, their runs, and its scheduler."""

from typing import Any

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import Failed, NotTestable
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.management_common import BAD, TAKEN, UNKNOWN, coded, heard, is_taken, manage, obtained
from conformance.zenflux.rest_answer import Answer, listed

MANY = "lets the server go through the conversations of all users"
ON_CONVERSATIONS = ("title_generation", "recommended_questions")
JOBS = (*ON_CONVERSATIONS, "mem0_update")
"""What chat.send can ask for in background_tasks: run for a conversation of ours, they do nothing to others."""
WRONG_RUN = {"params": "none", "wait": "perhaps"}
"""A body that is refused: no task needs to run to see that the call is there."""
TOO_SHORT = {"since_hours": 0}
STATUSES = ("pending", "running", "completed", "failed")


def _names(answer: Answer | None) -> list[str]:
    """The names of the tasks in a list, as far as they can be read."""
    try:
        items = listed(answer.body["data"], "tasks") if answer else []
    except Failed:
        return []
    return [str(item["name"]) for item in items if isinstance(item.get("name"), str)]


async def _known(exam: ZenfluxExamination) -> tuple[str, bool]:
    """A task, and whether the server is known to have it: one of the jobs if it lists one, or else any."""
    listing = await heard(exam, "/tasks")
    names = _names(listing)
    return next((name for name in (*JOBS, *names) if name in names), JOBS[0]), bool(names)


async def _is_there(exam: ZenfluxExamination, answer: Answer, is_listed: bool, *accepted: int) -> bool:
    """Whether a task call was carried out; NotTestable if it may be the task that is not there."""
    if not is_listed and answer.code == UNKNOWN and await heard(exam, "/tasks"):
        raise NotTestable("the server lists no tasks")
    return is_taken(answer, *accepted)


# -- the six rows ------------------------------------------------------------------------------------------------------


@requirement("ZF-HTTP-3.11-01")
async def tasks_are_listed(exam: ZenfluxExamination) -> None:
    """GET /tasks lists the tasks; what it tells of each is another matter."""
    data = (await manage(exam, "GET", "/tasks")).done()
    found = data.get("tasks") if isinstance(data, dict) else data
    expect.that(isinstance(found, list), "a list of tasks as data, or in data.tasks", data)


@requirement("ZF-HTTP-3.11-02")
async def a_task_is_shown(exam: ZenfluxExamination) -> None:
    """GET /tasks/{name} shows a task of the list."""
    name, is_listed = await _known(exam)
    answer = await manage(exam, "GET", f"/tasks/{name}")
    await _is_there(exam, answer, is_listed)
    expect.keyed("the task", answer.body["data"])
    expect.that(name in answer.reply.text, f"the task {name}", answer.reply.told)


@requirement("ZF-HTTP-3.11-03")
async def a_task_is_triggered(exam: ZenfluxExamination) -> None:
    """POST /tasks/{name}/run is there: a job runs for a conversation of ours, and a bad body is refused."""
    name, is_listed = await _known(exam)
    await _is_there(exam, await manage(exam, "POST", f"/tasks/{name}/run", WRONG_RUN), is_listed, *BAD)
    if is_listed and name in ON_CONVERSATIONS:
        body = {"user_id": exam.user, "conversation_id": (await exam.conversation())["id"], "wait": True}
        is_taken(await manage(exam, "POST", f"/tasks/{name}/run", body), *BAD, TAKEN)


@requirement("ZF-HTTP-3.11-04")
async def a_task_is_triggered_for_many(exam: ZenfluxExamination) -> None:
    """POST /tasks/{name}/batch is there: a span of no hours is refused or taken."""
    name, is_listed = await _known(exam)
    await _is_there(exam, await manage(exam, "POST", f"/tasks/{name}/batch", TOO_SHORT), is_listed, *BAD)


@requirement("ZF-HTTP-3.11-05")
async def the_schedules_are_shown(exam: ZenfluxExamination) -> None:
    """GET /tasks/scheduled/config shows what is scheduled; it is no task called scheduled."""
    expect.keyed("the schedules", (await manage(exam, "GET", "/tasks/scheduled/config")).done())


@requirement("ZF-HTTP-3.11-06")
async def the_scheduler_is_shown(exam: ZenfluxExamination) -> None:
    """GET /tasks/scheduled/status shows the scheduler; it is no task called scheduled."""
    expect.keyed("the scheduler", (await manage(exam, "GET", "/tasks/scheduled/status")).done())


# -- shapes ------------------------------------------------------------------------------------------------------------


@requirement("ZF-TASK-01.in")
async def the_scheduled_tasks_are_listed_alone(exam: ZenfluxExamination) -> None:
    """GET /tasks?scheduled_only=true lists the tasks that can be scheduled, and no others."""
    with expect.preparing("the lists of tasks"):
        whole = listed((await manage(exam, "GET", "/tasks")).done(), "tasks")
        alone = listed((await manage(exam, "GET", "/tasks", scheduled_only="true")).done(), "tasks")
    wanted = sorted(str(item.get("name")) for item in whole if item.get("supports_scheduled"))
    expect.equal("the scheduled tasks", wanted, sorted(str(item.get("name")) for item in alone))


@requirement("ZF-TASK-01.out")
async def tasks_are_counted(exam: ZenfluxExamination) -> None:
    """GET /tasks is {tasks, total}; a task has name, description, supports_scheduled and schedule_config."""
    data = await obtained(exam, "GET", "/tasks")
    exam.schemas.fit("task_list", data, "the data of GET /tasks")
    expect.equal("total", len(data["tasks"]), data["total"])


@requirement("ZF-TASK-02.out")
async def a_task_has_its_details(exam: ZenfluxExamination) -> None:
    """GET /tasks/{name} has name, description, supports_scheduled and schedule_config of the task."""
    name = await _job(exam)
    data = await obtained(exam, "GET", f"/tasks/{name}")
    exam.schemas.fit("task", data, f"the data of GET /tasks/{name}")
    expect.equal("name", name, data["name"])


@requirement("ZF-TASK-02.err")
async def unknown_tasks_are_not_shown(exam: ZenfluxExamination) -> None:
    """GET /tasks/{name} is a 404 for a task that nobody has."""
    await obtained(exam, "GET", "/tasks")
    coded(await manage(exam, "GET", f"/tasks/{exam.stranger()}"), "nobody has this task", UNKNOWN)


async def _job(exam: ZenfluxExamination, *wanted: str) -> str:
    """A task of the list: one of these, if there is one, or any."""
    with expect.preparing("a task"):
        names = _names(await manage(exam, "GET", "/tasks"))
    found = [name for name in (wanted or names) if name in names]
    if not found:
        raise NotTestable(f"the server does not list {' or '.join(wanted) or 'any task'}")
    return found[0]


async def _run(exam: ZenfluxExamination, **more: Any) -> Any:
    """What a run for a conversation of ours is answered with."""
    name = await _job(exam, *ON_CONVERSATIONS)
    with expect.preparing("a conversation"):
        body = {"user_id": exam.user, "conversation_id": (await exam.conversation())["id"], **more}
    data = await obtained(exam, "POST", f"/tasks/{name}/run", body)
    exam.schemas.fit("task_run", data, f"the data of POST /tasks/{name}/run")
    expect.equal("task_name", name, data["task_name"])
    return data


@requirement("ZF-TASK-03.in")
async def a_run_can_be_waited_for(exam: ZenfluxExamination) -> None:
    """With wait true, POST /tasks/{name}/run is answered when the run is over."""
    name = await _job(exam, *ON_CONVERSATIONS)
    with expect.preparing("a conversation"):
        body = {"user_id": exam.user, "conversation_id": (await exam.conversation())["id"], "params": {}, "wait": True}
    data = expect.keyed("the run", await obtained(exam, "POST", f"/tasks/{name}/run", body))
    expect.member("the status of a run that was waited for", STATUSES[2:], data.get("status"))


@requirement("ZF-TASK-03.out")
async def a_run_is_told(exam: ZenfluxExamination) -> None:
    """POST /tasks/{name}/run is the run: its task, status, times, error and result; it was triggered by hand."""
    data = await _run(exam)
    expect.equal("trigger_type", "manual", data["trigger_type"])


@requirement("ZF-TASK-03.err")
async def wrong_runs_are_refused(exam: ZenfluxExamination) -> None:
    """POST /tasks/{name}/run is a 404 for an unknown task, a 400 for a bad body or without a conversation."""
    name = await _job(exam, *ON_CONVERSATIONS)
    answer = await manage(exam, "POST", f"/tasks/{exam.stranger()}/run", {"user_id": exam.user})
    coded(answer, "nobody has this task", UNKNOWN)
    for body in ({"params": "none"}, {"wait": "perhaps"}, {"user_id": exam.user}):
        coded(await manage(exam, "POST", f"/tasks/{name}/run", body), f"of {expect.show(body)}", *BAD)


@requirement("ZF-TASK-04.out", destructive=MANY)
async def a_run_for_many_is_told(exam: ZenfluxExamination) -> None:
    """POST /tasks/{name}/batch is a run whose result counts users: total_users, successful, failed."""
    name = await _job(exam, JOBS[-1])
    data = await obtained(exam, "POST", f"/tasks/{name}/batch", {"since_hours": 1, "max_concurrent": 1})
    exam.schemas.fit("task_run", data, f"the data of POST /tasks/{name}/batch")
    expect.equal("trigger_type", "scheduled", data["trigger_type"])
    result = expect.keyed("the result", data["result"], "total_users", "successful", "failed", "total_memories_added")
    expect.equal("total_users", result["successful"] + result["failed"], result["total_users"])


@requirement("ZF-TASK-04.err")
async def wrong_runs_for_many_are_refused(exam: ZenfluxExamination) -> None:
    """POST /tasks/{name}/batch is a 404 for an unknown task, a 400 for one that is not scheduled, or out of bounds."""
    name = await _job(exam, JOBS[-1])
    answer = await manage(exam, "POST", f"/tasks/{exam.stranger()}/batch", {"since_hours": 1})
    coded(answer, "nobody has this task", UNKNOWN)
    for body in (TOO_SHORT, {"since_hours": 169}, {"max_concurrent": 0}, {"max_concurrent": 21}):
        coded(await manage(exam, "POST", f"/tasks/{name}/batch", body), f"of {expect.show(body)}", *BAD)
    single = await _job(exam, *ON_CONVERSATIONS)
    answer = await manage(exam, "POST", f"/tasks/{single}/batch", {"since_hours": 1})
    coded(answer, "this task cannot be scheduled", *BAD)


@requirement("ZF-TASK-05.out")
async def the_schedules_are_counted(exam: ZenfluxExamination) -> None:
    """GET /tasks/scheduled/config is {tasks, total, hint}, of the tasks that can be scheduled."""
    data = await obtained(exam, "GET", "/tasks/scheduled/config")
    exam.schemas.fit("task_list", data, "the data of GET /tasks/scheduled/config")
    expect.equal("total", len(data["tasks"]), data["total"])
    expect.that(isinstance(data.get("hint"), str), "a hint, which is a string", data)
    expect.that(all(item["supports_scheduled"] for item in data["tasks"]), "only what can be scheduled", data)


@requirement("ZF-TASK-06.out")
async def the_scheduler_tells_its_jobs(exam: ZenfluxExamination) -> None:
    """GET /tasks/scheduled/status is {running, jobs, total_jobs}; a job has id, name, its next time and its trigger."""
    data = await obtained(exam, "GET", "/tasks/scheduled/status")
    exam.schemas.fit("scheduler", data, "the data of GET /tasks/scheduled/status")
    expect.equal("total_jobs", len(data["jobs"]), data["total_jobs"])
