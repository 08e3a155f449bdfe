"""The words of the scenario language: one model per step, whose first field is the step's verb."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, PlainValidator

from gateway.field_errors import YAML, shown, struct_words
from gateway.marks import nearest
from gateway.model import ASKS, EVENTS, AnyAsk, AnyEvent, FaultCode, Permission, StopReason, ToolOrigin, Topic


class Shape(BaseModel):
    """What a scenario may say; a word nobody knows is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _canonical(value: Any, kinds: Iterable[type[Struct]], union: Any, tag: str) -> Any:
    """A struct of the model from its fields; unlike msgspec's own reading, unknown fields are a mistake."""
    if not isinstance(value, dict):
        raise ValueError(f"must be {YAML.object}, not {shown(value, nouns=YAML)}")
    known = {str(kind.__struct_config__.tag): kind for kind in kinds}
    if (kind := known.get(str(value.get(tag)))) is None:
        hint = nearest(str(value.get(tag)), known)
        raise ValueError(f"there is no {tag} {value.get(tag)!r}" + (f"; {hint}" if hint else ""))
    for name in value:
        if name != tag and name not in kind.__struct_encode_fields__:
            hint = nearest(name, kind.__struct_encode_fields__)
            raise ValueError(f"{value[tag]} has no field {name!r}" + (f"; {hint}" if hint else ""))
    try:
        return msgspec.convert(value, union)
    except msgspec.ValidationError as error:
        raise ValueError(f"{value[tag]}: {struct_words(error, YAML)}") from None


def _event(value: Any) -> Any:
    return _canonical(value, EVENTS, AnyEvent, "type")


def _asks(value: Any) -> Any:
    return tuple(_canonical(one, ASKS, AnyAsk, "kind") for one in (value if isinstance(value, list) else [value]))


# -- what is said -----------------------------------------------------------------------------------------------------

class Say(Shape):
    """A text block, one delta per word or in so many pieces."""

    say: str
    chunks: int | None = Field(None, ge=1)


class Think(Shape):
    """A thinking block."""

    think: str
    chunks: int | None = Field(None, ge=1)
    signature: str | None = None


class Image(Shape):
    """An image block, by address."""

    image: str


class DataShape(Shape):
    type: str
    content: Any = None


class Data(Shape):
    """A data block."""

    data: DataShape


class Annotate(Shape):
    """Annotations of the message, by topic."""

    annotate: dict[Topic, Any]


class End(Shape):
    """End the message here; what follows is in the next one."""

    end: StopReason


class Stop(Shape):
    """End the message here, and the turn with it."""

    stop: StopReason


# -- tools and people -------------------------------------------------------------------------------------------------

class CallShape(Shape):
    name: str
    input: dict[str, Any] = {}
    origin: ToolOrigin = ToolOrigin.BUILTIN
    permission: Permission = Permission.ALLOW
    id: str | None = None
    display_name: str | None = None
    server: str | None = None


class Call(Shape):
    """A tool call; carried out when its message is over, unless its `result` follows."""

    call: CallShape


class ResultShape(Shape):
    content: str = ""
    is_error: bool = False
    of: str | None = None
    duration_ms: int | None = None
    meta: dict[str, Any] | None = None


class Returned(Shape):
    """What the oldest open call gave back, or the call `of` that id."""

    result: str | ResultShape


class Asking(Shape):
    """One ask of the canonical model, or several at once."""

    ask: Annotated[tuple[AnyAsk, ...], PlainValidator(_asks)]


# -- time and trouble -------------------------------------------------------------------------------------------------

class Delay(Shape):
    """Wait so many seconds."""

    delay: float = Field(ge=0)


class Hang(Shape):
    """Wait for ever."""

    hang: Literal[True]


class FailShape(Shape):
    code: FaultCode = FaultCode.BACKEND
    message: str = "The scenario fails here."


class Fail(Shape):
    """Fail with a fault of your choice."""

    fail: FailShape


class Raise(Shape):
    """Break in a way nobody foresaw."""

    error: str = Field(alias="raise")


class Raw(Shape):
    """Any event of the canonical model as it stands, lawful or not."""

    event: Annotated[AnyEvent, PlainValidator(_event)]
    scope: str | None = None


# -- steps made of steps ----------------------------------------------------------------------------------------------

class Repeat(Shape):
    """The steps, so many times."""

    repeat: int = Field(ge=0)
    steps: list[Any]


class Fork(Shape):
    """The steps, done by a sub-agent of that name."""

    fork: str
    steps: list[Any]


STEPS: dict[str, type[Shape]] = {
    "say": Say, "think": Think, "image": Image, "data": Data, "annotate": Annotate, "end": End, "stop": Stop,
    "call": Call, "result": Returned, "ask": Asking, "delay": Delay, "hang": Hang, "fail": Fail, "raise": Raise,
    "event": Raw, "repeat": Repeat, "fork": Fork,
}
"""Every step there is, by its verb."""
