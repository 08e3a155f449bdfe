"""The settings of an MCP server in config.yaml."""

from pydantic import BaseModel, ConfigDict, HttpUrl, PositiveFloat, model_validator

import gateway.model as m
from gateway.backends.setting_types import Executable, SecretSetting


class McpServerSettings(BaseModel):
    """One MCP server, by command or by URL, and the permissions of its tools."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    env: dict[str, SecretSetting] = {}
    command: Executable | None = None
    args: tuple[str, ...] = ()
    url: HttpUrl | None = None
    headers: dict[str, SecretSetting] = {}
    key: SecretSetting | None = None
    permission: m.Permission = m.Permission.ASK
    permissions: dict[str, m.Permission] = {}
    start_seconds: PositiveFloat = 30.0
    call_seconds: PositiveFloat = 120.0

    @model_validator(mode="after")
    def _one_of_two(self) -> "McpServerSettings":
        if (self.command is None) is (self.url is None):
            raise ValueError("an MCP server has a command or a url, and not both")
        if self.command is None and (self.args or self.env):
            raise ValueError("args and env belong to a command")
        if self.url is None and (self.headers or self.key):
            raise ValueError("headers and key belong to a url")
        return self

    @property
    def secrets(self) -> tuple[str, ...]:
        given = (*self.env.values(), *self.headers.values(), *((self.key,) if self.key else ()))
        return tuple(secret.get_secret_value() for secret in given)
