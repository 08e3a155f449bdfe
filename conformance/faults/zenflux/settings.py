"""Settings of the ZenFlux reference server: groups of named texts, some of them secret."""

import re
from typing import Any

from aiohttp import web

from conformance.faults.zenflux.front import Front
from conformance.faults.zenflux.state import Body, Refusal, State

MASK = "***"
LOOKS_MASKED = re.compile(r"\*\*\*|.{0,8}\.\.\..{0,8}")
MODELS = ("reference", "small")
SCHEMA: dict[str, dict[str, Body]] = {
    "llm": {
        "COT_AGENT_MODEL": {
            "label": "Model",
            "required": False,
            "secret": False,
            "default": "reference",
            "type": "select",
            "options": [{"value": name, "label": name.title()} for name in MODELS],
        }
    },
    "reference": {
        "tone": {"label": "Tone", "required": False, "secret": False, "default": "plain", "type": "text"},
        "token": {"label": "Token", "required": True, "secret": True, "default": "", "type": "text"},
    },
}


class Settings:
    """Answers requests below /settings."""

    def __init__(self, state: State, front: Front) -> None:
        self.state = state
        self.front = front

    async def get_settings(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply(self.shown_settings())

    async def put_settings(self, request: web.Request) -> web.StreamResponse:
        self.change_settings(self.check_settings(await self.front.read(request)))
        return self.front.reply(self.changed_settings())

    async def get_settings_status(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply(self.settings_status())

    async def get_settings_schema(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply(self.settings_schema())

    def settings_schema(self) -> dict[str, dict[str, Body]]:
        return SCHEMA

    def setting(self, group: str, key: str) -> str:
        """A value as it is used."""
        return self.state.settings.get((group, key), str(SCHEMA[group][key]["default"]))

    def shown_setting(self, group: str, key: str) -> str:
        """A value as it may be seen."""
        value = self.setting(group, key)
        return MASK if value and SCHEMA[group][key]["secret"] else value

    def shown_settings(self) -> Body:
        return {group: {key: self.shown_setting(group, key) for key in keys} for group, keys in SCHEMA.items()}

    def changed_settings(self) -> Body:
        """The settings as after a change."""
        return self.shown_settings()

    def check_settings(self, body: Body) -> Body:
        """The body, if it is groups of texts, each of which may be the value of its setting."""
        for group, keys in body.items():
            if not isinstance(keys, dict):
                raise Refusal(400, "VALIDATION_ERROR", f"{group} must be an object.")
            for key, value in keys.items():
                self.check_setting(group, key, value)
        return body

    def check_setting(self, group: str, key: str, value: Any) -> None:
        if not isinstance(value, str):
            raise Refusal(400, "VALIDATION_ERROR", f"{group}.{key} must be a text.")
        if value and value not in self.choices(group, key, value):
            raise Refusal(400, "VALIDATION_ERROR", f"{group}.{key} must be one of its options.")

    def choices(self, group: str, key: str, value: str) -> list[str]:
        """What a setting may be; a text may be anything."""
        options = SCHEMA.get(group, {}).get(key, {}).get("options")
        return [value] if options is None or self.is_mask(value) else [str(option["value"]) for option in options]

    def change_settings(self, body: Body) -> None:
        """Change what is known and not a mask."""
        for group, keys in body.items():
            for key, value in keys.items():
                if key in SCHEMA.get(group, {}) and not self.is_mask(value):
                    self.set_setting(group, key, value)

    def set_setting(self, group: str, key: str, value: str) -> None:
        """Keep a value; an empty one removes what was kept."""
        self.state.settings.pop((group, key), None)
        if value:
            self.state.settings[group, key] = value

    def is_mask(self, value: str) -> bool:
        return LOOKS_MASKED.fullmatch(value) is not None

    def settings_status(self) -> Body:
        required = [(group, key) for group, keys in SCHEMA.items() for key in keys if SCHEMA[group][key]["required"]]
        missing = [f"{group}.{key}" for group, key in required if not self.setting(group, key)]
        summary = {group: {"configured": self.configured(group), "total": len(keys)} for group, keys in SCHEMA.items()}
        return {"configured": not missing, "missing": missing, "configured_providers": [], "summary": summary}

    def configured(self, group: str) -> int:
        return len([key for key in SCHEMA[group] if self.setting(group, key)])

    def setting_routes(self) -> list[web.RouteDef]:
        return [
            web.get("/settings", self.get_settings),
            web.put("/settings", self.put_settings),
            web.get("/settings/status", self.get_settings_status),
            web.get("/settings/schema", self.get_settings_schema),
        ]
