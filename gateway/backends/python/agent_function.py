"""The user's function: named in the settings, checked once, and called with the arguments that its parameters name."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

import gateway.model as m
from gateway.errors import NotFound
from gateway.json_values import JsonObject
from gateway.yaml_positions import Position, Problem, Problems, suggest

from ..user_modules import UserModule, load_user_module
from .turn import AgentTurn, BlockingTurn

_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def _function(named: str) -> str:
    if not _FUNCTION.fullmatch(named):
        raise PydanticCustomError("agent", "should be `module:function`, as `parrot:reply`")
    return named


class PythonSettings(BaseModel):
    """The function, its options, and its limits."""

    model_config = ConfigDict(extra="forbid")

    agent: Annotated[str, AfterValidator(_function)] = Field(description="The function, as `module:function`.")
    options: JsonObject = Field({}, description="Parameters of the function, by name.")
    threads: int = Field(64, ge=1, le=1024, description="How many turns of a plain function run at once.")
    blocked_seconds: float = Field(
        2.0, gt=0, le=3600, description="How long an async function may block the event loop before the log names it.",
    )


def settings_error(message: str, *at: str, value: object) -> ValidationError:
    """An error of one setting that is only found when the function is loaded."""
    error = PydanticCustomError("agent", "{told}", {"told": message})
    return ValidationError.from_exception_data("PythonSettings", [InitErrorDetails(type=error, loc=at, input=value)])


Function = Callable[..., object]
FunctionTurn = AgentTurn | BlockingTurn

PARAMETERS: Mapping[str, Callable[[FunctionTurn], object]] = {
    "turn": lambda turn: turn,
    "text": lambda turn: m.text_of(turn.command.content) if isinstance(turn.command, m.SendMessage) else "",
    "history": lambda turn: turn.history,
    "settings": lambda turn: turn.settings,
}
"""The arguments that every function may have, by the name of the parameter."""

_NAMED_KINDS = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)


class AgentFunction:
    """A function, its module, and its options."""

    def __init__(self, reference: str, source: UserModule, function: Function, options: Mapping[str, object]) -> None:
        self.reference, self.source, self._function = reference, source, function
        self.location = function_location(function, source)
        self._signature = inspect.signature(function)
        self._options = dict(options)

    @property
    def is_async(self) -> bool:
        """Whether a call only creates a coroutine or a generator, so that it may happen on the event loop."""
        return inspect.iscoroutinefunction(self._function) or inspect.isasyncgenfunction(self._function)

    def call(self, turn: FunctionTurn) -> Any:
        bound, rest = self._signature.bind_partial(), dict(self._options)
        for name in self._signature.parameters:
            if name in PARAMETERS:
                bound.arguments[name] = PARAMETERS[name](turn)
            elif name in rest:
                bound.arguments[name] = rest.pop(name)
        return self._function(*bound.args, **bound.kwargs, **rest)


def load_function(settings: PythonSettings, base: Path) -> AgentFunction:
    """The function that the settings name. Raises `Problems` or `ValidationError`, which have a position."""
    module_name, _, name = settings.agent.partition(":")
    try:
        source = load_user_module(module_name, base)
    except NotFound as error:
        raise settings_error(error.message, "agent", value=settings.agent) from error
    function: Any = getattr(source.module, name, None)
    _check_function(settings.agent, source, name, function)
    parameters = inspect.signature(function).parameters.values()
    _check_parameters(settings, function, parameters, source)
    _check_options(settings, parameters)
    return AgentFunction(settings.agent, source, function, settings.options)


def checked_function(function: Function) -> AgentFunction:
    """A function that the program itself has. Raises `Problems`, which have a position."""
    name = getattr(function, "__name__", type(function).__name__)
    source = UserModule(ModuleType(getattr(function, "__module__", None) or "program"), {})
    settings = PythonSettings.model_construct(agent=f"{source.module.__name__}:{name}", options={})
    _check_parameters(settings, function, inspect.signature(function).parameters.values(), source)
    return AgentFunction(settings.agent, source, function, {})


def _check_function(word: str, source: UserModule, name: str, function: object) -> None:
    file = getattr(source.module, "__file__", None) or source.module.__name__
    if inspect.isclass(function):
        raise settings_error(f"'{name}' in {file} is a class; name it as `backend: {word}`", "agent", value=word)
    if not callable(function):
        hint = suggest(name, [known for known, value in vars(source.module).items() if inspect.isroutine(value)])
        raise settings_error(f"{file} has no function '{name}'" + (f"; {hint}" if hint else ""), "agent", value=word)


def _check_parameters(
    settings: PythonSettings, function: Function, parameters: Iterable[inspect.Parameter], source: UserModule,
) -> None:
    """Check that every parameter without a default has an argument."""
    known, place = [*PARAMETERS, *settings.options], function_location(function, source)
    problems = [
        Problem(place, f"'{settings.agent}' has a parameter '{one.name}' that nothing is known for",
                suggest(one.name, known) or f"it may have {', '.join(PARAMETERS)}, and what stands under `options:`")
        for one in parameters if one.kind in _NAMED_KINDS and one.default is one.empty and one.name not in known
    ]
    if problems:
        raise Problems(problems)


def _check_options(settings: PythonSettings, parameters: Iterable[inspect.Parameter]) -> None:
    """Check that every option is a parameter, and none of the standard ones."""
    names = [one.name for one in parameters if one.kind in _NAMED_KINDS]
    takes_all = any(one.kind is one.VAR_KEYWORD for one in parameters)
    for option in settings.options:
        if option in PARAMETERS:
            message = f"'{option}' is what every function is given, and cannot be an option"
            raise settings_error(message, "options", option, value=option)
        if option not in names and not takes_all:
            hint = suggest(option, set(names) - set(PARAMETERS))
            message = f"'{settings.agent}' has no parameter '{option}'" + (f"; {hint}" if hint else "")
            raise settings_error(message, "options", option, value=option)


def function_location(function: Function, source: UserModule) -> Position:
    """The position of a function's definition."""
    code = getattr(inspect.unwrap(function), "__code__", None) or getattr(type(function).__call__, "__code__", None)
    if code is None:
        return Position(str(source.files[0]) if source.files else source.module.__name__)
    return Position(code.co_filename, code.co_firstlineno)
