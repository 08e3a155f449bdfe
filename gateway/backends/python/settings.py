"""What config.yaml may say about an agent that is a function, and how a mistake in it is told at its line."""

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
    """Which function, what it is called with, and how much it may take."""

    model_config = ConfigDict(extra="forbid")

    agent: Annotated[str, AfterValidator(_function)] = Field(description="The function, as `module:function`.")
    options: dict[str, Any] = Field({}, description="Parameters of the function, by name.")
    threads: int = Field(64, ge=1, le=1024, description="How many turns of a plain function run at once.")
    blocked_seconds: float = Field(
        2.0, gt=0, le=3600, description="How long an async function may block the loop before the server log names it.",
    )


def settings_error(message: str, *at: str, value: Any) -> ValidationError:
    """Something wrong with one setting that only shows when the function is looked at."""
    error = PydanticCustomError("agent", "{told}", {"told": message})
    return ValidationError.from_exception_data("PythonSettings", [InitErrorDetails(type=error, loc=at, input=value)])
