"""The command for Blade: an origin, a token, reports and exit codes."""

import json
from collections.abc import Callable
from pathlib import Path

import typer
from typer.testing import CliRunner

from conformance.command import conform
from conformance.faults.blade.server import BladeServer
from conformance.faults.fault import load_faults

KEY = "the-key-of-the-examiners"


def run(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(conform)
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output


def test_a_blade_server_is_examined_at_its_origin(in_background: Callable[[BladeServer], str], tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    url = in_background(BladeServer(key=KEY))
    code, said = run("blade", url, "--key", KEY, "--only", "BL-FLOW-04", "--only", "BL-REST-03", f"--report={report}")
    assert code == 0, said
    assert len(json.loads(report.read_text())["requirements"]) == 2
    assert KEY not in report.read_text()


def test_a_wrong_blade_server_gives_one(in_background: Callable[[BladeServer], str]) -> None:
    url = in_background(load_faults("blade")["history-backwards"].server(key=KEY))
    code, said = run("blade", url, "--key", KEY, "--only", "BL-FLOW-31")
    assert code == 1
    assert "failed BL-FLOW-31" in said
