"""Settings over HTTP: the user's standing choices, in groups of named values; secrets are never shown."""

import re
from typing import Any

from aiohttp import web
from msgspec import Struct

import gateway.model as m
from adapters.zenflux.server import views
from adapters.zenflux.wire import ZenfluxSettings
from gateway.errors import Invalid
from gateway.field_errors import quote_value
from gateway.http import OWNER, Answers, Context, read_json_object
from gateway.json_values import JsonObject
from gateway.resources import UserChoices, UserSettings, model_of, models_of

LLM_GROUP, MODEL_KEY = "llm", "COT_AGENT_MODEL"
MASK = "***"
MASKED = re.compile(r"\*{3,}|.{1,8}\.{3}.{1,8}")
"""What clients send back for a secret that they have not changed."""
MASK_LENGTH = 20

Groups = dict[str, dict[str, str]]


class SettingChoice(Struct, kw_only=True):
    value: str
    label: str


class SettingSchema(Struct, kw_only=True, omit_defaults=True):
    """How a page asks for a setting."""

    label: str
    required: bool
    secret: bool
    default: str
    type: str
    options: list[SettingChoice] = []
    description: str = ""


class SettingsRoutes:
    """The routes of settings. The group `llm` has the default model; each agent with options is a group of its own."""

    def __init__(self, context: Context[ZenfluxSettings]) -> None:
        self.context = context
        self.settings = UserSettings(context.resources, lambda: context.agents)

    @Answers(views.wrapped(Groups))
    async def get(self, request: web.Request) -> web.Response:
        return views.reply(self.context, self._shown(await self.settings.get(request[OWNER])))

    @Answers(views.wrapped(Groups), reads=Groups)
    async def put(self, request: web.Request) -> web.Response:
        """Change the settings that the body names; unknown groups, unknown keys and masked secrets are ignored."""
        owner, groups = request[OWNER], _groups(await read_json_object(request))
        changed = {
            group: {key: value for key, value in values.items() if not is_mask(value)}
            for group, values in groups.items()
        }
        model = changed.pop(LLM_GROUP, {}).get(MODEL_KEY)
        return views.reply(self.context, self._shown(await self.settings.change(owner, model=model, options=changed)))

    @Answers(
        views.wrapped({
            "configured": bool, "missing": [str], "configured_providers": [str], "summary": dict[str, dict[str, int]],
        }),
    )
    async def status(self, request: web.Request) -> web.Response:
        """Say which secret options have no value yet; all other options have one."""
        shown = self._shown(await self.settings.get(request[OWNER]))
        missing = [
            f"{card.name}.{option.name}" for card in self._cards() for option in card.options
            if option.kind is m.OptionKind.SECRET and not shown[card.name][option.name]
        ]
        summary = {
            group: {"configured": sum(bool(value) for value in values.values()), "total": len(values)}
            for group, values in shown.items()
        }
        return views.reply(self.context, {
            "configured": not missing, "missing": missing, "configured_providers": [], "summary": summary})

    @Answers(views.wrapped(dict[str, dict[str, SettingSchema]]))
    async def schema(self, request: web.Request) -> web.Response:
        models = [
            {"value": name, "label": card.title or card.name}
            for name, card in models_of(self.context.agents.values()).items()
        ]
        llm = {MODEL_KEY: {
            "label": "Model", "required": False, "secret": False, "default": self._default_model(), "type": "select",
            "options": models,
        }}
        agents = {card.name: {option.name: _described(option) for option in card.options} for card in self._cards()}
        return views.reply(self.context, {LLM_GROUP: llm, **agents})

    def _shown(self, chosen: UserChoices) -> Groups:
        shown: Groups = {LLM_GROUP: {MODEL_KEY: chosen.model or self._default_model()}}
        for card in self._cards():
            options, secrets = chosen.options.get(card.name, {}), chosen.secrets.get(card.name, {})
            shown[card.name] = {
                option.name: (MASK if secrets.get(option.name) or option.default else "")
                if option.kind is m.OptionKind.SECRET else options.get(option.name, option.default)
                for option in card.options
            }
        return shown

    def _cards(self) -> list[m.AgentCard]:
        """The agents that have options; an agent with the name of the group `llm` is left out."""
        return [card for card in self.context.agents.values() if card.options and card.name != LLM_GROUP]

    def _default_model(self) -> str:
        return model_of(next(iter(self.context.agents.values())))


def is_mask(value: str) -> bool:
    return len(value) < MASK_LENGTH and MASKED.fullmatch(value) is not None


def _groups(body: dict[str, Any]) -> Groups:
    """The groups of a body; raises if a group is no object, or a value no string."""
    for group, values in body.items():
        if not isinstance(values, dict):
            raise Invalid(f"{group}: must be an object, not {quote_value(values)}", param=group)
        for key, value in values.items():
            if not isinstance(value, str):
                raise Invalid(f"{group}.{key}: must be a string, not {quote_value(value, key)}", param=f"{group}.{key}")
    return body


def _described(option: m.AgentOption) -> JsonObject:
    secret = option.kind is m.OptionKind.SECRET
    described: JsonObject = {
        "label": option.title or option.name, "required": False, "secret": secret,
        "default": "" if secret else option.default,
        "type": "select" if option.kind is m.OptionKind.SELECT else "text",
    }
    if option.kind is m.OptionKind.SELECT:
        described["options"] = [{"value": choice, "label": choice} for choice in option.choices]
    return described | ({"description": option.description} if option.description else {})


def routes_of_settings(context: Context[ZenfluxSettings]) -> list[web.RouteDef]:
    routes, at = SettingsRoutes(context), f"{context.mount}/settings"
    return [
        web.get(at, routes.get),
        web.put(at, routes.put),
        web.get(f"{at}/status", routes.status),
        web.get(f"{at}/schema", routes.schema),
    ]
