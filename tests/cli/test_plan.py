"""`dragoman plan` says what a load needs, and what it assumes."""

import json
import re
from collections.abc import Callable

import pytest
from typer.testing import Result

Run = Callable[..., Result]


def test_a_plan_names_servers_and_what_decided_and_what_it_assumes(dragoman: Run) -> None:
    shown = dragoman("plan", "--sessions", "1000000", "--turns-per-second", "500", "--watchers", "2", "--spare", "3")
    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    assert lines[0] == "5,000 turns run at a time, with 15,000 open streams."
    assert re.match(r"replicas +\d+ \+ 3 spare +\d+ % +\d+ MB +(CPU|memory|connections) +\d+ %: a ", lines[3]), lines[3]
    assert re.match(r"primaries +\d+ +\d+ % ", lines[4])
    assert lines[6].startswith("Used most: ")
    assert all(line.startswith("- ") for line in lines[lines.index("Assumed:") + 1:])


def test_the_same_as_json(dragoman: Run) -> None:
    found = json.loads(dragoman("plan", "--turns-per-second", "500", "--json").stdout)
    assert found["demand"]["turns_per_second"] == 500
    assert found["replicas"]["count"] >= 1
    assert found["streams"] == 5000


def test_more_turns_need_more_replicas_and_a_smaller_margin_fewer(dragoman: Run) -> None:
    def replicas(*words: str) -> int:
        found = json.loads(dragoman("plan", "--turns-per-second", "2000", "--json", *words).stdout)
        return int(found["replicas"]["count"])

    assert replicas("--margin", "20") < replicas() < replicas("--deltas-per-turn", "400")


def test_without_a_load_it_says_what_one_machine_carries(dragoman: Run) -> None:
    shown = dragoman("plan").output.splitlines()
    assert re.match(r"One replica alone carries [\d.,]+ turns per second: [\d,]+ turns at a time", shown[0])
    assert "replica_turns" in json.loads(dragoman("plan", "--json").stdout)


@pytest.mark.parametrize(("words", "said"), [
    (("--sessions", "-5"), "--sessions: must be from 0 to 1,000,000,000,000, not -5"),
    (("--margin", "99", "--speed", "0"), "--margin: must be from 0 to 95, not 99\n--speed: must be more than 0"),
    (("--turns-per-second", "nan"), "--turns-per-second: must be from 0"),
    (("--sessions", "many"), "Invalid value for '--sessions'"),
    (("--replica-memory", "100"), "--replica-memory: 100 MB with a margin of 50 % are too little"),
    (("--turns-per-second", "1", "--replica-memory", "100"), "the load is too large"),
])
def test_mistakes_are_said(dragoman: Run, words: tuple[str, ...], said: str) -> None:
    shown = dragoman("plan", *words)
    assert shown.exit_code == 2
    assert said in shown.output
    assert "Traceback" not in shown.output
