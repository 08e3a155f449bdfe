"""The pytest plugin: every requirement is a test, and the session ends as a person who reads its exit code expects."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.faults.aap.server import AapServer
from conformance.faults.fault import load_faults

pytest_plugins = ["pytester"]
KEY = "the-key-of-the-examiners"
Serve = Callable[[AapServer], str]
QUIET = ("-p", "no:cacheprovider", "-o", "asyncio_default_fixture_loop_scope=function")
LEAN = ("-p", "no:hypothesispytest", "-p", "no:aiohttp", "-p", "no:asyncio", "-p", "no:anyio", "-p", "no:timeout")
"""For processes of their own: without the plugins that have nothing to do with it, half of their imports."""
HANG = 120
"""Seconds that only a session that hangs would need."""


@pytest.fixture
def run(pytester: pytest.Pytester) -> Callable[..., pytest.RunResult]:
    """A session in an empty folder; `test_the_key_may_come_from_the_environment` has one in a process of its own."""

    def go(url: str, *options: str) -> pytest.RunResult:
        about = ("--conform-dialect", "aap", "--conform-url", url, "--conform-key", KEY)
        return pytester.runpytest_inprocess(*QUIET, *about, *options)

    return go


Run = Callable[..., pytest.RunResult]


def test_every_requirement_is_a_test(in_background: Serve, run: Run) -> None:
    result = run(in_background(AapServer(key=KEY)))
    result.assert_outcomes(passed=49)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["conforms: Agent Application Protocol, version 3 at http*, requirements 2026-12"])
    assert KEY not in result.stdout.str()


def test_a_failure_tells_what_was_expected_and_seen_and_how_to_see_it_again(in_background: Serve, run: Run) -> None:
    result = run(in_background(load_faults("aap")["version-as-text"].server(key=KEY)), "-k", "META")
    result.assert_outcomes(failed=1, passed=5)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*AAP-META-01 (must): GET /meta is answered with 200 and*",
            "*AAP 协议版本*",
            "  expected  the answer to GET /meta to fit the schema `meta`",
            "  seen      /version: *",
            "*> GET /meta",
            "*< 200 OK",
            "curl -sS -N 'http*/meta' -H 'Authorization: Bearer '\"$KEY\"",
            "FAILED *conform-aap::AAP-META-01*",
        ]
    )
    assert KEY not in result.stdout.str()


@pytest.fixture
def poor(tmp_path: Path) -> str:
    """A profile that can bring about very little."""
    (tmp_path / "poor.yaml").write_text("prompts: {text: Hello}\n")
    return str(tmp_path / "poor.yaml")


def test_a_must_that_cannot_be_tested_is_skipped_and_the_session_fails(
    in_background: Serve, run: Run, poor: str
) -> None:
    url = in_background(AapServer(key=KEY))
    result = run(url, "-k", "SSE-09 or META-01", "--conform-profile", poor, "-rs")
    result.assert_outcomes(passed=1, skipped=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    told = "a MUST could not be tested; --conform-allow-incomplete lets that pass"
    result.stdout.fnmatch_lines(["incomplete: *", told])
    result.stdout.fnmatch_lines(["SKIPPED * not testable: the profile has no entry `prompts.fail`*"])


def test_an_incomplete_examination_can_be_let_pass(in_background: Serve, run: Run, poor: str) -> None:
    url = in_background(AapServer(key=KEY))
    result = run(url, "-k", "SSE-09 or META-01", "--conform-profile", poor, "--conform-allow-incomplete")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["incomplete: *"])


def test_a_failed_should_is_an_expected_failure(in_background: Serve, run: Run) -> None:
    url = in_background(load_faults("aap")["blocks-refused"].server(key=KEY))
    result = run(url, "-k", "TOOL-06 or META-01", "-rx")
    result.assert_outcomes(passed=1, xfailed=1)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["XFAIL *conform-aap::AAP-TOOL-06 - should: expected *"])
    run(url, "-k", "TOOL-06 or META-01", "--conform-level", "must").assert_outcomes(passed=1)


BASELINE = """\
dialect: aap
known_failures:
  - {requirement: %s, reason: It is being mended., expires: 2931-01-31}
