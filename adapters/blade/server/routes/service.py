"""Blade's handlers about the server, the user, and private data of a session."""

from importlib.metadata import version
from typing import Any

from aiohttp import web

import gateway.model as m
from adapters.blade.server import views
from adapters.blade.server.history import update_private
from adapters.blade.wire import BladeSettings, ExtraInfo
from gateway.errors import TooLarge
from gateway.http import OWNER, Answers, Context, Row, json_response, public, read_bytes, read_json

MIN_SDK = "0.4.0"
MAX_EXTRA_BYTES = 256 * 1024


def service_routes(context: Context[BladeSettings]) -> list[web.RouteDef]:
    about, at = ServiceRoutes(context), context.mount
    return [
        web.get(f"{at}/version", about.version),
        web.get(f"{at}/config", about.config),
        web.get(f"{at}/config/models", about.models),
        web.get(f"{at}/auth/me", about.me),
        web.post(f"{at}/sessions/{{id}}/upset_extra_info", about.keep_extra),
        web.get(f"{at}/sessions/{{id}}/extra_info", about.extra),
    ]


class ServiceRoutes:
    """The routes of the service itself, one method each."""

    def __init__(self, context: Context[BladeSettings]) -> None:
        self.context = context
        self.began = context.clock()

    @public
    @Answers("version")
    async def version(self, request: web.Request) -> web.Response:
        return json_response(self.context.table.object("version", version=version("dragoman"), min_sdk=MIN_SDK))

    @Answers("config")
    async def config(self, request: web.Request) -> web.Response:
        default = next(iter(self._models()))
        return json_response(self.context.table.object("config", version=version("dragoman"), model=default))

    @Answers(Row("models", models=["model"]))
    async def models(self, request: web.Request) -> web.Response:
        models = self._models()
        listed = [self.context.table.object("model", id=model, name=name) for model, name in models.items()]
        return json_response(self.context.table.object("models", default=next(iter(models)), models=listed))

    def _models(self) -> dict[str, str]:
        """The models of the agents, the default agent's first."""
        cards = sorted(self.context.agents.values(), key=lambda card: card.name != self.context.settings.agent)
        models: dict[str, str] = {}
        for card in cards:
            models.setdefault(card.model or card.name, card.title or card.name)
        return models

    @Answers("me")
    async def me(self, request: web.Request) -> web.Response:
        owner = request[OWNER]
        keys = await self.context.keys.of(owner) if self.context.keys else ()
        since = min((key.created.timestamp() for key in keys), default=self.began)
        return json_response(self.context.table.object(
            "me", id=views.user_id_of(owner), name=owner or "local", created_at=since,
        ))

    # -- what a client keeps beside a session ---------------------------------------------------------------------

    @Answers("extra", reads=ExtraInfo)
    async def keep_extra(self, request: web.Request) -> web.Response:
        if len(await read_bytes(request)) > MAX_EXTRA_BYTES:
            raise TooLarge(f"extra: has more than {MAX_EXTRA_BYTES} bytes", param="extra")
        body = await read_json(request, ExtraInfo)
        view = await self.context.sessions.get(request[OWNER], request.match_info["id"])
        now, old = self.context.clock(), _extra_info(view, self.context.dialect)
        kept = {"extra": body.extra, "created_at": old.get("created_at", now), "updated_at": now}
        view = await update_private(self.context, view.owner, view.session_id, extra_info=kept)
        return json_response(self._shown(view))

    @Answers("extra")
    async def extra(self, request: web.Request) -> web.Response:
        return json_response(self._shown(await self.context.sessions.get(request[OWNER], request.match_info["id"])))

    def _shown(self, view: m.SessionView) -> object:
        kept = _extra_info(view, self.context.dialect)
        return self.context.table.object(
            "extra", session_id=view.session_id, extra=kept.get("extra"), created_at=kept.get("created_at"),
            updated_at=kept.get("updated_at"),
        )


def _extra_info(view: m.SessionView, dialect: str) -> dict[str, object]:
    found: dict[str, Any] = view.private(dialect).get("extra_info", {})
    return found
