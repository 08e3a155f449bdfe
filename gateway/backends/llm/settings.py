"""The settings that all model services share in config.yaml."""

from typing import Annotated, Self

import structlog
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, HttpUrl, PositiveFloat, PositiveInt, model_validator

import gateway.model as m
from gateway.backends.mcp import McpServerSettings
from gateway.backends.setting_types import SecretSetting
from gateway.backends.tools import CALC, CLOCK, SEARCH
from gateway.json_values import JsonObject
from gateway.ports import Timeouts

log = structlog.get_logger("dragoman.llm")
BUILTIN_SPECS = {spec.name: spec for spec in (CLOCK, CALC, SEARCH)}
RETRIES_REMOVED_IN = "0.3.0"
"""The first release that does not know `retries`."""


def _names_as_allowed(value: object) -> object:
    """A list of names allows these tools."""
    return dict.fromkeys(value, m.Permission.ALLOW) if isinstance(value, list) else value


def _check_builtin(value: object) -> object:
    for name in value if isinstance(value, dict) else ():
        if name not in BUILTIN_SPECS:
            raise ValueError(f"there is no built-in tool '{name}'; there are {', '.join(BUILTIN_SPECS)}")
    return value


class _StrictSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class LlmSettings(_StrictSettings):
    """The URL of the service, the model, its tools, and the timeouts."""

    url: HttpUrl
    key: SecretSetting | None = None
    headers: dict[str, SecretSetting] = {}
    model: str | None = None
    system: str | None = None
    max_steps: PositiveInt = 16
    max_tokens: PositiveInt | None = None
    first_byte_seconds: PositiveFloat = 120.0
    idle_seconds: PositiveFloat = 120.0
    total_seconds: PositiveFloat = 1800.0
    attempts: int = Field(default=3, ge=1, le=11)
    retries: int | None = Field(default=None, ge=0, le=10)
    tools: Annotated[dict[str, m.Permission], BeforeValidator(_check_builtin), BeforeValidator(_names_as_allowed)] = {}
    provider_tools: tuple[JsonObject, ...] = ()
    mcp: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,32}$")], McpServerSettings] = {}
    extra: JsonObject = {}

    @model_validator(mode="after")
    def _check_attempts(self) -> Self:
        """`retries` is an old setting: the attempts after the first one."""
        if self.retries is None:
            return self
        if "attempts" in self.model_fields_set:
            raise ValueError("'retries' is an old setting, and 'attempts' is set too; remove 'retries'")
        log.warning("setting_deprecated", setting="retries", use=f"attempts: {self.retries + 1}",
                    removed_in=RETRIES_REMOVED_IN)
        return self

    @property
    def patience(self) -> Timeouts:
        return Timeouts(
            first_byte=self.first_byte_seconds, idle=self.idle_seconds, total=self.total_seconds,
            attempts=self.attempts if self.retries is None else self.retries + 1,
        )

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets that are removed from all output."""
        own = (*self.headers.values(), *((self.key,) if self.key else ()))
        return (
            *(secret.get_secret_value() for secret in own),
            *(s for message in self.mcp.values() for s in message.secrets),
        )

    def with_extra(self, body: JsonObject) -> dict[str, object]:
        """The body of a request with the fields of `extra`; fields that are null are removed."""
        return {name: value for name, value in (body | self.extra).items() if value is not None}
