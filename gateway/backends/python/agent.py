"""The function: found by name, its parameters looked at once, and called with what they ask for."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from gateway.errors import NotFound
from gateway.marks import Place, Problem, Problems, nearest
from gateway.model import SendMessage, text_of

from ..sources import Source, read_module
from .settings import PythonSettings, mistake
from .turn import AgentTurn, BlockingTurn

Function = Callable[..., Any]
Turn = AgentTurn | BlockingTurn

GIVEN: Mapping[str, Callable[[Turn], Any]] = {
    "turn": lambda turn: turn,
    "text": lambda turn: text_of(turn.command.content) if isinstance(turn.command, SendMessage) else "",
    "history": lambda turn: turn.history,
    "settings": lambda turn: turn.settings,
}
"""What every function may have, by the name of its parameter."""

_NAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Agent:
    """A function, where it comes from, and what it wants to be called with."""

    def __init__(self, word: str, source: Source, function: Function, options: Mapping[str, Any]) -> None:
        self.word, self.source, self._function = word, source, function
        self.place = place_of(function, source)
        self._signature = inspect.signature(function)
        self._options = dict(options)

    @property
    def is_async(self) -> bool:
        """Whether calling it runs nothing yet, so that it can be done on the loop."""
        return inspect.iscoroutinefunction(self._function) or inspect.isasyncgenfunction(self._function)

    def call(self, turn: Turn) -> Any:
        bound, rest = self._signature.bind_partial(), dict(self._options)
        for name in self._signature.parameters:
            if name in GIVEN:
                bound.arguments[name] = GIVEN[name](turn)
            elif name in rest:
                bound.arguments[name] = rest.pop(name)
        return self._function(*bound.args, **bound.kwargs, **rest)


def load(settings: PythonSettings, base: Path) -> Agent:
    """The function that the settings name. Raises `Problems` or `ValidationError`, which know the mistake's place."""
    module_name, _, name = settings.agent.partition(":")
    try:
        source = read_module(module_name, base)
    except NotFound as error:
        raise mistake(error.message, "agent", value=settings.agent) from error
    function: Any = getattr(source.module, name, None)
    _must_be_function(settings.agent, source, name, function)
    parameters = inspect.signature(function).parameters.values()
    _must_be_given(settings, function, parameters, source)
    _must_be_taken(settings, parameters)
    return Agent(settings.agent, source, function, settings.options)


def _must_be_function(word: str, source: Source, name: str, function: Any) -> None:
    file = getattr(source.module, "__file__", None) or source.module.__name__
    if inspect.isclass(function):
        raise mistake(f"'{name}' in {file} is a class; name it as `backend: {word}`", "agent", value=word)
    if not callable(function):
        hint = nearest(name, [known for known, value in vars(source.module).items() if inspect.isroutine(value)])
        raise mistake(f"{file} has no function '{name}'" + (f"; {hint}" if hint else ""), "agent", value=word)


def _must_be_given(
    settings: PythonSettings, function: Function, parameters: Iterable[inspect.Parameter], source: Source,
) -> None:
    """Every parameter without a default is one that we have something for."""
    known, place = [*GIVEN, *settings.options], place_of(function, source)
    problems = [
        Problem(place, f"'{settings.agent}' has a parameter '{one.name}' that nothing is known for",
                nearest(one.name, known) or f"it may have {', '.join(GIVEN)}, and what stands under `options:`")
        for one in parameters if one.kind in _NAMED and one.default is one.empty and one.name not in known
    ]
    if problems:
        raise Problems(problems)


def _must_be_taken(settings: PythonSettings, parameters: Iterable[inspect.Parameter]) -> None:
    """Every option is the name of a parameter, and none of those that are given anyway."""
    names = [one.name for one in parameters if one.kind in _NAMED]
    takes_all = any(one.kind is one.VAR_KEYWORD for one in parameters)
    for option in settings.options:
        if option in GIVEN:
            told = f"'{option}' is what every function is given, and cannot be an option"
            raise mistake(told, "options", option, value=option)
        if option not in names and not takes_all:
            hint = nearest(option, set(names) - set(GIVEN))
            told = f"'{settings.agent}' has no parameter '{option}'" + (f"; {hint}" if hint else "")
            raise mistake(told, "options", option, value=option)


def place_of(function: Function, source: Source) -> Place:
    """Where a function is written."""
    code = getattr(inspect.unwrap(function), "__code__", None) or getattr(type(function).__call__, "__code__", None)
    if code is None:
        return Place(str(source.files[0]) if source.files else source.module.__name__)
    return Place(code.co_filename, code.co_firstlineno)
