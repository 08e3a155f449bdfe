"""Commands that settings name: what is run, and whether it is there, which is better said before anybody needs it."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationInfo

BASE = "base"


def seen_from(base: Path) -> dict[str, Any]:
    """The context in which settings are validated, if their commands are to be looked for."""
    return {BASE: base}


def _is_there(command: str, info: ValidationInfo) -> str:
    """Looked for as it will be: a path from the folder of the settings, a bare name on the PATH it will be given."""
    base = (info.context or {}).get(BASE)
    if base is not None and (why := missing(command, base, _path(info.data.get("env") or {}))):
        raise ValueError(why)
    return command


def missing(command: str, base: Path, path: str | None = None) -> str:
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


Command = Annotated[str, Field(min_length=1), AfterValidator(_is_there)]
"""A setting beside `env`, which comes before it: the PATH may be in there."""
