"""Methods that decode cues: a decorator names the cues, and the method's parameters are what is read of a frame."""

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any, TypeVar

CUES = "__cues__"
CueHandler = Callable[..., Any]
"""A method of a decoder; it is called with the bindings of a frame by their names."""
Method = TypeVar("Method", bound=CueHandler)


def decodes(*cues: str) -> Callable[[Method], Method]:
    """Mark a method that decodes these cues."""
    def mark(method: Method) -> Method:
        setattr(method, CUES, cues)
        return method

    return mark


def cue_handlers(decoder: type) -> dict[str, CueHandler]:
    """By cue: the method of the decoder that is marked with the cue."""
    return {cue: method for method in vars(decoder).values() for cue in getattr(method, CUES, ())}


def read_names(handlers: Mapping[str, CueHandler]) -> dict[str, tuple[str, ...]]:
    """By cue: the bindings that its method needs, which are its parameters that can be given by name."""
    return {cue: tuple(name for name, one in list(signature(method).parameters.items())[1:]
                       if one.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY))
            for cue, method in handlers.items()}
