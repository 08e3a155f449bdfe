"""The targets of the Makefile, without running what they run."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.child_commands import clean_environment

ROOT = Path(__file__).parents[2]
VERSION = "{}.{}".format(*sys.version_info)


def make(*words: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in clean_environment().items() if name != "PYTHON"}
    return subprocess.run(["make", *words], cwd=folder, capture_output=True, text=True, env=environment, timeout=120)


def test_help_lists_every_target() -> None:
    [phony] = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    listed = [line.split()[0] for line in make("help").stdout.splitlines()]
    assert listed == phony.split()


def test_every_target_that_has_a_name_is_listed() -> None:
    text = re.sub(r"^define .*?^endef$", "", (ROOT / "Makefile").read_text(), flags=re.MULTILINE | re.DOTALL)
    [phony] = re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert re.findall(r"^([\w-]+):(?!=)", text, re.MULTILINE) == phony.split()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for file in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / file, tmp_path)
    return tmp_path


def with_environment(folder: Path, version: str) -> None:
    (folder / ".venv/bin").mkdir(parents=True)
    for name in ("python", f"python{version}"):
        (folder / ".venv/bin" / name).symlink_to(sys.executable)


def test_the_environment_of_the_named_version_is_used(folder: Path) -> None:
    with_environment(folder, VERSION)
    assert ".venv/bin/python -m tests " in make("-n", "test", f"PYTHON={sys.executable}", folder=folder).stdout


def test_another_version_has_an_environment_of_its_own(folder: Path) -> None:
    with_environment(folder, "3.9")
    planned = make("-n", "test", f"PYTHON={sys.executable}", folder=folder).stdout
    assert f"making .venv-{VERSION} for Python {VERSION}; .venv has another version and stays as it is" in planned
    assert f".venv-{VERSION}/bin/python -m tests " in planned
    assert ".venv/bin/python -m tests " in make("-n", "test", folder=folder).stdout, "no interpreter was named"


def test_the_first_environment_is_that_of_the_named_interpreter(folder: Path) -> None:
    assert f"{sys.executable} -m venv .venv\n" in make("-n", "test", f"PYTHON={sys.executable}", folder=folder).stdout


def test_an_interpreter_that_cannot_be_run_is_refused(folder: Path) -> None:
    with_environment(folder, VERSION)
    done = make("test", "PYTHON=no-such-python", folder=folder)
    assert done.returncode == 2
    assert '"no-such-python" cannot be run' in done.stderr


@pytest.mark.parametrize(("words", "command"), [
    (["test", "WORKERS=5", "ARGS=-k one"], "-m tests --workers 5 -- -k one"),
    (["test", "ROOM=engine"], "--room engine --"),
    (["prove", "ARGS=--sample"], "-m tests.prove --sample"),
    (["kill", "ARGS=aap"], "-m conformance.faults.kill aap"),
    (["crash", "ARGS=--kills 3"], "-m tests.prove.crash --kills 3"),
    (["soak", "ARGS=--minutes 1"], "-m bench.soak --minutes 1"),
])
def test_a_target_hands_on_what_it_is_given(words: list[str], command: str, folder: Path) -> None:
    planned = re.sub(" +", " ", make("-n", *words, folder=folder).stdout)
    assert command in planned
