"""Where ZenFlux's handlers hang."""

from collections.abc import Iterable

from aiohttp import web

from gateway.web import Context

from .about import About
from .confirmations import Confirmations
from .conversations import Conversations
from .runs import Runs
from .scheduled_tasks import ScheduledTasks
from .unbuilt import unbuilt


def routes(context: Context) -> Iterable[web.RouteDef]:
    at = context.mount
    return [
        *_of_runs(Runs(context), at),
        *_of_conversations(Conversations(context), at),
        *_of_confirmations(Confirmations(context), at),
        *_about(About(context), at),
        *_of_tasks(ScheduledTasks(context), f"{at}/scheduled-tasks"),
        *unbuilt(context),
    ]


def _of_runs(runs: Runs, at: str) -> list[web.RouteDef]:
    return [
        web.get(f"{at}/ws/chat", runs.socket),
        web.post(f"{at}/chat", runs.chat),
        web.get(f"{at}/sessions", runs.listed),
        web.get(f"{at}/session/{{id}}", runs.get),
        web.delete(f"{at}/session/{{id}}", runs.end),
        web.post(f"{at}/session/{{id}}/stop", runs.stop),
        web.post(f"{at}/session/{{id}}/confirm_continue", runs.confirm_continue),
        web.post(f"{at}/session/{{id}}/rollback", runs.rollback),
        web.get(f"{at}/session/{{id}}/rollback/preview", runs.preview),
    ]


def _of_conversations(conversations: Conversations, at: str) -> list[web.RouteDef]:
    return [
        web.post(f"{at}/conversations", conversations.create),
        web.get(f"{at}/conversations", conversations.listed),
        web.get(f"{at}/conversations/search", conversations.search),
        web.get(f"{at}/conversations/{{id}}", conversations.get),
        web.put(f"{at}/conversations/{{id}}", conversations.rename),
        web.delete(f"{at}/conversations/{{id}}", conversations.delete),
        web.get(f"{at}/conversations/{{id}}/messages", conversations.messages),
        web.post(f"{at}/conversations/{{id}}/preload", conversations.preload),
        web.get(f"{at}/conversations/{{id}}/summary", conversations.summary),
    ]


def _of_confirmations(confirmations: Confirmations, at: str) -> list[web.RouteDef]:
    return [
        web.get(f"{at}/human-confirmation/pending", confirmations.pending),
        web.get(f"{at}/human-confirmation/{{id}}", confirmations.get),
        web.post(f"{at}/human-confirmation/{{id}}", confirmations.respond),
        web.delete(f"{at}/human-confirmation/{{id}}", confirmations.cancel),
    ]


def _of_tasks(tasks: ScheduledTasks, at: str) -> list[web.RouteDef]:
    return [
        web.get(at, tasks.listed),
        web.get(f"{at}/{{id}}", tasks.get),
        web.delete(f"{at}/{{id}}", tasks.delete),
        web.post(f"{at}/{{id}}/resume", tasks.resume),
        web.post(f"{at}/{{id}}/pause", tasks.pause),
        web.post(f"{at}/{{id}}/cancel", tasks.pause),
    ]


def _about(about: About, at: str) -> list[web.RouteDef]:
    return [
        web.post(f"{at}/files/upload", about.upload),
        web.get(f"{at}/files/{{id}}", about.download),
        web.get(f"{at}/models", about.models),
        web.get(f"{at}/models/providers/supported", about.providers),
        web.get(f"{at}/settings/embedding-status", about.embedding_status),
        web.get("/health", about.health),
        web.get("/health/live", about.live),
        web.get("/health/metrics", about.metrics),
    ]
