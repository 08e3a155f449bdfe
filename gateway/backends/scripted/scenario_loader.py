"""Reads a scenario from YAML, and reports all its problems at once, each with its position."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, get_args

from pydantic import BaseModel, Field, ValidationError

from gateway.json_values import JsonValue
from gateway.yaml_positions import NodePath, Problem, Problems, YamlDocument, read_yaml, suggest, validation_problems

from .scenario_schema import STEPS, ForkStep, RepeatStep, ScenarioModel, Step, Steps


class ScenarioRule(ScenarioModel):
    """The steps of a turn whose message matches `when`, a regular expression."""

    when: re.Pattern[str] | None = None
    steps: Steps


if TYPE_CHECKING:
    Rules = Sequence[ScenarioRule]
    Turns = Sequence[Steps]
else:
    Rules = Turns = list[JsonValue]  # the reader below parses each of them, at its position


class Scenario(ScenarioModel):
    """Rules are tried first, in order; a turn without a rule plays the next of `turns`, the last one repeatedly."""

    rules: Rules = Field(default_factory=list)
    turns: Turns = Field(default_factory=list)

    def steps(self, message: str, number: int) -> Sequence[Step] | None:
        """The steps of the session's turn of that number, from 1; None if the scenario has none."""
        matching = (rule.steps for rule in self.rules if rule.when is None or rule.when.search(message))
        last = self.turns[min(number, len(self.turns)) - 1] if self.turns else None
        return next(matching, last)


Model = TypeVar("Model", bound=BaseModel)


def load_scenario(file: Path | str, text: str | None = None) -> Scenario:
    """Read a scenario; raises `Problems`."""
    marked = read_yaml(file, text)
    reader = _ScenarioReader(marked)
    scenario = reader.scenario() if not marked.problems else None
    if scenario is None or reader.problems or marked.problems:
        raise Problems([*marked.problems, *reader.problems])
    return scenario


class _ScenarioReader:
    """Walks the document; a part with a problem is left out."""

    def __init__(self, marked: YamlDocument) -> None:
        self.problems: list[Problem] = []
        self._marked = marked

    def scenario(self) -> Scenario | None:
        """The scenario; all parts are checked, even if the top level has problems."""
        written = self._marked.value or {}
        scenario = self._shape(Scenario, written, ())
        rules, turns = _list_in(written, "rules"), _list_in(written, "turns")
        if scenario is not None and not rules and not turns:
            self._problem((), "a scenario needs rules or turns")
        made = {
            "rules": [self._rule(rule, ("rules", at)) for at, rule in enumerate(rules)],
            "turns": [self._steps(steps, ("turns", at)) for at, steps in enumerate(turns)],
        }
        return None if scenario is None else scenario.model_copy(update=made)

    def _rule(self, rule: object, path: NodePath) -> ScenarioRule | None:
        shaped = self._shape(ScenarioRule, rule, path)
        steps = rule.get("steps") if isinstance(rule, dict) else None
        made = self._steps(steps, (*path, "steps")) if isinstance(steps, list) else []
        return shaped and shaped.model_copy(update={"steps": made})

    def _steps(self, steps: object, path: NodePath) -> list[Step]:
        if not isinstance(steps, list):
            self._problem(path, "a turn is a list of steps")
            return []
        made = [self._step(step, (*path, at)) for at, step in enumerate(steps)]
        return [step for step in made if step is not None]

    def _step(self, step: object, path: NodePath) -> Step | None:
        verbs = [key for key in step if key in STEPS] if isinstance(step, dict) else []
        if len(verbs) != 1:
            self._problem(path, *_step_problem(step, verbs))
            return None
        made = self._shape(STEPS[verbs[0]], step, path)
        if not isinstance(made, RepeatStep | ForkStep):
            return made
        return made.model_copy(update={"steps": self._steps(made.steps, (*path, "steps"))})

    def _shape(self, model: type[Model], value: object, path: NodePath) -> Model | None:
        try:
            return model.model_validate(value)
        except ValidationError as error:
            self.problems.extend(validation_problems(error, _subdocument(self._marked, path), {**_known_fields(model)}))
            return None

    def _problem(self, path: NodePath, message: str, hint: str = "") -> None:
        self.problems.append(Problem(self._marked.position(path), message, hint))


def _list_in(written: object, name: str) -> list[JsonValue]:
    part = written.get(name) if isinstance(written, dict) else None
    return part if isinstance(part, list) else []


def _known_fields(model: type[BaseModel]) -> dict[str, list[str]]:
    """The fields of a step, and of the models in it; for hints."""
    words = {"": [field.alias or name for name, field in model.model_fields.items()]}
    for name, field in model.model_fields.items():
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                words[name] = list(kind.model_fields)
    return words


def _step_problem(step: object, verbs: list[str]) -> tuple[str, str]:
    if verbs:
        return f"a step does one thing, this one {len(verbs)}: {', '.join(verbs)}", ""
    if not isinstance(step, dict) or not step:
        return "a step is a mapping such as `say: Hello`", ""
    word = str(next(iter(step)))
    return f"there is no step '{word}'", suggest(word, STEPS) or f"steps are {', '.join(STEPS)}"


def _subdocument(marked: YamlDocument, path: NodePath) -> YamlDocument:
    """The document below one of its nodes."""
    depth, below = len(path), YamlDocument(marked.file)
    below.keys = {at[depth:]: place for at, place in marked.keys.items() if at[:depth] == path}
    below.values = {at[depth:]: place for at, place in marked.values.items() if at[:depth] == path}
    return below
