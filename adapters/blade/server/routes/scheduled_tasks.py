"""Blade's scheduled tasks: prompts that an agent gets at certain times."""


from aiohttp import web

from adapters.blade.server import views
from adapters.blade.wire import BladeSettings, NewTask, TaskChange
from gateway.client import parse_timestamp
from gateway.errors import Invalid
from gateway.http import OWNER, Answers, Context, Row, json_response, read_json
from gateway.json_values import JsonObject, JsonValue
from gateway.resources import ScheduledTask, Schedules

WEEK = 7 * 86_400.0


def task_routes(context: Context[BladeSettings]) -> list[web.RouteDef]:
    tasks, at = TaskRoutes(context), f"{context.mount}/scheduled-tasks"
    return [
        web.post(at, tasks.create),
        web.get(at, tasks.listed),
        web.get(f"{at}/calendar", tasks.calendar),
        web.get(f"{at}/{{id}}", tasks.get),
        web.patch(f"{at}/{{id}}", tasks.change),
        web.delete(f"{at}/{{id}}", tasks.delete),
        web.post(f"{at}/{{id}}/start", tasks.start),
        web.post(f"{at}/{{id}}/stop", tasks.stop),
        web.get(f"{at}/{{id}}/runs", tasks.runs),
    ]


class TaskRoutes:
    """The routes of scheduled tasks, one method each."""

    def __init__(self, context: Context[BladeSettings]) -> None:
        self.context = context
        self.schedules = Schedules(context.resources, context.clock)

    @Answers("task", status=201, reads=NewTask)
    async def create(self, request: web.Request) -> web.Response:
        body = await read_json(request, NewTask)
        agent = self.context.settings.agent or next(iter(self.context.agents))
        kept = await self.schedules.add(request[OWNER], ScheduledTask(
            title=body.title, prompt=body.prompt, cron=body.cron, timezone=body.timezone, agent=agent,
            enabled=body.enabled, unattended=body.skip_confirmations, model=body.model,
            expires_at=_read_time(body.expires_at, "expires_at"),
        ))
        return json_response(views.task_body(self.context.table, kept), 201)

    @Answers(["task"])
    async def listed(self, request: web.Request) -> web.Response:
        return json_response(
            [views.task_body(self.context.table, kept) for kept in await self.schedules.of(request[OWNER])]
        )

    @Answers("task")
    async def get(self, request: web.Request) -> web.Response:
        kept = await self.schedules.find(request[OWNER], request.match_info["id"])
        return json_response(views.task_body(self.context.table, kept))

    @Answers("task", reads=TaskChange)
    async def change(self, request: web.Request) -> web.Response:
        return await self._change(request, **_task_changes(await read_json(request, TaskChange)))

    @Answers("task")
    async def start(self, request: web.Request) -> web.Response:
        return await self._change(request, enabled=True)

    @Answers("task")
    async def stop(self, request: web.Request) -> web.Response:
        return await self._change(request, enabled=False)

    @Answers(status=204)
    async def delete(self, request: web.Request) -> web.Response:
        await self.schedules.remove(request[OWNER], request.match_info["id"])
        return web.Response(status=204)

    @Answers([Row("task.due", times=["task.time"])], query={"from": str, "to": str})
    async def calendar(self, request: web.Request) -> web.Response:
        start = _read_time(request.query.get("from"), "from") or self.context.clock()
        end = _read_time(request.query.get("to"), "to") or start + WEEK
        found = await self.schedules.calendar(request[OWNER], start, end)
        return json_response([views.due_body(self.context.table, kept, times) for kept, times in found])

    @Answers(["task.run"])
    async def runs(self, request: web.Request) -> web.Response:
        found = await self.schedules.runs(request[OWNER], request.match_info["id"])
        return json_response([views.task_run_body(self.context.table, run) for run in found])

    async def _change(self, request: web.Request, **changes: JsonValue) -> web.Response:
        kept = await self.schedules.change(request[OWNER], request.match_info["id"], **changes)
        return json_response(views.task_body(self.context.table, kept))


def _task_changes(body: TaskChange) -> JsonObject:
    """The fields that a client sent, under our names; null removes an optional field, and is ignored for others."""
    changes = {name: getattr(body, name) for name in body.model_fields_set - {"anonymous"}}
    changes = {name: value for name, value in changes.items() if value is not None or name in ("expires_at", "model")}
    if "skip_confirmations" in changes:
        changes["unattended"] = changes.pop("skip_confirmations")
    if "expires_at" in changes:
        changes["expires_at"] = _read_time(body.expires_at, "expires_at")
    return changes


def _read_time(text: str | None, field: str) -> float | None:
    """A time as `2026-01-01T00:00:00Z`; without a zone it is UTC's."""
    if text is None:
        return None
    at = parse_timestamp(text)
    if at is None:
        raise Invalid(f"{field}: '{text[:40]}' is no time such as 2026-01-01T00:00:00Z", param=field)
    return at
