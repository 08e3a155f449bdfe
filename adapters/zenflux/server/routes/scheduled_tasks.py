"""Scheduled tasks as the later front end reads them; other dialects make and change them."""


from aiohttp import web

from adapters.zenflux import wire
from adapters.zenflux.bodies import ScheduledTaskBody, spell
from adapters.zenflux.server import views
from adapters.zenflux.wire import ZenfluxSettings
from gateway.http import OWNER, Context
from gateway.resources import Schedules, StoredTask

ACTIVE, PAUSED, COMPLETED = "active", "paused", "completed"


class TaskRoutes:
    """One method per route."""

    def __init__(self, context: Context[ZenfluxSettings]) -> None:
        self.context = context
        self.schedules = Schedules(context.resources, context.clock)

    async def listed(self, request: web.Request) -> web.Response:
        page, size = (
            wire.whole_number_param(request, "page", 1, 1, 10**6),
            wire.whole_number_param(request, "page_size", 20, 1, 100),
        )
        kept = await self.schedules.of(request[OWNER])
        shown = [await self._shown(one) for one in kept[(page - 1) * size:page * size]]
        return views.reply(self.context, {"tasks": shown, "total": len(kept), "page": page, "page_size": size})

    async def get(self, request: web.Request) -> web.Response:
        kept = await self.schedules.find(request[OWNER], request.match_info["id"])
        return views.reply(self.context, await self._shown(kept))

    async def resume(self, request: web.Request) -> web.Response:
        return await self._enable(request, enabled=True)

    async def pause(self, request: web.Request) -> web.Response:
        """To cancel a task is to pause it; only DELETE takes it away."""
        return await self._enable(request, enabled=False)

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
