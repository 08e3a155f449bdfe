"""Tasks over HTTP: background jobs by name, and the scheduled tasks that every dialect has."""


from aiohttp import web

import gateway.model as m
from adapters.zenflux import wire
from adapters.zenflux.bodies import ScheduledTaskBody, TaskBody, TaskJobBody, TaskRunBody, spell
from adapters.zenflux.server import views
from adapters.zenflux.server.chat_service import ChatService, conversation_errors
from adapters.zenflux.wire import TaskBatch, TaskStart, ZenfluxSettings, bool_param
from gateway.errors import Invalid, NotFound, Unsupported
from gateway.http import OWNER, Answers, Context, read_json
from gateway.json_values import JsonValue
from gateway.resources import Schedules, StoredRun, StoredTask

from .memories import NO_EXTRACTOR

TITLES, MEMORIES = "title_generation", "mem0_update"
JOBS = {
    TITLES: ("Give a conversation without a title the first words of its first message as a title.", None),
    MEMORIES: ("Search conversations for memories.", "0 2 * * *"),
}
"""The background jobs: what each does, and its usual timetable if it can be scheduled."""
WAIT_SECONDS = 60.0
"""For how long a client may wait for the end of a run."""
ACTIVE, PAUSED, COMPLETED = "active", "paused", "completed"


class TaskNotFound(NotFound):
    """The client named a task that is not there."""

    usual_reason = m.FaultReason.TASK_NOT_FOUND


