"""The protocols' own packages as judges: what is on the wire is held to their models, and what is unknown is named."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import orjson
from pydantic import BaseModel, RootModel, TypeAdapter


@cache
def adapter_of(shape: Any) -> TypeAdapter[Any]:
    """Making one takes much longer than judging with it."""
    return TypeAdapter(shape)


def validation_problems(shape: Any, wire: bytes | str, *, strict: bool = True) -> list[str]:
    """The places that the shape does not know, or drops in silence; raises where the wire does not fit it at all."""
    model = adapter_of(shape).validate_json(wire, strict=strict)
    return list(_unknown(model, orjson.loads(wire), ""))


def _unknown(read: Any, told: Any, at: str) -> Iterator[str]:
    if isinstance(read, RootModel):
        yield from _unknown(read.root, told, at)
    elif isinstance(read, BaseModel) and isinstance(told, dict):
        names = {field.alias or name: name for name, field in type(read).model_fields.items()}
        for key, value in told.items():
            place = f"{at}.{key}".lstrip(".")
            if key in names:
                yield from _unknown(getattr(read, names[key]), value, place)
            else:
                yield place
    elif isinstance(read, list | tuple) and isinstance(told, list):
        if len(read) != len(told):
            yield at
        for one, other in zip(read, told, strict=False):
            yield from _unknown(one, other, at)
    elif read is None and told is not None:
        yield at


def data_of(stream: bytes) -> Iterator[bytes]:
    """The data of each event of a stream, ends that are no JSON left out."""
    for line in stream.splitlines():
        if line.startswith(b"data: {"):
            yield line.removeprefix(b"data: ")


def kept(shape: Any, told: Any) -> Any:
    """What the shape of a request keeps of it: all of it where every field is known and fits; raises where one does
    not."""
    return _whole(adapter_of(shape).validate_python(told))


def _whole(read: Any) -> Any:
    """Lists that are read only when somebody looks are looked at."""
    if isinstance(read, BaseModel):
        return _whole(read.model_dump(exclude_unset=True))
    if isinstance(read, dict):
        return {key: _whole(value) for key, value in read.items()}
    return read if isinstance(read, str | bytes) or not hasattr(read, "__iter__") else [_whole(one) for one in read]
