"""Types of settings that kinds of agents share: secrets, executables, and the URL and timeouts of an upstream."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    SecretStr,
    ValidationInfo,
    field_validator,
)
from yarl import URL

from gateway.ports import Timeouts


def _from_environment(value: object) -> object:
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    name = value[1:].removeprefix("{").removesuffix("}")
    if name not in os.environ:
        raise ValueError(f"the environment has no variable {name}")
    return os.environ[name]


SecretSetting = Annotated[SecretStr, BeforeValidator(_from_environment)]
"""A setting that is never printed; `get_secret_value()` returns it."""


BASE_FOLDER = "base"


def settings_context(base: Path) -> dict[str, object]:
    """The context for validation, if executables are to be looked up."""
    return {BASE_FOLDER: base}


def _is_executable(command: str, info: ValidationInfo) -> str:
    """Look the command up as at run time: a path relative to the folder of the settings, a name on the agent's PATH."""
    base = (info.context or {}).get(BASE_FOLDER)
    if base is not None and (why := executable_problem(command, base, _path(info.data.get("env") or {}))):
        raise ValueError(why)
    return command


def executable_problem(command: str, base: Path, path: str | None = None) -> str:
    """Why the command cannot be run; empty if it can."""
    if "/" not in command:
        return "" if shutil.which(command, path=path) else (
            f"there is no program '{command}' on the PATH; install it, or write its path")
    where = (base / command).absolute()
    if not where.is_file():
        return f"there is no program '{where}'; a path is seen from the folder of the settings"
    return "" if os.access(where, os.X_OK) else f"'{where}' is not a program; make it one with: chmod +x"


def _path(env: Mapping[str, Any]) -> str | None:
    return env["PATH"].get_secret_value() if "PATH" in env else os.environ.get("PATH")


Executable = Annotated[str, Field(min_length=1), AfterValidator(_is_executable)]
"""A setting that is validated after `env`, which may contain the PATH."""


class UpstreamSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str
    key: SecretSetting = SecretStr("")
    connect_seconds: PositiveFloat = 10
    first_byte_seconds: PositiveFloat = 60
    idle_seconds: PositiveFloat = 120
    total_seconds: PositiveFloat = 3600
    attempts: PositiveInt = 3

    @field_validator("url")
    @classmethod
    def _is_address(cls, url: str) -> str:
        if not url.startswith(("http://", "https://")):
            raise ValueError("an address begins with http:// or https://")
        try:
            URL(url).origin()
        except ValueError as error:
            raise ValueError(f"this is not an address ({error}); write it as http://HOST:PORT/PATH") from None
        return url

    @property
    def timeouts(self) -> Timeouts:
        return Timeouts(
            connect=self.connect_seconds, first_byte=self.first_byte_seconds, idle=self.idle_seconds,
            total=self.total_seconds, attempts=self.attempts,
        )