class BackgroundTaskRoutes:
    """The routes of background tasks, one method each."""

    def __init__(self, context: Context[ZenfluxSettings]) -> None:
        self.context = context
        self.schedules = Schedules(context.resources, context.clock)
        self.chats = ChatService(context)

    @Answers(views.wrapped({"tasks": ["task"], "total": int}), query={"scheduled_only": bool})
    async def listed(self, request: web.Request) -> web.Response:
        shown = await self._all(request[OWNER], scheduled_only=bool_param(request, "scheduled_only", default=False))
        return views.reply(self.context, {"tasks": shown, "total": len(shown)})

    @Answers(views.wrapped("task"))
    async def get(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name in JOBS:
            return views.reply(self.context, self._job(name))
        return views.reply(self.context, self._scheduled(await self._found(request[OWNER], name)))

    @Answers(views.wrapped({"tasks": ["task"], "total": int, "hint": str}))
    async def config(self, request: web.Request) -> web.Response:
        shown = await self._all(request[OWNER], scheduled_only=True)
        hint = "make and change scheduled tasks at /scheduled-tasks, or in a dialect that has them"
        return views.reply(self.context, {"tasks": shown, "total": len(shown), "hint": hint})

    @Answers(views.wrapped({"running": bool, "jobs": ["task.job"], "total_jobs": int}))
    async def status(self, request: web.Request) -> web.Response:
        now = self.context.clock()
        jobs = [
            spell(self.context.table, TaskJobBody(
                id=kept.task_id, title=kept.task.title, next_at=kept.task.timetable.next_after(now),
                cron=kept.task.cron))
            for kept in await self.schedules.of(request[OWNER])
            if kept.task.enabled and not kept.task.expired(now)
        ]
        running = self.context.tasks is not None and self.context.tasks.is_running
        return views.reply(self.context, {"running": running, "jobs": jobs, "total_jobs": len(jobs)})

    @Answers(views.wrapped("task.run"), reads=TaskStart)
    async def start(self, request: web.Request) -> web.Response:
        body, name, owner = await read_json(request, TaskStart), request.match_info["name"], request[OWNER]
        if name in JOBS:
            return views.reply(self.context, await self._job_run(owner, name, body))
        task = await self._found(owner, name)
        return views.reply(self.context, await self._run(owner, task, wait=body.wait))

    @Answers(views.wrapped("task.run"), reads=TaskBatch)
    async def batch(self, request: web.Request) -> web.Response:
        await read_json(request, TaskBatch)
        name = request.match_info["name"]
        if name not in JOBS:
            await self._found(request[OWNER], name)
            raise Invalid(f"task '{name}' is a scheduled task: run it by itself", param="name")
        if JOBS[name][1] is None:
            raise Invalid(f"task '{name}' works on one conversation: name it in {name}/run", param="name")
        result: JsonValue = {
            "total_users": 1, "successful": 1, "failed": 0, "total_memories_added": 0, "message": NO_EXTRACTOR,
        }
        return views.reply(self.context, self._done(name, "scheduled", result))

    # -- background jobs ------------------------------------------------------------------------------------------

    async def _job_run(self, owner: str, name: str, body: TaskStart) -> object:
        if name == MEMORIES:
            return self._done(name, "manual", {"memories_added": 0, "message": NO_EXTRACTOR})
        if not body.conversation_id:
            raise Invalid(f"conversation_id: task '{name}' needs a conversation", param="conversation_id")
        with conversation_errors(body.conversation_id):
            view = await self.context.sessions.get(owner, body.conversation_id)
            title = view.title or self.chats.title_of(view)
            if title is not None and view.title is None:
                await self.context.sessions.update(owner, view.session_id, title=title)
        return self._done(name, "manual", {"conversation_id": view.session_id, "title": title})

    def _done(self, name: str, trigger: str, result: JsonValue) -> JsonValue:
        now = self.context.clock()
        return spell(self.context.table, TaskRunBody(
            name=name, status="completed", trigger=trigger, started_at=now, finished_at=now, error=None,
            result=result, milliseconds=0))

    # -- scheduled tasks ------------------------------------------------------------------------------------------

    async def _run(self, owner: str, task: StoredTask, *, wait: bool) -> JsonValue:
        """Start a task; the run as it has begun or, if the client waits, as it has ended."""
        if self.context.tasks is None:
            raise Unsupported("this server starts no tasks")
        await self.context.tasks.start_now(owner, task.task_id)
        if wait:
            await self.context.tasks.wait_until_ended(task.task_id, WAIT_SECONDS)
        [run] = await self.schedules.runs(owner, task.task_id, 1)
        return self._run_body(run)

    def _run_body(self, kept: StoredRun) -> JsonValue:
        run = kept.run
        took = None if run.finished_at is None else round((run.finished_at - run.triggered_at) * 1000)
        result: JsonValue = {"conversation_id": run.session_id, "session_id": run.turn_id} if run.session_id else None
        return spell(self.context.table, TaskRunBody(
            name=run.task_id, status=run.status, trigger="manual", started_at=run.triggered_at,
            finished_at=run.finished_at, error=run.error, result=result, milliseconds=took))

    async def _found(self, owner: str, name: str) -> StoredTask:
        try:
            return await self.schedules.find(owner, name)
        except NotFound:
            raise TaskNotFound(f"there is no task '{name[:128]}'") from None

    # -- what is shown --------------------------------------------------------------------------------------------

    async def _all(self, owner: str, *, scheduled_only: bool) -> list[JsonValue]:
        jobs = [self._job(name) for name, (_, cron) in JOBS.items() if cron is not None or not scheduled_only]
        return [*jobs, *(self._scheduled(kept) for kept in await self.schedules.of(owner))]

    def _job(self, name: str) -> JsonValue:
        description, cron = JOBS[name]
        schedule: JsonValue = None if cron is None else {"default_cron": cron, "description": description}
        return spell(self.context.table, TaskBody(
            name=name, description=description, scheduled=cron is not None, schedule=schedule))

    def _scheduled(self, kept: StoredTask) -> JsonValue:
        task = kept.task
        schedule: JsonValue = {"cron": task.cron, "timezone": task.timezone, "enabled": task.enabled}
        return spell(self.context.table, TaskBody(
            name=kept.task_id, description=task.title, scheduled=True, schedule=schedule))


def routes_of_tasks(context: Context[ZenfluxSettings]) -> list[web.RouteDef]:
    routes, at = BackgroundTaskRoutes(context), f"{context.mount}/tasks"
    return [
        web.get(at, routes.listed),
        web.get(f"{at}/scheduled/config", routes.config),
        web.get(f"{at}/scheduled/status", routes.status),
        web.get(f"{at}/{{name}}", routes.get),
        web.post(f"{at}/{{name}}/run", routes.start),
        web.post(f"{at}/{{name}}/batch", routes.batch),
    ]


class TaskRoutes:
    """The routes of scheduled tasks, one method each."""

    def __init__(self, context: Context[ZenfluxSettings]) -> None:
        self.context = context
        self.schedules = Schedules(context.resources, context.clock)

    @Answers(
        views.wrapped({"tasks": ["scheduled_task"], "total": int, "page": int, "page_size": int}),
        query={"page": int, "page_size": int},
    )
    async def listed(self, request: web.Request) -> web.Response:
        page, size = (
            wire.whole_number_param(request, "page", 1, 1, 10**6),
            wire.whole_number_param(request, "page_size", 20, 1, 100),
        )
        kept = await self.schedules.of(request[OWNER])
        shown = [await self._shown(one) for one in kept[(page - 1) * size:page * size]]
        return views.reply(self.context, {"tasks": shown, "total": len(kept), "page": page, "page_size": size})

    @Answers(views.wrapped("scheduled_task"))
    async def get(self, request: web.Request) -> web.Response:
        kept = await self.schedules.find(request[OWNER], request.match_info["id"])
        return views.reply(self.context, await self._shown(kept))

    @Answers(views.wrapped("scheduled_task"))
    async def resume(self, request: web.Request) -> web.Response:
        return await self._enable(request, enabled=True)

    @Answers(views.wrapped("scheduled_task"))
    async def pause(self, request: web.Request) -> web.Response:
        """To cancel a task is to pause it; only DELETE takes it away."""
        return await self._enable(request, enabled=False)

    @Answers(views.wrapped({"deleted": bool}))
    async def delete(self, request: web.Request) -> web.Response:
        await self.schedules.remove(request[OWNER], request.match_info["id"])
        return views.reply(self.context, {"deleted": True})

    async def _enable(self, request: web.Request, *, enabled: bool) -> web.Response:
        kept = await self.schedules.change(request[OWNER], request.match_info["id"], enabled=enabled)
        return views.reply(self.context, await self._shown(kept))

    async def _shown(self, kept: StoredTask) -> object:
        task, now = kept.task, self.context.clock()
        runs = await self.schedules.runs(kept.owner, kept.task_id)
        last = runs[0].run if runs else None
        status = COMPLETED if task.expired(now) else ACTIVE if task.enabled else PAUSED
        return spell(self.context.table, ScheduledTaskBody(
            id=kept.task_id, user_id=kept.owner, title=task.title, prompt=task.prompt,
            cron=task.cron, status=status, since=task.since, count=len(runs),
            next_at=task.timetable.next_after(now) if status == ACTIVE else None,
            last_at=last.triggered_at if last else None, session_id=last.session_id if last else None,
        ))
