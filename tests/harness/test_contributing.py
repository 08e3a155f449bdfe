"""What CONTRIBUTING.md shows is there: targets, rooms, paths, options; its examples are run."""

import argparse
import re
import shlex
from pathlib import Path

import pytest
import yaml

from tests.__main__ import _named, find_rooms
from tests.prove.__main__ import _parser
from tests.prove.proofs import Proof, find_proofs
from tests.simulation import simulated

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


COMMANDS = [shlex.split(line, comments=True) for block in blocks("sh") for line in block.splitlines()]


@pytest.mark.parametrize("words", [words for words in COMMANDS if words[0] == "make"], ids=" ".join)
def test_a_make_command_can_be_given(words: list[str]) -> None:
    target, *settings = words[1:]
    given = dict(setting.split("=", 1) for setting in settings)
    [phony] = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert target in phony.split()
    if "ROOM" in given:
        assert _named(given["ROOM"], find_rooms(ROOT))
    if target == "prove":
        options = _options(shlex.split(given.get("ARGS", "")))
        assert set(options.only) <= {proof.name for proof in find_proofs(ROOT)}


def _options(words: list[str]) -> argparse.Namespace:
    return _parser().parse_args(words[:words.index("--")] if "--" in words else words)


def test_a_command_of_pytest_names_tests_that_are_there() -> None:
    named = [words[1] for words in COMMANDS if words[0] == ".venv/bin/pytest"]
    assert named
    assert all((ROOT / path).exists() for path in named)


def test_a_path_that_is_named_is_there() -> None:
    named = set(re.findall(r"`((?:tests|gateway|adapters|bench|\.ci)(?:/[\w.]+)+)`", PAGE))
    assert len(named) > 10
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_targets_in_the_text_are_there() -> None:
    [phony] = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"`make ([a-z]+)", PAGE)) <= set(phony.split())


def test_the_example_of_simulated_time_is_true() -> None:
    [code] = blocks("python")
    names: dict[str, object] = {}
    exec(code, names)
    [test] = [name for name in names if name.startswith("test_")]
    simulated(names[test]())  # type: ignore[operator]


def test_the_example_of_a_proof_is_one(tmp_path: Path) -> None:
    [said] = blocks("yaml")
    assert Proof.model_validate({**yaml.safe_load(said), "name": "example", "root": tmp_path})
