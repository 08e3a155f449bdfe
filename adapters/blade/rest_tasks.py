"""Blade's scheduled tasks: what an agent is asked, and when, whether or not anybody is there."""

from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from gateway.errors import Invalid
from gateway.resources import Schedules, Task
from gateway.web import OWNER, Context, read_as, reply

from . import rest_views as views
from .rest_wire import NewTask, TaskChange

WEEK = 7 * 86_400.0


def task_routes(context: Context) -> list[web.RouteDef]:
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
    """One method per route."""

    def __init__(self, context: Context) -> None:
        self.house = context
        self.schedules = Schedules(context.resources, context.clock)

    async def create(self, request: web.Request) -> web.Response:
        said = await read_as(request, NewTask)
        agent = self.house.settings.agent or next(iter(self.house.agents))
        kept = await self.schedules.add(request[OWNER], Task(
            title=said.title, prompt=said.prompt, cron=said.cron, timezone=said.timezone, agent=agent,
            enabled=said.enabled, unattended=said.skip_confirmations, model=said.model,
            expires_at=_moment(said.expires_at, "expires_at"),
        ))
        return reply(views.task(self.house.table, kept), 201)

    async def listed(self, request: web.Request) -> web.Response:
        return reply([views.task(self.house.table, kept) for kept in await self.schedules.of(request[OWNER])])

    async def get(self, request: web.Request) -> web.Response:
        kept = await self.schedules.find(request[OWNER], request.match_info["id"])
        return reply(views.task(self.house.table, kept))

    async def change(self, request: web.Request) -> web.Response:
        return await self._change(request, **_changes(await read_as(request, TaskChange)))

    async def start(self, request: web.Request) -> web.Response:
        return await self._change(request, enabled=True)

    async def stop(self, request: web.Request) -> web.Response:
        return await self._change(request, enabled=False)

    async def delete(self, request: web.Request) -> web.Response:
        await self.schedules.remove(request[OWNER], request.match_info["id"])
        return web.Response(status=204)

    async def calendar(self, request: web.Request) -> web.Response:
        start = _moment(request.query.get("from"), "from") or self.house.clock()
        end = _moment(request.query.get("to"), "to") or start + WEEK
        found = await self.schedules.calendar(request[OWNER], start, end)
        return reply([views.due(self.house.table, kept, times) for kept, times in found])

    async def runs(self, request: web.Request) -> web.Response:
        found = await self.schedules.runs(request[OWNER], request.match_info["id"])
        return reply([views.run(self.house.table, run) for run in found])

    async def _change(self, request: web.Request, **changes: Any) -> web.Response:
        kept = await self.schedules.change(request[OWNER], request.match_info["id"], **changes)
        return reply(views.task(self.house.table, kept))


def _changes(said: TaskChange) -> dict[str, Any]:
    """What was said, in the house's words; null takes away what can be missing, and says nothing of the rest."""
    changes = {name: getattr(said, name) for name in said.model_fields_set - {"anonymous"}}
    changes = {name: value for name, value in changes.items() if value is not None or name in ("expires_at", "model")}
    if "skip_confirmations" in changes:
        changes["unattended"] = changes.pop("skip_confirmations")
    if "expires_at" in changes:
        changes["expires_at"] = _moment(said.expires_at, "expires_at")
    return changes


def _moment(said: str | None, field: str) -> float | None:
    """A time as `2026-01-01T00:00:00Z`; without a zone it is UTC's."""
    if said is None:
        return None
    try:
        found = datetime.fromisoformat(said)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        raise Invalid(f"{field}: '{said[:40]}' is no time such as 2026-01-01T00:00:00Z", param=field) from None
