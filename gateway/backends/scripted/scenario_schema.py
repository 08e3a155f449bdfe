"""The steps of the scenario language: one model per step, whose first field is the step's verb."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, PlainValidator

import gateway.model as m
from gateway.field_errors import YAML_NOUNS, describe_struct_error, quote_value
from gateway.json_values import JsonObject, JsonValue
from gateway.yaml_positions import suggest


class ScenarioModel(BaseModel):
    """A part of a scenario; an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _model_struct(value: object, kinds: Iterable[type[Struct]], union: object, tag: str) -> object:
    """A struct of the model from its fields; unlike with msgspec, unknown fields are an error."""
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


def _event(value: object) -> object:
    return _model_struct(value, m.EVENTS, m.AnyEvent, "type")


def _asks(value: object) -> object:
    return tuple(
        _model_struct(one, m.ASKS, m.AnyAsk, "kind") for one in (value if isinstance(value, list) else [value])
    )


# -- blocks and messages ----------------------------------------------------------------------------------------------

class SayStep(ScenarioModel):
    """A text block, with one delta per word or with so many deltas."""

    say: str
    chunks: int | None = Field(None, ge=1)


class ThinkStep(ScenarioModel):
    """A thinking block."""

    think: str
    chunks: int | None = Field(None, ge=1)
    signature: str | None = None


class ImageStep(ScenarioModel):
    """An image block, by URL."""

    image: str


class DataFields(ScenarioModel):
    type: str
    content: JsonValue = None


class DataStep(ScenarioModel):
    """A data block."""

    data: DataFields


class AnnotateStep(ScenarioModel):
    """Annotations of the message, by topic."""

    annotate: dict[m.AnnotationTopic, JsonValue]


class EndMessageStep(ScenarioModel):
    """End the message; the next step starts a new one."""

    end: m.StopReason


class EndTurnStep(ScenarioModel):
    """End the message and the turn."""

    stop: m.StopReason


# -- tools and people -------------------------------------------------------------------------------------------------

class CallFields(ScenarioModel):
    name: str
    input: JsonObject = {}
    origin: m.ToolOrigin = m.ToolOrigin.BUILTIN
    permission: m.Permission = m.Permission.ALLOW
    id: str | None = None
    display_name: str | None = None
    server: str | None = None


class CallStep(ScenarioModel):
    """A tool call; executed after its message, unless its `result` follows."""

    call: CallFields


class ResultFields(ScenarioModel):
    content: str = ""
    is_error: bool = False
    of: str | None = None
    duration_ms: int | None = None
    meta: JsonObject | None = None


class ResultStep(ScenarioModel):
    """The result of the oldest open call, or of the call with the id `of`."""

    result: str | ResultFields


class AskStep(ScenarioModel):
    """One ask of the canonical model, or several at once."""

    ask: Annotated[tuple[m.AnyAsk, ...], PlainValidator(_asks)]


# -- delays and failures ----------------------------------------------------------------------------------------------

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
    """Raise an exception that is no `GatewayError`."""

    error: str = Field(alias="raise")


class EventStep(ScenarioModel):
    """Any event of the canonical model, valid or not."""

    event: Annotated[m.AnyEvent, PlainValidator(_event)]
    scope: str | None = None


# -- steps made of steps ----------------------------------------------------------------------------------------------

if TYPE_CHECKING:
    Steps = Sequence["Step"]
else:
    Steps = list[JsonValue]  # pydantic checks only that it is a list; scenario_loader parses each step, at its position


class RepeatStep(ScenarioModel):
    """The steps, so many times."""

    repeat: int = Field(ge=0)
    steps: Steps


class ForkStep(ScenarioModel):
    """The steps, done by a sub-agent of that name."""

    fork: str
    steps: Steps


Step = (
    SayStep | ThinkStep | ImageStep | DataStep | AnnotateStep | EndMessageStep | EndTurnStep | CallStep | ResultStep
    | AskStep | DelayStep | HangStep | FailStep | RaiseStep | EventStep | RepeatStep | ForkStep
)
STEPS: dict[str, type[Step]] = {
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
"""Every step by its verb."""
