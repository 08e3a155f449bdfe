"""Blade's handlers for what is counted: tokens of texts, the context of a session, its plan and its sub-agents."""

import orjson
from aiohttp import web

import gateway.model as m
from adapters.blade.server.history import record_pages, turns_of
from adapters.blade.server.session_statistics import (
    PER_MESSAGE,
    context_statistics,
    estimate_tokens,
    output_lines,
    plan_steps,
)
from adapters.blade.server.turn_state import CONTEXT_WINDOW, TurnEntry, make_loop
from adapters.blade.wire import BladeSettings, MessagesToCount, PromptToCount, TailQuery
from gateway.errors import NotFound
from gateway.http import OWNER, Context, json_response, read_json, validate
from gateway.json_values import JsonValue
from gateway.time_slices import one_at_a_time


def statistics_routes(context: Context[BladeSettings]) -> list[web.RouteDef]:
    counts, at, session = StatisticsRoutes(context), f"{context.mount}/sessions", f"{context.mount}/sessions/{{id}}"
    return [
        web.post(f"{at}/tokenize/prompt", counts.prompt),
        web.post(f"{at}/tokenize/messages", counts.messages),
        web.get(f"{session}/context-stats", counts.context_stats),
        web.get(f"{session}/tasks", counts.tasks),
        web.get(f"{session}/background-tasks", counts.background_tasks),
        web.get(f"{session}/background-tasks/{{task}}", counts.background_task),
    ]


class StatisticsRoutes:
    """One method per route. A background task is a sub-agent, under the id of its loop."""

    def __init__(self, context: Context[BladeSettings]) -> None:
        self.context = context

    async def prompt(self, request: web.Request) -> web.Response:
        said = await read_json(request, PromptToCount)
        return json_response(self.context.table.object(
            "tokens", count=estimate_tokens(said.prompt), window=CONTEXT_WINDOW, model=said.model))

    async def messages(self, request: web.Request) -> web.Response:
        said = await read_json(request, MessagesToCount)
        counts = [PER_MESSAGE + estimate_tokens(_text(one.content)) for one in said.messages]
        tools = estimate_tokens(_text(said.tools)) if said.tools else 0
        opened = PER_MESSAGE if said.add_generation_prompt else 0
        shown = [self.context.table.object("tokens.message", role=one.role, count=count)
                 for one, count in zip(said.messages, counts, strict=True)]
        return json_response(self.context.table.object(
            "tokens.messages", count=sum(counts) + tools + opened, window=CONTEXT_WINDOW, model=said.model,
            messages=shown, tools=tools))

    async def context_stats(self, request: web.Request) -> web.Response:
        view = await self._view(request)
        found, card = context_statistics(await self._turns(view)), self.context.agents.get(view.agent)
        return json_response(self.context.table.object(
            "context.statistics", session_id=view.session_id, statistics=found,
            model=view.settings.model or (card.model if card else None)))

    async def tasks(self, request: web.Request) -> web.Response:
        """The steps of the newest plan."""
        return json_response([
            self.context.table.object("plan.step", step=dict(step))
            for step in plan_steps(await self._turns(await self._view(request)))])

    async def background_tasks(self, request: web.Request) -> web.Response:
        view = await self._view(request)
        return json_response([self._shown(scope) for scope in view.scopes.values()])

    async def background_task(self, request: web.Request) -> web.Response:
        """What a sub-agent has written, its last lines."""
        tail = validate(TailQuery, dict(request.query)).tail
        view, named = await self._view(request), request.match_info["task"]
        for scope in view.scopes.values():
            if loop_id(scope) == named:
                lines = output_lines(await self._turns(view), scope.scope_id)
                return json_response(self.context.table.object(
                    "background.output", task=self._shown(scope), output="\n".join(lines[-tail:]),
                    cut=max(0, len(lines) - tail)))
        raise NotFound(f"session '{view.session_id}' has no background task '{named[:64]}'")

    def _shown(self, scope: m.ScopeView) -> object:
        return self.context.table.object(
            "background.task", id=loop_id(scope), name=scope.title or scope.agent or scope.scope_id,
            status=scope.status, created_at=scope.created_at, updated_at=scope.updated_at)

    async def _view(self, request: web.Request) -> m.SessionView:
        return await self.context.sessions.get(request[OWNER], request.match_info["id"])

    async def _turns(self, view: m.SessionView) -> list[TurnEntry]:
        async with one_at_a_time(view.owner):
            return await turns_of(record_pages(self.context, view.owner, view.session_id))


def loop_id(scope: m.ScopeView) -> str:
    return make_loop(scope.scope_id, scope.parent, None, scope.title).loop_id


def _text(content: JsonValue) -> str:
    return content if isinstance(content, str) else orjson.dumps(content).decode()
