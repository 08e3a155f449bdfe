"""Keys in settings: written as they are, or better as `$NAME`, an environment variable that holds them.

Commands that settings name: what is run, and whether it is there, which is better said before anybody needs it.
What config.yaml says of any agent that is reached at an address: where it is, and how long it is waited for.
"""

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
"""A setting that nothing prints; `get_secret_value()` tells it."""


BASE_FOLDER = "base"


def settings_context(base: Path) -> dict[str, Any]:
    """The context in which settings are validated, if their commands are to be looked for."""
    return {BASE_FOLDER: base}


def _is_executable(command: str, info: ValidationInfo) -> str:
    """Looked for as it will be: a path from the folder of the settings, a bare name on the PATH it will be given."""
    base = (info.context or {}).get(BASE_FOLDER)
    if base is not None and (why := executable_problem(command, base, _path(info.data.get("env") or {}))):
        raise ValueError(why)
    return command


def executable_problem(command: str, base: Path, path: str | None = None) -> str:
    """Why the command cannot be run; nothing if it can."""
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
"""A setting beside `env`, which comes before it: the PATH may be in there."""


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
            raise ValueError(f"this is no address ({error}); write it as http://HOST:PORT/PATH") from None
        return url

    @property
    def timeouts(self) -> Timeouts:
        return Timeouts(
            connect=self.connect_seconds, first_byte=self.first_byte_seconds, idle=self.idle_seconds,
            total=self.total_seconds, attempts=self.attempts,
        )
