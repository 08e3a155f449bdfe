"""The command: arguments, reports, exit codes, and a quick start."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from conformance.command import conform
from conformance.faults.aap.server import AapServer
from conformance.faults.blade.server import BladeServer
from conformance.faults.fault import load_faults
from conformance.kit.suite import dialects, load_suite

FAULTS = load_faults("aap")
KEY = "the-key-of-the-examiners"
Serve = Callable[[AapServer], str]


def run(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(conform)
    return CliRunner().invoke(app, list(arguments))


def test_a_server_that_conforms_gives_zero_and_all_reports(in_background: Serve, tmp_path: Path) -> None:
    url = in_background(AapServer(key=KEY))
    wire, page, xml, told = (tmp_path / name for name in ("wire", "a.html", "a.txt", "deep/a.json"))
    reports = [f"--report={page}", f"--report=junit={xml}", f"--report={told}", f"--transcripts={wire}"]
    result = run("aap", url, "--key", KEY, "--only", "AAP-META-*,AAP-SESS-*", *reports)
    assert result.exit_code == 0, result.output
    assert "conforms" in result.output
    assert [line for line in result.stderr.splitlines() if "folder" in line] == [
        f"created the folder {told.parent}", f"created the folder {wire}"], "those that were there are not told of"
    for words in (f"wrote the html report to {page}", f"wrote the junit report to {xml}",
                  f"wrote the json report to {told}", f"transcripts to {wire}"):
        assert words in result.stdout
    body = json.loads(told.read_text())
    wanted = [item.id for item in load_suite("aap").catalogue.requirements if item.section in ("meta", "sessions")]
    assert [item["id"] for item in body["requirements"]] == wanted
    assert page.read_text().startswith("<!doctype html>")
    assert xml.read_text().startswith("<?xml")
    assert len(list(wire.iterdir())) == len(body["cases"])
    for path in (page, xml, told, *wire.iterdir()):
        assert KEY not in path.read_text()


def test_a_server_that_fails_gives_one(in_background: Serve) -> None:
    url = in_background(FAULTS["version-as-text"].server())
    result = run("aap", url, "--only", "AAP-META-01", "--only", "AAP-META-02")
    assert result.exit_code == 1
    assert "failed AAP-META-01" in result.output
    assert "failed AAP-META-02" not in result.output


def test_a_server_that_cannot_be_tested_gives_three(in_background: Serve, tmp_path: Path) -> None:
    profile = tmp_path / "profile.yaml"
    profile.write_text("prompts: {text: Hello}\n")
    url = in_background(AapServer())
    result = run("aap", url, "--profile", str(profile), "--only", "AAP-SSE-09")
    assert result.exit_code == 3
    assert "the profile has no entry `prompts.fail`" in result.output


def test_a_failed_should_still_gives_zero(in_background: Serve) -> None:
    url = in_background(FAULTS["blocks-refused"].server())
    result = run("aap", url, "--only", "AAP-TOOL-06", "--only", "AAP-META-01")
    assert result.exit_code == 0
    assert "failed AAP-TOOL-06" in result.output


def test_the_level_bounds_what_is_asked(in_background: Serve) -> None:
    url = in_background(FAULTS["blocks-refused"].server())
    result = run("aap", url, "--only", "AAP-TOOL-06", "--only", "AAP-META-01", "--level", "must")
    assert result.exit_code == 0
    assert "AAP-TOOL-06" not in result.output


def test_requirements_are_named_by_pattern_or_in_a_row(in_background: Serve) -> None:
    url = in_background(AapServer())
    result = run("aap", url, "--only", "AAP-META-*,AAP-SESS-01")
    assert result.exit_code == 0
    assert "meta.meta_is_version_three" in result.output and "sessions.a_session_is_created" in result.output
    assert "history." not in result.output


BASELINE = """\
dialect: aap
known_failures:
  - {requirement: AAP-META-01, reason: Version 4 is being tried out., expires: %s}
