"""Scenarios are read whole, or every mistake in them is told at once."""

from pathlib import Path

import pytest

from gateway.backends.scripted import load_scenario
from gateway.backends.scripted.scenario_schema import STEPS
from gateway.yaml_positions import Problems

SCENARIOS = Path(__file__).parent / "scenarios"


def problems_of(text: str) -> list[str]:
    with pytest.raises(Problems) as found:
        load_scenario("s.yaml", text)
    return str(found.value).splitlines()


def test_every_problem_is_told_at_its_place() -> None:
    """After a change that is meant, write the new messages over the golden file."""
    text = (SCENARIOS / "broken.yaml").read_text()
    assert problems_of(text) == (SCENARIOS / "broken.txt").read_text().splitlines()


def test_an_empty_file_a_missing_one_and_one_that_is_no_yaml() -> None:
    assert problems_of("") == ["s.yaml:1:1: a scenario needs rules or turns"]
    assert problems_of("rules: [") == [
        "s.yaml:1:9: not YAML: while parsing a flow node, expected the node content, but found '<stream end>'",
    ]
    assert problems_of("just words")[0].startswith("s.yaml:1:1: ")
    with pytest.raises(Problems, match="there is no such file"):
        load_scenario(SCENARIOS / "nowhere.yaml")


def test_rules_come_first_then_the_turns_in_order_the_last_for_ever() -> None:
    scenario = load_scenario("s.yaml", """
rules: [ { when: rule, steps: [ { say: R } ] } ]
turns: [ [ { say: A } ], [ { say: B } ] ]
""")
    steps = [scenario.steps(message, number) for message, number in
             (("a rule", 1), ("x", 1), ("x", 2), ("x", 3))]
    assert [step[0].say for step in steps if step] == ["R", "A", "B", "B"]  # type: ignore[attr-defined]
    only_rules = load_scenario("s.yaml", "rules: [ { when: rule, steps: [] } ]")
    assert only_rules.steps("x", 1) is None


def test_a_verb_is_the_first_field_of_its_step() -> None:
    for verb, shape in STEPS.items():
        name, field = next(iter(shape.model_fields.items()))
        assert verb == (field.alias or name)
