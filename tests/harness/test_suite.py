"""`make test` runs lint, types and tests, whichever fails, and tells what it took and what it left out."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.__main__ import counted, find_rooms, main
from tests.support.proof_tree import ProofTree

ROOT = Path(__file__).parents[2]
TOOL = """\
import sys
from pathlib import Path
print("{name} was called with", *(word for word in sys.argv[1:] if "junit" not in word), flush=True)
for word in sys.argv[1:]:
    if word.startswith("--junit-xml="):
        Path(word[12:]).write_text('<testsuites><testsuite tests="9001" failures="{code}"/></testsuites>')
sys.exit({code})
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with rooms, proofs, and tools that do nothing."""
    for file in ("tests/engine/test_turn.py", "tests/adapters/aap/test_wire.py", "tests/property/test_laws.py",
                 "tests/support/test_x.py", "gateway/engine/turn.py", "adapters/aap/wire.py", "conformance/x.py",
                 "tests/conformance/test_x.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("")
    ProofTree(tmp_path).add("crash")
    for name in ("ruff", "mypy", "pytest"):
        set_tool(tmp_path, name, 0)
    return tmp_path


def set_tool(tree: Path, name: str, code: int) -> None:
    (tree / f"{name}.py").write_text(TOOL.format(name=name, code=code))


def test_what_passed_and_what_was_not_run_is_told(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--workers", "3", "--", "-k", "one"], tree) == 0
    printed = capfd.readouterr().out
    assert "ruff was called with check .\n" in printed
    called = re.findall(r"^pytest was called with .*--share=(\S+) .* -k one$", printed, re.MULTILINE)
    assert sorted(called) == ["1/3", "2/3", "3/3"]
    assert "mypy was called" not in printed, "types that are right are not spoken of"
    assert "lint passed, types passed, tests passed; 27,003 tests passed\n" in printed
    assert re.search(r"^\d.* s, \d.* s of CPU \(lint, types and tests\)$", printed, re.MULTILINE)
    assert printed.endswith("not run here: crash: make prove\n")


@pytest.mark.parametrize(("tool", "step"), [("ruff", "lint"), ("mypy", "types"), ("pytest", "tests")])
def test_whichever_fails_all_run_and_the_exit_code_is_1(
        tool: str, step: str, tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    set_tool(tree, tool, 1)
    assert main([], tree) == 1
    printed = capfd.readouterr().out
    assert f"{tool} was called with" in printed
    verdicts = dict(re.findall(r"\b(lint|types|tests) (passed|FAILED)(?=[,;])", printed.split(";")[0] + ";"))
    assert verdicts == {"lint": "passed", "types": "passed", "tests": "passed"} | {step: "FAILED"}
    assert ("9,000 tests passed, 1 failed" if tool == "pytest" else "9,001 tests passed\n") in printed


@pytest.mark.parametrize(("room", "ruff", "mypy", "tests"), [
    ("engine", "gateway/engine tests/engine", "-p gateway.engine", "tests/engine"),
    ("gateway/engine", "gateway/engine tests/engine", "-p gateway.engine", "tests/engine"),
    ("tests/engine", "gateway/engine tests/engine", "-p gateway.engine", "tests/engine"),
    ("aap", "adapters/aap tests/adapters/aap", "-p adapters.aap", "tests/adapters/aap"),
    ("adapters/aap", "adapters/aap tests/adapters/aap", "-p adapters.aap", "tests/adapters/aap"),
    ("adapters", "adapters tests/adapters", "-p adapters", "tests/adapters"),
    ("conformance", "conformance tests/conformance", "-p conformance", "tests/conformance"),
    ("property", "tests/property", None, "tests/property"),
])
def test_a_room_has_its_lint_types_and_tests(
        room: str, ruff: str, mypy: str | None, tests: str, tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    set_tool(tree, "mypy", 1)
    assert main(["--room", room], tree) == (1 if mypy else 0)
    printed = capfd.readouterr().out
    assert f"ruff was called with check {ruff}\n" in printed
    assert f"pytest was called with {tests}\n" in printed
    assert (f"mypy was called with {mypy}\n" in printed) if mypy else ("mypy" not in printed)
    assert printed.endswith("not run here: the other rooms: make test\n")


def test_an_unknown_room_gets_the_list(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--room", "engin"], tree) == 2
    assert capsys.readouterr().err == (
        "make test: there is no room 'engin'; did you mean engine? "
        "Rooms: aap, adapters, conformance, engine, property\n")


def test_the_rooms_of_this_project_mirror_its_sources() -> None:
    rooms = find_rooms(ROOT)
    assert str(rooms["engine"].sources) == "gateway/engine"
    assert str(rooms["zenflux"].sources) == "adapters/zenflux"
    assert str(rooms["mappings"].sources) == "mappings"
    assert rooms["pairs"].sources is None
    assert "support" not in rooms
    assert "prove" not in rooms


def test_tests_that_broke_off_are_not_counted(tmp_path: Path) -> None:
    assert counted([tmp_path / "none.xml"]) == "the tests did not come to their end"


def test_told_to_end_it_ends_its_tools_first(tree: Path) -> None:
    """The tool tells its end in the last line, which it can only do if it is interrupted and waited for."""
    (tree / "pytest.py").write_text(
        "import signal\ntry:\n    print('begun', flush=True)\n    signal.pause()\n"
        "except KeyboardInterrupt:\n    print('put away', flush=True)\n")
    start = ("import signal, sys; from pathlib import Path; from tests.__main__ import _terminated, main; "
             "signal.signal(signal.SIGTERM, _terminated); sys.exit(main([], Path(sys.argv[1])))")
    run = subprocess.Popen([sys.executable, "-c", start, str(tree)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert run.stdout
    for line in run.stdout:
        if line == "begun\n":
            run.send_signal(signal.SIGTERM)
    assert line == "put away\n"
    assert run.wait(300) == 128 + signal.SIGTERM
