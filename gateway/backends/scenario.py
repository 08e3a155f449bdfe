"""A scenario read from YAML: its turns and steps, or every problem it has, each at its place, all at once."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from gateway.marks import Marked, Path_, Problem, Problems, nearest, read, shape_problems
from gateway.model import AgentCard

from .steps import STEPS, Shape


class Rule(Shape):
    """What to do in a turn whose message fits `when`, a regular expression found anywhere in it."""

    when: re.Pattern[str] | None = None
    steps: list[Any]


class Scenario(Shape):
    """Rules are tried first, in order; a turn that fits none takes the next of `turns`, the last one over and over."""

    name: str = "scripted"
    title: str | None = None
    description: str | None = None
    rules: list[Rule] = []
    turns: list[Any] = []

    @property
    def card(self) -> AgentCard:
        return AgentCard(name=self.name, title=self.title, description=self.description)

    def steps(self, message: str, number: int) -> Sequence[Shape] | None:
        """What to do in the session's turn of that number (from 1); None where the scenario has run out."""
        for rule in self.rules:
            if rule.when is None or rule.when.search(message):
                return rule.steps
        return self.turns[min(number, len(self.turns)) - 1] if self.turns else None


def load(file: Path | str, text: str | None = None) -> Scenario:
    """Read a scenario; raises `Problems`."""
    marked = read(file, text)
    reader = _Reader(marked)
    scenario = reader.scenario() if not marked.problems else None
    if scenario is None or reader.problems or marked.problems:
        raise Problems([*marked.problems, *reader.problems])
    return scenario


class _Reader:
    """Walks the document; what cannot be read is noted and left out."""

    def __init__(self, marked: Marked) -> None:
        self.problems: list[Problem] = []
        self._marked = marked

    def scenario(self) -> Scenario | None:
        scenario = self._shape(Scenario, self._marked.value or {}, ())
        if not isinstance(scenario, Scenario):
            return None
        if not scenario.rules and not scenario.turns:
            self._problem((), "a scenario needs rules or turns")
        rules = [
            rule.model_copy(update={"steps": self._steps(rule.steps, ("rules", at, "steps"))})
            for at, rule in enumerate(scenario.rules)
        ]
        turns = [self._steps(steps, ("turns", at)) for at, steps in enumerate(scenario.turns)]
        return scenario.model_copy(update={"rules": rules, "turns": turns})

    def _steps(self, steps: Any, path: Path_) -> list[BaseModel]:
        if not isinstance(steps, list):
            self._problem(path, "a turn is a list of steps")
            return []
        made = [self._step(step, (*path, at)) for at, step in enumerate(steps)]
        return [step for step in made if step is not None]

    def _step(self, step: Any, path: Path_) -> BaseModel | None:
        verbs = [key for key in step if key in STEPS] if isinstance(step, dict) else []
        if len(verbs) != 1:
            self._problem(path, *_no_verb(step, verbs))
            return None
        made = self._shape(STEPS[verbs[0]], step, path)
        if made is None or not hasattr(made, "steps"):
            return made
        return made.model_copy(update={"steps": self._steps(made.steps, (*path, "steps"))})

    def _shape(self, model: type[BaseModel], value: Any, path: Path_) -> BaseModel | None:
        try:
            return model.model_validate(value)
        except ValidationError as error:
            words = [field.alias or name for name, field in model.model_fields.items()]
            self.problems.extend(shape_problems(error, _below(self._marked, path), {"": words}))
            return None

    def _problem(self, path: Path_, message: str, hint: str = "") -> None:
        self.problems.append(Problem(self._marked.place(path), message, hint))


def _no_verb(step: Any, verbs: list[str]) -> tuple[str, str]:
    if verbs:
        return f"a step does one thing, this one {len(verbs)}: {', '.join(verbs)}", ""
    if not isinstance(step, dict) or not step:
        return "a step is a mapping such as `say: Hello`", ""
    word = str(next(iter(step)))
    return f"there is no step '{word}'", nearest(word, STEPS) or f"steps are {', '.join(STEPS)}"


def _below(marked: Marked, path: Path_) -> Marked:
    """The document as seen from one of its nodes."""
    depth, below = len(path), Marked(marked.file)
    below.keys = {at[depth:]: place for at, place in marked.keys.items() if at[:depth] == path}
    below.values = {at[depth:]: place for at, place in marked.values.items() if at[:depth] == path}
    return below


class ScriptedSettings(Shape):
    """What config may say about a scripted agent."""

    scenario: Path = Field(description="The scenario file, seen from the folder of the config.")
