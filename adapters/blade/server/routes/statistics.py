"""Blade's handlers for what is counted: tokens of texts, the context of a session, its plan and its sub-agents."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import orjson
from aiohttp import web

import gateway.model as m
from adapters.blade.server.history import record_pages, turns_of
from adapters.blade.server.turn_state import CONTEXT_WINDOW, TurnEntry, make_loop
from adapters.blade.wire import BladeSettings, MessagesToCount, PromptToCount, TailQuery
from gateway.errors import NotFound
from gateway.http import OWNER, Answers, Context, Row, json_response, read_json, validate
from gateway.json_values import JsonValue
from gateway.time_slices import one_at_a_time

CHARACTERS_PER_TOKEN = 4
"""In texts of letters; of other scripts, such as Chinese, a character is counted as a token."""
PER_MESSAGE = 4
"""How many tokens separate one message from the next."""
ASCII = 128


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has: the gateway has no tokenizer, because each model has its own."""
    plain = sum(ord(sign) < ASCII for sign in text)
    return len(text) - plain + -(-plain // CHARACTERS_PER_TOKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextStatistics:
    """How full the context of a session is; `is_estimated` if the agent has reported no tokens."""

    window: int
    used: int
    is_estimated: bool
    turns: int
    compactions: int
    input_tokens: int
    output_tokens: int

    @property
    def free(self) -> int:
        return max(0, self.window - self.used)

    @property
    def ratio(self) -> float:
        return min(1.0, round(self.used / self.window, 4)) if self.window else 1.0


def context_statistics(turns: Sequence[TurnEntry]) -> ContextStatistics:
    """The statistics of the agent's own turns; the newest usage says how many tokens the model was given."""
    own = [turn for turn in turns if turn.scope_id == m.ROOT]
    counted = [turn.usage for turn in own if turn.usage is not None and turn.usage.input_tokens]
    last = next((turn for turn in reversed(own) if turn.role is m.Role.ASSISTANT), None)
    used = counted[-1].input_tokens + counted[-1].output_tokens if counted else sum(
        PER_MESSAGE + estimate_tokens(turn.text) for turn in own)
    return ContextStatistics(
        window=last.context_window if last else CONTEXT_WINDOW, used=used, is_estimated=not counted, turns=len(own),
        compactions=sum(turn.compaction is not None for turn in own),
        input_tokens=sum(usage.input_tokens for usage in counted),
        output_tokens=sum(usage.output_tokens for usage in counted),
    )


def plan_steps(turns: Iterable[TurnEntry]) -> list[Mapping[str, object]]:
    """The steps of the newest plan of the agent."""
    steps: list[Mapping[str, object]] = []
    for turn in turns:
        for block in turn.blocks:
            if block.type == PLAN and isinstance(block.content, Mapping):
                found = block.content.get("steps")
                steps = [step for step in found if isinstance(step, Mapping)] if isinstance(found, list) else []
    return steps


PLAN = "plan_status"


def output_lines(turns: Iterable[TurnEntry], scope_id: str) -> list[str]:
    """The lines that a sub-agent has written."""
    return [line for turn in turns if turn.scope_id == scope_id for line in turn.text.splitlines()]


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
    """The routes of statistics, one method each. A background task is a sub-agent, under the id of its loop."""

    def __init__(self, context: Context[BladeSettings]) -> None:
        self.context = context

    @Answers("tokens", reads=PromptToCount)
    async def prompt(self, request: web.Request) -> web.Response:
        body = await read_json(request, PromptToCount)
        return json_response(self.context.table.object(
            "tokens", count=estimate_tokens(body.prompt), window=CONTEXT_WINDOW, model=body.model))

    @Answers(Row("tokens.messages", messages=["tokens.message"]), reads=MessagesToCount)
    async def messages(self, request: web.Request) -> web.Response:
        body = await read_json(request, MessagesToCount)
        counts = [PER_MESSAGE + estimate_tokens(_text(one.content)) for one in body.messages]
        tools = estimate_tokens(_text(body.tools)) if body.tools else 0
        opened = PER_MESSAGE if body.add_generation_prompt else 0
        shown = [self.context.table.object("tokens.message", role=one.role, count=count)
                 for one, count in zip(body.messages, counts, strict=True)]
        return json_response(self.context.table.object(
            "tokens.messages", count=sum(counts) + tools + opened, window=CONTEXT_WINDOW, model=body.model,
            messages=shown, tools=tools))

    @Answers("context.statistics")
    async def context_stats(self, request: web.Request) -> web.Response:
        view = await self._view(request)
        found, card = context_statistics(await self._turns(view)), self.context.agents.get(view.agent)
        return json_response(self.context.table.object(
            "context.statistics", session_id=view.session_id, statistics=found,
            model=view.settings.model or (card.model if card else None)))

    @Answers(["plan.step"])
    async def tasks(self, request: web.Request) -> web.Response:
        """The steps of the newest plan."""
        return json_response([
            self.context.table.object("plan.step", step=dict(step))
            for step in plan_steps(await self._turns(await self._view(request)))])

    @Answers(["background.task"])
    async def background_tasks(self, request: web.Request) -> web.Response:
        view = await self._view(request)
        return json_response([self._shown(scope) for scope in view.scopes.values()])

    @Answers(Row("background.output", task="background.task"), query=TailQuery)
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