"""


def test_known_failures_are_expected(in_background: Serve, run: Run, tmp_path: Path) -> None:
    (tmp_path / "known.yaml").write_text(BASELINE % "AAP-META-01")
    url = in_background(load_faults("aap")["version-as-text"].server(key=KEY))
    result = run(url, "-k", "META or baseline", "--conform-baseline", str(tmp_path / "known.yaml"), "-rx")
    result.assert_outcomes(passed=6, xfailed=1)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["XFAIL *conform-aap::AAP-META-01 - known: It is being mended."])


def test_a_baseline_that_says_too_much_fails(in_background: Serve, run: Run, tmp_path: Path) -> None:
    (tmp_path / "known.yaml").write_text(BASELINE % "AAP-META-01")
    url = in_background(AapServer(key=KEY))
    result = run(url, "-k", "META or baseline", "--conform-baseline", str(tmp_path / "known.yaml"))
    result.assert_outcomes(passed=6, failed=1)
    result.stdout.fnmatch_lines(["*known.yaml:3: AAP-META-01 passes; take it out of the baseline"])


def test_tests_beside_it_run_if_they_are_named(in_background: Serve, run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_ours="def test_ours(): pass")
    url = in_background(AapServer(key=KEY))
    run(url, "-k", "META or ours").assert_outcomes(passed=6)
    run(url, "-k", "META or ours", "test_ours.py").assert_outcomes(passed=7)


def test_reports_are_written(in_background: Serve, run: Run, tmp_path: Path) -> None:
    url = in_background(AapServer(key=KEY))
    reports = (f"--conform-report=html={tmp_path / 'a.html'}", f"--conform-report={tmp_path / 'a.md'}")
    run(url, "-k", "META", *reports)
    assert "<h1>Agent Application Protocol, version 3</h1>" in (tmp_path / "a.html").read_text()
    assert (tmp_path / "a.md").read_text().startswith("# Agent Application Protocol, version 3: conforms")


def test_the_key_may_come_from_the_environment(
    in_background: Serve, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONFORM_KEY", KEY)
    url = in_background(AapServer(key=KEY))
    about = ("--conform-dialect", "aap", "--conform-url", url, "-k", "SESS-01")
    pytester.runpytest_subprocess(*LEAN, *about, timeout=HANG).assert_outcomes(passed=1)


def test_workers_examine_each_requirement_in_turn(in_background: Serve, run: Run, poor: str) -> None:
    url = in_background(AapServer(key=KEY))
    result = run(url, "-k", "SSE-09 or META", "-n", "2", "--conform-profile", poor, *LEAN)
    result.assert_outcomes(passed=5, failed=1, skipped=1)
    result.stdout.fnmatch_lines_random(["*the profile has no entry `prompts.fail`*"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--conform-dialect", "aap"), "--conform-url '' is not an http or https address"),
        (("--conform-dialect", "esperanto", "--conform-url", "http://x"), "there is no suite for 'esperanto'"),
        (("--conform-dialect", "aap", "--conform-url", "http://x", "--conform-level", "ought"), "no level 'ought'"),
        (("--conform-dialect", "aap", "--conform-url", "http://127.0.0.1:1"), "cannot be reached"),
    ],
)
def test_what_cannot_begin_says_why(pytester: pytest.Pytester, options: tuple[str, ...], words: str) -> None:
    result = pytester.runpytest_inprocess(*QUIET, *options)
    assert result.ret in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERRUPTED)
    assert words in result.stdout.str() + result.stderr.str()


def test_without_a_dialect_it_does_nothing_and_loads_nothing() -> None:
    heavy = ["aiohttp", "pydantic", "yaml", "jsonschema_rs", "orjson", "conformance.kit", "pytest"]
    code = f"import sys, conformance.plugin; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG, check=True)
    assert done.stdout.strip() == "[]"


def test_pytest_finds_the_plugin_by_itself(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess(*QUIET, "--help")
    result.stdout.fnmatch_lines(["conformance of a server:", "*--conform-dialect=*"])
