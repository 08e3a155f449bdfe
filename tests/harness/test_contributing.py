"""What CONTRIBUTING.md shows is there: targets, rooms, paths, options; its examples are run."""

import argparse
import inspect
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters import known_dialects
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


PATH = re.compile(r"`((?:tests|gateway|adapters|mappings|conformance|bench|docs|\.ci|\.github)(?:/[\w.<>]+)+)/?`")


def test_a_path_that_is_named_is_there() -> None:
    """A path with a place for a name is there under the name of every dialect."""
    named = {path for path in PATH.findall(PAGE) if "nova" not in path}
    meant = {path.replace("<dialect>", name) for path in named for name in known_dialects()}
    meant = {path for path in meant if "<" not in path}
    assert len(meant) > 40
    assert [path for path in sorted(meant) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", known_dialects())
def test_a_dialect_has_the_files_that_a_new_one_needs(name: str) -> None:
    named = [path.replace("nova", name) for path in PATH.findall(PAGE) if "nova" in path]
    assert len(named) > 8
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_targets_in_the_text_are_there() -> None:
    [phony] = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"`make ([a-z]+)", PAGE)) <= set(phony.split())


def test_an_example_is_a_test_that_passes() -> None:
    examples = blocks("python")
    assert examples
    for code in examples:
        names: dict[str, Any] = {"__name__": "example"}
        exec(code, names)
        [test] = [value for name, value in names.items() if name.startswith("test_")]
        if inspect.iscoroutinefunction(test):
            simulated(test())
        else:
            test()


def test_the_example_of_a_proof_is_one(tmp_path: Path) -> None:
    [said] = blocks("yaml")
    assert Proof.model_validate({**yaml.safe_load(said), "name": "example", "root": tmp_path})
