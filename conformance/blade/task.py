"""Section task: ScheduledTasks and their runs."""

from typing import Any

from conformance.blade.examination import BladeExamination
from conformance.kit import expect
from conformance.kit.case import requirement

PATH = "/api/scheduled-tasks"
TASK = {"title": "每日报告", "prompt": "生成今日数据摘要", "cron": "0 9 * * *", "timezone": "Asia/Shanghai"}


async def scheduled(exam: BladeExamination, **more: Any) -> Any:
    """A new task, deleted when the case is over."""
    return exam.read("task", await exam.keep(PATH, TASK | more, "BL-TASK-01"), "a new scheduled task")


@requirement("BL-TASK-01")
async def a_task_is_complete(exam: BladeExamination) -> None:
    """A new task has all its fields, as they were given, when it is made and when it is read."""
    task = await scheduled(exam)
    for body in (task, await exam.got("task", f"{PATH}/{task['id']}")):
        expect.equal("the task", {"id": task["id"], **TASK}, {name: body[name] for name in ("id", *TASK)})


@requirement("BL-TASK-02")
async def runs_are_complete(exam: BladeExamination) -> None:
    """Whatever runs a started task has are complete and name the task."""
    task = await scheduled(exam)
    await exam.http.ask("POST", f"{PATH}/{task['id']}/start")
    runs = await exam.asked("GET", f"{PATH}/{task['id']}/runs")
    expect.that(isinstance(runs, list), "a list of runs", runs)
    for told in runs:
        run = exam.read("run", told, "a run")
        expect.equal("the task_id of a run", task["id"], run["task_id"])
