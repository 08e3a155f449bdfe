"""Scheduled tasks of the Blade reference server."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from aiohttp import web

from conformance.faults.blade.front import Front
from conformance.faults.blade.state import Body, Refusal, State, mint, now
from conformance.faults.blade.writer import Writer


class Tasks:
    """Answers requests for scheduled tasks, their runs and their calendar."""

    def __init__(self, state: State, writer: Writer, front: Front) -> None:
        self.state = state
        self.writer = writer
        self.front = front

    def check_task(self, body: Body) -> None:
        self.front.check_length(body, title=200, prompt=10**6, cron=100, timezone=100)
        if "cron" in body and len(body["cron"].split()) != 5:
            raise Refusal(422, "cron has five fields")

    async def post_task(self, request: web.Request) -> web.StreamResponse:
        body = await self.front.read(request, title=str, prompt=str, cron=str, timezone=str)
        self.check_task(body)
        given = {name: body[name] for name in ("title", "prompt", "cron", "timezone")}
        more = {"enabled": True, "expires_at": None, "skip_confirmations": False, "model": None}
        task = {"id": mint("task"), **given, **more}
        self.state.tasks[task["id"]] = task
        return self.front.reply("task", task, 201)

    async def get_tasks(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply("tasks", [self.writer.shown("task", dict(task)) for task in self.state.tasks.values()])

    async def get_task(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply("task", self.front.take(self.state.tasks, request))

    async def patch_task(self, request: web.Request) -> web.StreamResponse:
        task, body = self.front.take(self.state.tasks, request), await self.front.read(request)
        self.check_task(body)
        task |= {name: value for name, value in body.items() if name in task}
        return self.front.reply("task.changed", task)

    async def delete_task(self, request: web.Request) -> web.StreamResponse:
        del self.state.tasks[self.front.take(self.state.tasks, request)["id"]]
        return web.Response(status=204)

    async def start_task(self, request: web.Request) -> web.StreamResponse:
        task = self.front.take(self.state.tasks, request)
        task["enabled"] = True
        run = {"id": mint("run"), "task_id": task["id"], "session_id": mint("sess"), "status": "running", "error": None}
        self.state.runs.setdefault(task["id"], []).append(run | {"triggered_at": now(), "finished_at": None})
        return self.front.reply("task.started", task)

    async def stop_task(self, request: web.Request) -> web.StreamResponse:
        task = self.front.take(self.state.tasks, request)
        task["enabled"] = False
        return self.front.reply("task.stopped", task)

    async def get_runs(self, request: web.Request) -> web.StreamResponse:
        runs = self.state.runs.get(self.front.take(self.state.tasks, request)["id"], [])
        return self.front.reply("runs", [self.writer.shown("run", dict(run)) for run in runs])

    async def get_calendar(self, request: web.Request) -> web.StreamResponse:
        begin, end = (datetime.fromisoformat(request.query[name]) for name in ("from", "to"))
        named = [{"task_id": task["id"], "title": task["title"]} for task in self.state.tasks.values()]
        dates = [{"occurrences": due(task, begin, end)} for task in self.state.tasks.values()]
        return self.front.reply("calendar", [name | date for name, date in zip(named, dates, strict=True)])


def due(task: Body, begin: datetime, end: datetime) -> list[str]:
    """When a task of plain numbers and stars is due."""
    zone = ZoneInfo(task["timezone"])
    minutes = (begin + timedelta(minutes=place) for place in range(int((end - begin).total_seconds() // 60)))
    return [at.strftime("%Y-%m-%dT%H:%M:%SZ") for at in minutes if _fits(task["cron"].split(), at.astimezone(zone))]


def _fits(cron: list[str], at: datetime) -> bool:
    now: list[Any] = [at.minute, at.hour, at.day, at.month, at.isoweekday() % 7]
    return all(field == "*" or field == str(value) for field, value in zip(cron, now, strict=True))