"""


@pytest.mark.parametrize(
    ("server", "expires", "code", "words"),
    [
        (FAULTS["version-as-text"].server, "2931-01-31", 0, "1 known: AAP-META-01; as the baseline says"),
        (FAULTS["version-as-text"].server, "2020-01-31", 1, "known.yaml:3: the entry for AAP-META-01 expired on"),
        (AapServer, "2931-01-31", 1, "known.yaml:3: AAP-META-01 passes; take it out of the baseline"),
    ],
)
def test_a_baseline_holds_or_fails_the_run(
    in_background: Serve, tmp_path: Path, server: Callable[[], AapServer], expires: str, code: int, words: str
) -> None:
    (tmp_path / "known.yaml").write_text(BASELINE % expires)
    url = in_background(server())
    result = run("aap", url, "--only", "AAP-META-*", "--baseline", str(tmp_path / "known.yaml"))
    assert result.exit_code == code, result.output
    assert words in result.output


def test_a_wrong_baseline_cannot_begin(tmp_path: Path) -> None:
    path = tmp_path / "known.yaml"
    path.write_text((BASELINE % "2931-01-31").replace("META-01", "META-1"))
    result = run("aap", "http://127.0.0.1:1/aap", "--baseline", str(path))
    assert result.exit_code == 2
    assert f"{path}:3: there is no requirement 'AAP-META-1'; do you mean 'AAP-META-01'?" in result.output


def test_reports_get_names_of_their_own(
    in_background: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kinds = [f"--report={kind}" for kind in ("html", "junit", "json", "markdown", "badge")]
    assert run("aap", in_background(AapServer()), "--only", "AAP-META-01", *kinds).exit_code == 0
    names = ["badge-aap.svg", "report-aap.html", "report-aap.json", "report-aap.md", "report-aap.xml"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert json.loads((tmp_path / "report-aap.json").read_text())["requirementSet"] == "2026-12"


def test_the_key_may_come_from_the_environment(in_background: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFORM_KEY", KEY)
    result = run("aap", in_background(AapServer(key=KEY)), "--only", "AAP-SESS-01")
    assert result.exit_code == 0
    assert KEY not in result.output


@pytest.mark.parametrize(("flags", "asked"), [((), False), (("--allow-destructive",), True)])
def test_what_is_destructive_needs_to_be_allowed(in_background: Serve, flags: tuple[str, ...], asked: bool) -> None:
    url = in_background(BladeServer(key=KEY))  # type: ignore[arg-type]
    result = run("blade", url, "--key", KEY, "--only", "BL-REST-16", *flags)
    assert ("--allow-destructive allows it" not in result.output) is asked
    assert (f"{'passed' if asked else 'not testable':<12} rest_more.an_empty_batch_is_refused") in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("esperanto", "http://127.0.0.1:1"), "there is no suite for 'esperanto'; there is one for: aap"),
        (("aap", "127.0.0.1:1"), "is not an http or https address"),
        (("aap", "http://127.0.0.1:1/aap"), "cannot be reached"),
        (("aap", "http://127.0.0.1:1/aap", "--only", "AAP-NO-99"), "no such requirement: AAP-NO-99"),
        (("aap", "http://127.0.0.1:1/aap", "--level", "ought"), "there is no level 'ought'"),
        (("aap", "http://127.0.0.1:1/aap", "--report", "a.pdf"), "say one of html, junit, json, markdown, badge"),
        (("aap", "http://127.0.0.1:1/aap", "--requirements", "1999-01"), "there is no set of requirements '1999-01'"),
        (("aap", "http://127.0.0.1:1/aap", "--baseline", "/no/such.yaml"), "cannot be read"),
        (("aap", "http://127.0.0.1:1/aap", "--profile", "/no/such.yaml"), "cannot be read"),
        (("aap", "http://127.0.0.1:1/aap", "--timeout", "0"), "timeout"),
        (("aap",), "say where the server is"),
    ],
)
def test_what_cannot_begin_gives_two_and_says_why(arguments: tuple[str, ...], words: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.output.replace("│", " ").split())


def test_a_wrong_address_is_told_in_one_line(in_background: Serve, tmp_path: Path) -> None:
    url = in_background(AapServer(key=KEY))
    origin = url.removesuffix("/aap")
    result = run("aap", origin, "--key", KEY, "--report", str(tmp_path / "report.html"))
    assert result.exit_code == 2
    assert result.output == (f"no server of aap answers at {origin} (GET /meta: 404, GET /sessions: 404); "
                             f"one answers at {url}: give that address\n")
    assert list(tmp_path.iterdir()) == []
    wrong = run("aap", url, "--key", "another-key")
    assert wrong.exit_code == 2
    assert wrong.output.endswith("(GET /meta: 401, GET /sessions: 401); is it the right key?\n")


@pytest.mark.parametrize("url", ["http://h:1/api/v1", "http://h:1/"])
def test_the_address_beside_a_recording_may_have_the_path_that_serve_prints(tmp_path: Path, url: str) -> None:
    asked = {"type": "request", "exchange": 1, "at": 0.1, "method": "GET", "path": "/api/v1/sessions", "headers": []}
    lines = [
        {"type": "recording", "version": 1, "dialect": "zenflux", "target": "http://h:1", "mount": "", "started": ""},
        asked,
        {"type": "response", "exchange": 1, "at": 0.2, "status": 500, "reason": "No", "headers": []},
        {"type": "end", "exchange": 1, "at": 0.3, "ending": "whole"},
    ]
    path = tmp_path / "traffic.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    result = run("zenflux", url, "--transcript", str(path), "--only", "ZF-GEN-0*")
    assert result.exit_code == 1, result.output
    assert "GET /api/v1/sessions" in result.output


@pytest.mark.parametrize("dialect", dialects())
def test_a_profile_is_printed_to_be_edited(dialect: str, tmp_path: Path) -> None:
    result = run(dialect, "--print-profile")
    assert result.exit_code == 0
    path = tmp_path / "profile.yaml"
    path.write_text(result.stdout)
    suite = load_suite(dialect)
    assert suite.read_profile(path) == suite.read_profile()
    assert result.stdout.startswith("# How to bring about")


def test_a_key_of_one_letter_blots_nothing(in_background: Serve, tmp_path: Path) -> None:
    url = in_background(FAULTS["version-as-text"].server(key="x"))
    report = tmp_path / "report.md"
    result = run("aap", url, "--key", "x", "--only", "AAP-META-01", "--report", str(report))
    assert result.exit_code == 1
    assert "expected" in result.output and "[redacted]" not in result.output
    assert "-H 'Authorization: Bearer '\"$KEY\"" in report.read_text()


def test_a_report_that_cannot_be_written_gives_two(in_background: Serve, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    url = in_background(AapServer())
    result = run("aap", url, "--only", "AAP-META-01", "--report", str(tmp_path / "file" / "a.json"))
    assert result.exit_code == 2
    assert f"cannot write the report: the folder {tmp_path / 'file'} cannot be created: " in result.stderr
    assert "--report takes another place" in result.stderr


def test_help_has_an_example_and_the_module_runs() -> None:
    command = [sys.executable, "-m", "conformance", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "conform aap http://localhost:8080/aap" in " ".join(done.stdout.split())
    for option in ("--key", "--profile", "--only", "--level", "--baseline", "--report", "--transcripts", "--timeout",
                   "--allow-destructive", "--requirements", "--print-profile"):
        assert option in done.stdout


def test_importing_the_command_loads_nothing_heavy() -> None:
    heavy = ["aiohttp", "pydantic", "jsonschema_rs", "yaml", "conformance.aap", "conformance.kit.runner"]
    code = f"import sys, conformance.command; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"
