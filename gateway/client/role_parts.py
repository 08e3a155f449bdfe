"""Parts of every client role: a turn over a generator, methods that decode cues, a bounded memory of sessions."""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import Any, Generic, ParamSpec, TypeVar

from gateway.ports import DecodedItem

P = ParamSpec("P")
ItemGenerator = AsyncGenerator[DecodedItem | list[DecodedItem], None]
"""Items of a turn; items that arrived together may come as one list."""


class GeneratorTurn:
    """See `gateway.ports.RemoteTurn`."""

    def __init__(self, generator: ItemGenerator) -> None:
        self._generator = generator
        self._unread: list[DecodedItem] = []

    async def read(self) -> Sequence[DecodedItem]:
        item = await anext(self._generator, None)
        if item is None:
            return ()
        return item if isinstance(item, list) else (item,)

    async def aclose(self) -> None:
        await self._generator.aclose()

    def __aiter__(self) -> "GeneratorTurn":
        return self

    async def __anext__(self) -> DecodedItem:
        if not self._unread:
            self._unread = list(await self.read())
        if not self._unread:
            raise StopAsyncIteration
        return self._unread.pop(0)


def generator_turn(method: Callable[P, ItemGenerator]) -> Callable[P, GeneratorTurn]:
    """Let an async generator function return a `GeneratorTurn`."""
    @wraps(method)
    def start(*args: P.args, **kwargs: P.kwargs) -> GeneratorTurn:
        return GeneratorTurn(method(*args, **kwargs))

    return start


CUES = "__cues__"
CueHandler = Callable[..., Any]
"""A method of a decoder, called with the decoder, with what stands before its slash, and with the bindings."""
Method = TypeVar("Method", bound=Callable[..., Any])


def decodes(*cues: str) -> Callable[[Method], Method]:
    """Mark a method that decodes these cues; its parameters after the slash are bindings of a frame."""
    def mark(method: Method) -> Method:
        setattr(method, CUES, cues)
        return method

    return mark


def cue_handlers(decoder: type) -> dict[str, CueHandler]:
    """By cue: the method of the decoder that is marked with the cue."""
    marked = [method for method in vars(decoder).values() if hasattr(method, CUES)]
    return {cue: handler for method in marked for handler in [compile_handler(method)] for cue in getattr(method, CUES)}


def read_names(handlers: Mapping[str, CueHandler]) -> dict[str, tuple[str, ...]]:
    """By cue: the bindings that its method needs, which are its parameters after the slash."""
    return {cue: tuple(one.name for one in _bound_parameters(handler)) for cue, handler in handlers.items()}


def compile_handler(method: Callable[..., object]) -> CueHandler:
    """A function that gives the method its bindings by place: `method(self, **given)` takes twice the time."""
    parameters, bound = signature(method).parameters, _bound_parameters(method)
    names: dict[str, Any] = {f"default_{one.name}": one.default for one in bound} | {"method": method}
    first = [f"p{place}" for place in range(len(parameters) - len(bound))]
    values = [f"given[{one.name!r}]" if one.default is Parameter.empty
              else f"given.get({one.name!r}, default_{one.name})" for one in bound]
    source = f"lambda {', '.join((*first, 'given'))}: method({', '.join((*first, *values))})"
    return wraps(method)(eval(source, names))  # noqa: S307 - made of the names of parameters


def _bound_parameters(method: Callable[..., object]) -> list[Parameter]:
    return [one for one in list(signature(method).parameters.values())[1:]
            if one.kind is Parameter.POSITIONAL_OR_KEYWORD]


MAX_SESSIONS = 4096
"""So many sessions are remembered, unless a client wants another number."""
State = TypeVar("State")


class SessionMemory(Generic[State]):
    """One state for each session, or for anything else that has a name.

    To read, to make and to replace a state are uses of its session. If there are more than `most` sessions, the one
    that was used longest ago is forgotten. A state that `is_busy` is not forgotten: while so many are, there are more.
    """

    def __init__(self, most: int = MAX_SESSIONS, *, is_busy: Callable[[State], bool] | None = None) -> None:
        self._states: OrderedDict[str, State] = OrderedDict()
        self._most, self._is_busy = most, is_busy

    def __len__(self) -> int:
        return len(self._states)

    def __contains__(self, name: str) -> bool:
        return name in self._states

    def get(self, name: str) -> State | None:
        """The state of this session; None if there is none, or if it was forgotten."""
        if name in self._states:
            self._states.move_to_end(name)
        return self._states.get(name)

    def setdefault(self, name: str, state: State) -> State:
        """The state of this session, which is the given one if there was none."""
        known = self._states.setdefault(name, state)
        self.put(name, known)
        return known

    def put(self, name: str, state: State) -> State | None:
        """Remember a state; returns the state that was forgotten for it, if there is one."""
        self._states[name] = state
        self._states.move_to_end(name)
        if len(self._states) <= self._most:
            return None
        found = next((one for one, held in self._states.items() if not (self._is_busy and self._is_busy(held))), None)
        return None if found is None else self._states.pop(found)

    def pop(self, name: str) -> State | None:
        """Forget the state of this session, and return it."""
        return self._states.pop(name, None)

    def values(self) -> list[State]:
        """All states, that of the session first that was used longest ago."""
        return list(self._states.values())

    def clear(self) -> None:
        self._states.clear()
