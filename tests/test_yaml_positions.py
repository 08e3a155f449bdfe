"""YAML that remembers where everything stands."""

from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from gateway.yaml_positions import Position, Problem, Problems, read_yaml, suggest, validation_problems

TEXT = """\
a: 1
b:
  - x
  - {c: 2, d: yes}
on: true
"""


def test_every_key_and_value_has_its_place() -> None:
    marked = read_yaml("f.yaml", TEXT)
    assert marked.value == {"a": 1, "b": ["x", {"c": 2, "d": True}], "on": True}
    assert marked.position(("b", 1, "c")) == Position("f.yaml", 4, 9)
    assert marked.position(("b", 1, "c"), key=True) == Position("f.yaml", 4, 6)
    assert marked.position(("b", 0)) == Position("f.yaml", 3, 5)
    assert marked.position(("b", 1, "nowhere")) == Position("f.yaml", 4, 5), "the nearest node that exists"
    assert marked.position(("nowhere",)) == Position("f.yaml", 1, 1)


@pytest.mark.parametrize(("text", "told"), [
    ("a: 1\na: 2\n", "f.yaml:2:1: 'a' is here a second time; the first is in line 1"),
    ("a: [1\n", "f.yaml:2:1: not YAML"),
    ("? [a]\n: 1\n", "f.yaml:1:3: a key must be a plain word"),
])
def test_what_cannot_be_read_is_a_problem_with_a_place(text: str, told: str) -> None:
    [problem] = read_yaml("f.yaml", text).problems
    assert str(problem).startswith(told)


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    assert "no such file" in str(read_yaml(tmp_path / "none.yaml").problems[0])
    (tmp_path / "bad.yaml").write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in str(read_yaml(tmp_path / "bad.yaml").problems[0])
    assert "cannot be read" in str(read_yaml(tmp_path).problems[0])


def test_an_alias_stands_where_it_is_used() -> None:
    marked = read_yaml("f.yaml", "a: &x {k: 1}\nb: *x\n")
    assert marked.value == {"a": {"k": 1}, "b": {"k": 1}}


def test_a_hint_names_what_was_probably_meant() -> None:
    assert suggest("porrt", ["host", "port"]) == "did you mean 'port'?"
    assert suggest("zzz", ["host", "port"]) == ""


def test_problems_are_told_in_the_order_of_the_file() -> None:
    problems = Problems([Problem(Position("f", 9), "late"), Problem(Position("f", 2, 7), "early", "do this")])
    assert str(problems) == "f:2:7: early; do this\nf:9:1: late"


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")

    c: int
    e: int


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    a: str
    b: list[str | Inner]


def test_what_pydantic_finds_is_told_at_its_place() -> None:
    marked = read_yaml("f.yaml", TEXT)
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(marked.value)
    told = [str(problem) for problem in validation_problems(caught.value, marked)]
    assert any(line.startswith("f.yaml:1:4: a: must be a string") for line in told)
    assert any("f.yaml:4:5: 'e' is missing" in line for line in told)
    assert any("f.yaml:5:1: there is no setting 'on'" in line for line in told)
