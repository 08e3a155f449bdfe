"""The settings of a python agent in config.yaml."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def _function(named: str) -> str:
    if not _FUNCTION.fullmatch(named):
        raise PydanticCustomError("agent", "should be `module:function`, as `parrot:reply`")
    return named


class PythonSettings(BaseModel):
    """The function, its options, and its limits."""

    model_config = ConfigDict(extra="forbid")

    agent: Annotated[str, AfterValidator(_function)] = Field(description="The function, as `module:function`.")
    options: dict[str, Any] = Field({}, description="Parameters of the function, by name.")
    threads: int = Field(64, ge=1, le=1024, description="How many turns of a plain function run at once.")
    blocked_seconds: float = Field(
        2.0, gt=0, le=3600, description="How long an async function may block the event loop before the log names it.",
    )


def settings_error(message: str, *at: str, value: object) -> ValidationError:
    """An error of one setting that is only found when the function is loaded."""
    error = PydanticCustomError("agent", "{told}", {"told": message})
    return ValidationError.from_exception_data("PythonSettings", [InitErrorDetails(type=error, loc=at, input=value)])
