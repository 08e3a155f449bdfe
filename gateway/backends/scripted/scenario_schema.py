"""The words of the scenario language: one model per step, whose first field is the step's verb."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, PlainValidator

import gateway.model as m
from gateway.field_errors import YAML_NOUNS, describe_struct_error, quote_value
from gateway.yaml_positions import suggest


class ScenarioModel(BaseModel):
    """What a scenario may say; a word nobody knows is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _model_struct(value: Any, kinds: Iterable[type[Struct]], union: Any, tag: str) -> Any:
    """A struct of the model from its fields; unlike msgspec's own reading, unknown fields are a mistake."""
    if not isinstance(value, dict):
        raise ValueError(f"must be {YAML_NOUNS.object}, not {quote_value(value, nouns=YAML_NOUNS)}")
    known = {str(kind.__struct_config__.tag): kind for kind in kinds}
    if (kind := known.get(str(value.get(tag)))) is None:
        hint = suggest(str(value.get(tag)), known)
        raise ValueError(f"there is no {tag} {value.get(tag)!r}" + (f"; {hint}" if hint else ""))
    for name in value:
        if name != tag and name not in kind.__struct_encode_fields__:
            hint = suggest(name, kind.__struct_encode_fields__)
            raise ValueError(f"{value[tag]} has no field {name!r}" + (f"; {hint}" if hint else ""))
    try:
        return msgspec.convert(value, union)
    except msgspec.ValidationError as error:
        raise ValueError(f"{value[tag]}: {describe_struct_error(error, YAML_NOUNS)}") from None


def _event(value: Any) -> Any:
    return _model_struct(value, m.EVENTS, m.AnyEvent, "type")


def _asks(value: Any) -> Any:
    return tuple(
        _model_struct(one, m.ASKS, m.AnyAsk, "kind") for one in (value if isinstance(value, list) else [value])
    )


# -- what is said -----------------------------------------------------------------------------------------------------

class SayStep(ScenarioModel):
    """A text block, one delta per word or in so many pieces."""

    say: str
    chunks: int | None = Field(None, ge=1)


class ThinkStep(ScenarioModel):
    """A thinking block."""

    think: str
    chunks: int | None = Field(None, ge=1)
    signature: str | None = None


class ImageStep(ScenarioModel):
    """An image block, by address."""

    image: str


class DataFields(ScenarioModel):
    type: str
    content: Any = None


class DataStep(ScenarioModel):
    """A data block."""

    data: DataFields


class AnnotateStep(ScenarioModel):
    """Annotations of the message, by topic."""

    annotate: dict[m.AnnotationTopic, Any]


class EndMessageStep(ScenarioModel):
    """End the message here; what follows is in the next one."""

    end: m.StopReason


class EndTurnStep(ScenarioModel):
    """End the message here, and the turn with it."""

    stop: m.StopReason


# -- tools and people -------------------------------------------------------------------------------------------------

class CallFields(ScenarioModel):
    name: str
    input: dict[str, Any] = {}
    origin: m.ToolOrigin = m.ToolOrigin.BUILTIN
    permission: m.Permission = m.Permission.ALLOW
    id: str | None = None
    display_name: str | None = None
    server: str | None = None


class CallStep(ScenarioModel):
    """A tool call; carried out when its message is over, unless its `result` follows."""

    call: CallFields


class ResultFields(ScenarioModel):
    content: str = ""
    is_error: bool = False
    of: str | None = None
    duration_ms: int | None = None
    meta: dict[str, Any] | None = None


class ResultStep(ScenarioModel):
    """What the oldest open call gave back, or the call `of` that id."""

    result: str | ResultFields


class AskStep(ScenarioModel):
    """One ask of the canonical model, or several at once."""

    ask: Annotated[tuple[m.AnyAsk, ...], PlainValidator(_asks)]


# -- time and trouble -------------------------------------------------------------------------------------------------

class DelayStep(ScenarioModel):
    """Wait so many seconds."""

    delay: float = Field(ge=0)


class HangStep(ScenarioModel):
    """Wait for ever."""

    hang: Literal[True]


class FailFields(ScenarioModel):
    code: m.FaultCode = m.FaultCode.BACKEND
    message: str = "The scenario fails here."


class FailStep(ScenarioModel):
    """Fail with a fault of your choice."""

    fail: FailFields


class RaiseStep(ScenarioModel):
    """Break in a way nobody foresaw."""

    error: str = Field(alias="raise")


class EventStep(ScenarioModel):
    """Any event of the canonical model as it stands, lawful or not."""

    event: Annotated[m.AnyEvent, PlainValidator(_event)]
    scope: str | None = None


# -- steps made of steps ----------------------------------------------------------------------------------------------

class RepeatStep(ScenarioModel):
    """The steps, so many times."""

    repeat: int = Field(ge=0)
    steps: list[Any]


class ForkStep(ScenarioModel):
    """The steps, done by a sub-agent of that name."""

    fork: str
    steps: list[Any]


STEPS: dict[str, type[ScenarioModel]] = {
    "say": SayStep,
    "think": ThinkStep,
    "image": ImageStep,
    "data": DataStep,
    "annotate": AnnotateStep,
    "end": EndMessageStep,
    "stop": EndTurnStep,
    "call": CallStep,
    "result": ResultStep,
    "ask": AskStep,
    "delay": DelayStep,
    "hang": HangStep,
    "fail": FailStep,
    "raise": RaiseStep,
    "event": EventStep,
    "repeat": RepeatStep,
    "fork": ForkStep,
}
"""Every step there is, by its verb."""
