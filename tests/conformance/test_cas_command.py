"""The command line finds the CAS suite by its name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner

from conformance.command import conform
from conformance.faults.cas.server import CasServer


def test_conform_cas(in_background: Callable[[Any], str], tmp_path: Path) -> None:
    profile = tmp_path / "profile.yaml"
    profile.write_text("heartbeat: 0.2\nprompts: {text: Hello}\n")
    report = tmp_path / "report.json"
    app = typer.Typer()
    app.command()(conform)
    url = in_background(CasServer(key="the-key"))
    chosen = ["--only", "CAS-GEN-01", "--only", "CAS-SESS-06", "--only", "CAS-SSE-06"]
    arguments = ["cas", url, "--key", "the-key", "--profile", str(profile), "--report", str(report), *chosen]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "conforms" in result.output
    assert len(json.loads(report.read_text())["requirements"]) == 3
