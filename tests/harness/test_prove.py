"""`make prove` finds the proofs, runs them one after the other, and tells what became of each."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.prove import __main__ as prove
from tests.prove.proofs import InvalidProofs, find_proofs
from tests.support.child_commands import ChildCommand
from tests.support.proof_tree import FAILS, ProofTree

ROOT = Path(__file__).parents[2]
TELLS_ARGUMENTS = "import sys; print(*sys.argv[1:])"
HOUR = 60


@pytest.fixture
def tree(tmp_path: Path) -> ProofTree:
    return ProofTree(tmp_path)


def test_all_proofs_of_this_project_can_be_read() -> None:
    proofs = {proof.name: proof for proof in find_proofs(ROOT)}
    assert all(proof.sentence.endswith((".", "?", ")")) for proof in proofs.values())
    assert proofs["steadiness"].only_if_named
    assert sum(proof.minutes for proof in proofs.values() if not proof.only_if_named) < HOUR
    assert any(proof.sample is not None and not proof.measures for proof in proofs.values())


def test_proofs_run_in_their_order_and_are_told_in_a_table(tree: ProofTree, capsys: pytest.CaptureFixture[str]) -> None:
    tree.add("beta")
    tree.add("alpha")
    assert prove.main([], tree.root) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("[1/2 ")
    assert printed.index("alpha begins; 2 to go, about 2 min") < printed.index("alpha passed in ")
    assert printed.index("alpha passed in ") < printed.index("beta begins; 1 to go, about 1 min")
    table = printed[printed.index("what it proves"):]
    assert "alpha  passed" in table
    assert "The alpha holds." in table
    assert "2 passed; " in table
    assert tree.printed("alpha") == "all is well\n"


def test_a_proof_that_fails_is_shown_and_the_others_still_run(
        tree: ProofTree, capsys: pytest.CaptureFixture[str]) -> None:
    tree.add("alpha", FAILS)
    tree.add("beta")
    assert prove.main([], tree.root) == 1
    printed = capsys.readouterr().out
    assert "--- the last lines of .prove/alpha.log\none was lost\n---" in printed
    assert "The alpha holds. [exit code 3]" in printed
    assert "1 passed, 1 FAILED; " in printed


def test_pytest_files_are_run_by_pytest(few_plugins: None, tree: ProofTree) -> None:
    tests = "def test_one():\n    pass\n\n\ndef test_two():\n    assert False\n"
    tree.add("alpha", tests, file="test_alpha.py", extra=["sample: -k one"])
    assert prove.main(["--sample"], tree.root) == 0
    assert "1 passed, 1 deselected" in tree.printed("alpha")


def test_a_sample_may_name_a_file_of_the_proof(tree: ProofTree) -> None:
    tree.add("alpha", "", file="test_alpha.py", extra=["sample: tests/prove/alpha/test_alpha.py -x", "workers: 2"])
    [proof] = find_proofs(tree.root)
    assert proof.sample_command()[-2:] == ["tests/prove/alpha/test_alpha.py", "-x"]
    assert "tests/prove/alpha" not in proof.sample_command()
    assert "tests/prove/alpha" in proof.command(5)
    assert "-n 2" in " ".join(proof.command(5))


def test_the_sample_has_what_is_short_and_does_not_measure(
        tree: ProofTree, capsys: pytest.CaptureFixture[str]) -> None:
    tree.add("alpha", TELLS_ARGUMENTS, extra=["sample: --kills 3"])
    tree.add("beta", FAILS)
    tree.add("gamma", FAILS, extra=['sample: ""', "measures: true"])
    assert prove.main(["--sample"], tree.root) == 0
    assert tree.printed("alpha") == "--kills 3\n"
    assert "1 passed; " in capsys.readouterr().out
    assert prove.main(["--sample", "--only", "beta"], tree.root) == 2
    assert "has no sample: beta" in capsys.readouterr().err


def test_a_run_without_proofs_is_no_success(tree: ProofTree, capsys: pytest.CaptureFixture[str]) -> None:
    tree.add("alpha")
    assert prove.main(["--sample"], tree.root) == 2
    assert "there is nothing to run" in capsys.readouterr().err


def test_only_what_is_named(tree: ProofTree, capsys: pytest.CaptureFixture[str]) -> None:
    tree.add("alpha", FAILS)
    tree.add("beta", TELLS_ARGUMENTS, extra=["minutes: 7"])
    assert prove.main(["--only", "beta", "--", "--more", "words"], tree.root) == 0
    assert tree.printed("beta") == "--minutes 7 --more words\n"
    assert prove.main(["--only", "beta", "--more", "words"], tree.root) == 0
    assert tree.printed("beta") == "--minutes 7 --more words\n"
    for words in (["--", "--more"], ["--more", "words"]):
        assert prove.main(words, tree.root) == 2
        assert "name the proof with --only" in capsys.readouterr().err


def test_whoever_asks_for_more_than_a_proof_does_waits_for_it(tree: ProofTree) -> None:
    tree.add("alpha")
    [alpha] = find_proofs(tree.root)
    assert prove.Plan(tree.root, [alpha]).limit(alpha, float("inf")) == 16
    assert prove.Plan(tree.root, [alpha], further=["--seeds", "2000"]).limit(alpha, float("inf")) == float("inf")
    assert prove.Plan(tree.root, [alpha], minutes=5, further=["--seeds", "2000"]).limit(alpha, 5) == 5


def test_two_names_after_one_only_are_no_words_for_the_first(
    tree: ProofTree, capsys: pytest.CaptureFixture[str],
) -> None:
    tree.add("alpha")
    tree.add("beta")
    assert prove.main(["--only", "alpha", "beta"], tree.root) == 2
    assert capsys.readouterr().err == "make prove: beta: write --only before each name\n"


def test_an_unknown_name_gets_the_nearest(tree: ProofTree, capsys: pytest.CaptureFixture[str]) -> None:
    tree.add("steadiness")
    tree.add("soak")
    assert prove.main(["--only", "steadines"], tree.root) == 2
    assert capsys.readouterr().err == (
        "make prove: there is no proof 'steadines'; did you mean steadiness? There are: soak, steadiness\n")


def test_what_runs_only_if_named_is_told(tree: ProofTree, capsys: pytest.CaptureFixture[str]) -> None:
    tree.add("alpha")
    tree.add("beta", FAILS, extra=["only_if_named: it takes hours"])
    assert prove.main([], tree.root) == 0
    assert 'not part of this run: beta (it takes hours): make prove ARGS="--only beta"' in capsys.readouterr().out
    assert prove.main(["--only", "beta"], tree.root) == 1


def test_minutes_are_handed_down_in_shares(tree: ProofTree) -> None:
    tree.add("alpha", TELLS_ARGUMENTS, extra=["minutes: 30"])
    tree.add("beta", TELLS_ARGUMENTS, extra=["minutes: 10"])
    assert prove.main(["--minutes", "20"], tree.root) == 0
    assert tree.printed("alpha") == "--minutes 15\n"
    assert tree.printed("beta") == "--minutes 5\n"


def test_what_does_not_fit_is_not_run_and_that_is_no_success(
        tree: ProofTree, capsys: pytest.CaptureFixture[str]) -> None:
    tree.add("alpha", "", file="test_alpha.py", extra=["minutes: 30"])
    tree.add("beta", extra=["minutes: 10"])
    assert prove.main(["--minutes", "20"], tree.root) == 1
    printed = capsys.readouterr().out
    assert "The alpha holds. [takes about 30 min; " in printed
    assert "1 passed, 1 NOT RUN; " in printed


def test_a_proof_that_hangs_is_ended(
        tree: ProofTree, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    tree.add("alpha", "import signal; signal.pause()")
    monkeypatch.setattr(prove.Plan, "limit", lambda *given: 0.0)
    assert prove.main([], tree.root) == 1
    assert "1 NOT FINISHED; " in capsys.readouterr().out


def test_a_proof_that_is_silent_for_long_is_spoken_of(
        tree: ProofTree, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tree.root / "halfway")
    tree.add("alpha", "print('half of it', flush=True)\nopen('halfway', 'w').close()")
    wait, waits = ChildCommand.wait, []

    def a_minute(command: ChildCommand, seconds: float) -> bool:
        waits.append(seconds)
        return wait(command, seconds) if len(waits) > 1 else bool((tree.root / "halfway").read_text())

    monkeypatch.setattr(ChildCommand, "wait", a_minute)
    assert prove.main([], tree.root) == 0
    assert waits[0] == 60
    assert re.search(r"alpha has run for .* s: half of it", capsys.readouterr().out)


def test_the_whole_of_a_proof(tree: ProofTree, capsys: pytest.CaptureFixture[str]) -> None:
    (tree.root / "matrix.py").write_text(TELLS_ARGUMENTS)
    tree.add("alpha", FAILS, extra=["whole: matrix --all"])
    assert prove.main(["--only", "alpha", "--whole", "--", "aap"], tree.root) == 0
    assert tree.printed("alpha") == "--all aap\n"
    capsys.readouterr()


def test_the_list(tree: ProofTree, capsys: pytest.CaptureFixture[str]) -> None:
    tree.add("alpha", FAILS, extra=['sample: ""', "whole: matrix"])
    tree.add("beta", FAILS, extra=["measures: true", "only_if_named: it takes hours"])
    assert prove.main(["--list"], tree.root) == 0
    assert capsys.readouterr().out == (
        "alpha: The alpha holds.\n    about 1 min; in the sample; --whole runs matrix\n"
        "beta: The beta holds.\n    about 1 min; measures; only if named: it takes hours\n")


def test_everything_that_is_wrong_with_the_folders_is_told_at_once(tree: ProofTree) -> None:
    tree.add("alpha", extra=["minutes: soon", "colour: red"])
    tree.add("beta", file="other.py")
    (tree.folder("gamma") / "test_gamma.py").write_text("")
    with pytest.raises(InvalidProofs) as error:
        find_proofs(tree.root)
    alpha, beta, gamma = str(error.value).splitlines()
    assert alpha.startswith("tests/prove/alpha: proof.yaml: minutes: Input should be a valid number")
    assert "colour: Extra inputs are not permitted" in alpha
    assert beta == "tests/prove/beta: has neither test_*.py nor __main__.py"
    assert gamma.startswith("tests/prove/gamma: has no proof.yaml; write one with: sentence")
    assert prove.main([], tree.root) == 2


def test_ctrl_c_ends_all_that_a_proof_has_started(tree: ProofTree) -> None:
    """A server in a session of its own holds one end of a pipe: when the pipe ends, the server has."""
    os.mkfifo(tree.root / "line")
    tree.add("alpha", """
        import signal, subprocess, sys
        line = open("line", "w")
        server = [sys.executable, "-c", "import signal; print('serving', flush=True); signal.pause()"]
        subprocess.Popen(server, stdout=line, start_new_session=True)
        signal.pause()
    """)
    tree.add("beta")
    start = ("import sys; from pathlib import Path; from tests.prove.__main__ import main; "
             "sys.exit(main([], Path(sys.argv[1])))")
    run = subprocess.Popen([sys.executable, "-c", start, str(tree.root)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    with (tree.root / "line").open() as line:
        assert line.readline() == "serving\n"
        run.send_signal(signal.SIGINT)
        assert line.read() == ""
    printed, _ = run.communicate(timeout=120)
    assert run.returncode == 130
    assert "2 NOT RUN; " in printed
