"""The proof `properties` runs property tests, and no others, with examples that follow from a seed."""

from pathlib import Path

import pytest
from hypothesis import settings

from tests.prove.properties.__main__ import main
from tests.support.examples import SEARCH, examples, local_constants

pytestmark = pytest.mark.usefixtures("few_plugins")

PROFILE = 'from hypothesis import settings; settings.register_profile("search", max_examples=5, derandomize=False)'
TESTS = """
from hypothesis import given, strategies as st

@given(st.integers(0, 10**12))
def test_small(number):
    with open("tried", "a") as file:
        print(number, file=file)
    assert number < {limit}

def test_of_another_kind():
    raise AssertionError
"""


def write(folder: Path, tests: str) -> None:
    (folder / "conftest.py").write_text(PROFILE)
    (folder / "test_it.py").write_text(tests)


@pytest.mark.parametrize(("limit", "code"), [(10**13, 0), (0, 1)])
def test_only_properties_are_tried_and_a_failure_is_told_with_its_seed(
    limit: int, code: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, TESTS.format(limit=limit))
    assert main(["--minutes", "0", "--seed", "7", "--workers", "0", "test_it.py"], tmp_path) == code
    printed = capfd.readouterr().out
    assert "round 1: --seed 7\n" in printed
    assert ("1 round, nothing found" if code == 0 else "failed with --seed 7") in printed


def test_another_seed_tries_other_examples(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, TESTS.format(limit=10**13))
    tried = []
    for seed in ("7", "7", "8"):
        (tmp_path / "tried").unlink(missing_ok=True)
        assert main(["--minutes", "0", "--seed", seed, "--workers", "0", "test_it.py"], tmp_path) == 0
        tried.append((tmp_path / "tried").read_text())
    assert tried[0] == tried[1] != tried[2]
    capfd.readouterr()


def test_no_property_test_is_no_success(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "def test_x(): pass\n")
    assert main(["--minutes", "0", "--workers", "0", "test_it.py"], tmp_path) == 1
    assert "there are no property tests here" in capfd.readouterr().out


def test_the_proof_tries_all_examples_and_a_test_run_a_part_of_them() -> None:
    usual = settings.get_current_profile_name()
    try:
        settings.load_profile(SEARCH)
        assert examples(150).max_examples == 150
        settings.load_profile("dragoman")
        assert [examples(most).max_examples for most in (150, 20, 5)] == [60, 10, 5]
    finally:
        settings.load_profile(usual)


def test_a_test_run_tries_no_constants_of_the_modules_that_happen_to_be_imported() -> None:
    assert len(local_constants()) == 0
