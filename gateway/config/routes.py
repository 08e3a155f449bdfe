"""The settings of `route`: which turns another agent runs in place of the agent of their session."""

import re
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, PositiveInt

_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def _as_share(value: object) -> object:
    """Read 2% as 0.02."""
    if isinstance(value, str):
        found = _PERCENT.fullmatch(value.strip())
        if found is None:
            raise ValueError(f"expected a share such as 10% or 0.1, not '{value}'")
        return float(found[1]) / 100
    return value


def _as_seconds(value: object) -> object:
    """Read 5m as 300.0."""
    if isinstance(value, str):
        found = _DURATION.fullmatch(value.strip())
        if found is None:
            raise ValueError(f"expected a time such as 30s, 5m or 1h, not '{value}'")
        return float(found[1]) * _SECONDS[found[2]]
    return value


Share = Annotated[float, BeforeValidator(_as_share), Field(ge=0, le=1)]
Seconds = Annotated[float, BeforeValidator(_as_seconds), Field(gt=0)]
Word = Annotated[str, Field(min_length=1)]


class WayBackSettings(BaseModel, extra="forbid", frozen=True):
    """The rule is withdrawn if more than this share of its turns has failed in this time, of so many turns at least."""

    failures: Share
    over: Seconds
    turns: PositiveInt = 10


class RouteSettings(BaseModel, extra="forbid", frozen=True):
    """A rule: `to` is the agent that runs the turns of a session that all the other fields fit."""

    to: Word
    agents: tuple[Word, ...] | None = None
    keys: tuple[Word, ...] = ()
    header: dict[Word, str] = {}
    share: Share = 1.0
    unless: WayBackSettings | None = None
