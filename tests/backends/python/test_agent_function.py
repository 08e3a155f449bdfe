"""The function is found, its parameters are given by name, and every mistake is told at its line beforehand."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import gateway.model as m
from gateway.composition import load_components
from gateway.config import load_config
from gateway.yaml_positions import Problems
from tests.support.backends.function_backends import loaded, write_module
from tests.support.backends.turn_driver import FakeTurn

FUNCTIONS = """
import functools

def everything(turn, text, history, settings): return [turn, text, history, settings]
def some(text, city, day="Monday"): return (text, city, day)
def positional(text, /, *, city): return (text, city)
def rest(text, **more): return (text, more)
def nothing(): return ()
class Bot:
    def __call__(self, text): return text
bot = Bot()
halved = functools.partial(some, city="Izmir")
number = 7


def unknown(
    text, colour): pass
"""


@pytest.mark.parametrize(("name", "options", "called"), [
    ("some", {"city": "Ankara"}, ("ahoy", "Ankara", "Monday")),
    ("some", {"city": "Ankara", "day": "Friday"}, ("ahoy", "Ankara", "Friday")),
    ("positional", {"city": "Ankara"}, ("ahoy", "Ankara")),
    ("rest", {"city": "Ankara", "day": 1}, ("ahoy", {"city": "Ankara", "day": 1})),
    ("nothing", {}, ()),
    ("bot", {}, "ahoy"),
    ("halved", {}, ("ahoy", "Izmir", "Monday")),
])
def test_parameters_are_given_by_name(tmp_path: Path, name: str, options: dict, called: Any) -> None:
    turn = FakeTurn(m.SendMessage(content=(m.TextPart(text="ah"), m.TextPart(text="oy"))))
    agent = loaded(tmp_path, f"{write_module(tmp_path, FUNCTIONS)}:{name}", options=options)
    assert agent.call(turn) == called  # type: ignore[arg-type]


def test_every_function_may_have_these(tmp_path: Path) -> None:
    turn = FakeTurn(m.SendMessage(content="ahoy"))
    agent = loaded(tmp_path, f"{write_module(tmp_path, FUNCTIONS)}:everything")
    assert agent.call(turn) == [turn, "ahoy", turn.history, turn.settings]  # type: ignore[arg-type]


def told(folder: Path, settings: str) -> list[str]:
    """What `dragoman check` would say, the folder left out."""
    (folder / "config.yaml").write_text(
        f"dialects: {{aap: }}\nagents:\n  mine:\n    backend: python\n    settings:\n      {settings}\n")
    with pytest.raises(Problems) as caught:
        load_components(load_config(folder / "config.yaml"))
    return [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]


@pytest.mark.parametrize(("settings", "words"), [
    ("agent: NAME:unknown",
     "NAME.py:16:1: 'NAME:unknown' has a parameter 'colour' that nothing is known for; it may have turn, text, "
     "history, settings, and what stands under `options:`"),
    ("agent: NAME:unknown\n      options: {color: red}",
     "NAME.py:16:1: 'NAME:unknown' has a parameter 'colour' that nothing is known for; did you mean 'color'?"),
    ("agent: NAME:some\n      options: {city: x, dya: 1}",
     "config.yaml:7:31: options.dya: 'NAME:some' has no parameter 'dya'; did you mean 'day'?"),
    ("agent: NAME:rest\n      options: {text: x}",
     "config.yaml:7:23: options.text: 'text' is what every function is given, and cannot be an option"),
    ("agent: NAME:smoe", "config.yaml:6:14: agent: NAME.py has no function 'smoe'; did you mean 'some'?"),
    ("agent: NAME:number", "config.yaml:6:14: agent: NAME.py has no function 'number'"),
    ("agent: NAME:Bot", "config.yaml:6:14: agent: 'Bot' in NAME.py is a class; name it as `backend: NAME:Bot`"),
    ("agent: no_such_module:reply",
     "config.yaml:6:14: agent: no module named 'no_such_module' beside the settings or among the installed"),
    ("agent: just_a_word", "config.yaml:6:14: agent: should be `module:function`, as `parrot:reply`"),
    ("agnet: NAME:some", "config.yaml:6:7: there is no setting 'agnet'; did you mean 'agent'?"),
])
def test_every_mistake_is_told_at_its_line(tmp_path: Path, settings: str, words: str) -> None:
    name = write_module(tmp_path, FUNCTIONS)
    plain = [line.replace(name, "NAME") for line in told(tmp_path, settings.replace("NAME", name))]
    assert any(line.startswith(words) for line in plain), plain


@pytest.mark.parametrize(("code", "words"), [
    ("import os\n\ndef reply(:\n", ":3:11: module 'NAME' cannot be read: invalid syntax"),
    ("import os\nimport no_such_thing\n", ":2:1: module 'NAME' cannot be read: ModuleNotFoundError: No module named"),
    ("x = 1\ny = x / 0\n", ":2:1: module 'NAME' cannot be read: ZeroDivisionError: division by zero"),
    ("raise SystemExit(2)\n", ":1:1: module 'NAME' cannot be read: SystemExit: 2"),
])
def test_code_that_cannot_be_read_is_told_at_its_line(tmp_path: Path, code: str, words: str) -> None:
    name = write_module(tmp_path, code)
    [line] = told(tmp_path, f"agent: {name}:reply")
    assert line.startswith(f"{name}.py{words.replace('NAME', name)}")


def test_a_file_that_is_called_like_another_module_is_told(tmp_path: Path) -> None:
    (tmp_path / "token.py").write_text("def reply(): pass\n")
    [line] = told(tmp_path, "agent: token:reply")
    assert "the name 'token' is taken by" in line
    assert line.endswith("give token.py another one")


def test_limits_have_a_shape(tmp_path: Path) -> None:
    for wrong in ({"threads": 0}, {"blocked_seconds": 0}, {"options": []}):
        with pytest.raises(ValidationError):
            loaded(tmp_path, "a:b", **wrong)
