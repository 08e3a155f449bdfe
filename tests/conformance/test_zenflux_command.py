"""The command line finds the ZenFlux suite by its name, at the origin of the server."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner

from conformance.command import conform
from conformance.faults.zenflux.server import ZenfluxServer
from conformance.zenflux.examination import SCHEMAS


def test_conform_zenflux(in_background: Callable[[Any], str], tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    app = typer.Typer()
    app.command()(conform)
    names = ("ZF-WS-01", "ZF-WS-19", "ZF-HTTP-3.1-01", "ZF-HTTP-3.13-01", "G-ZF-21")
    chosen = [word for name in names for word in ("--only", name)]
    arguments = ["zenflux", in_background(ZenfluxServer()) + "/", "--report", str(report), *chosen]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "conforms" in result.output
    outcomes = {item["id"]: item["outcome"] for item in json.loads(report.read_text())["requirements"]}
    assert outcomes == dict.fromkeys(names, "passed") | {"ZF-WS-19": "not applicable"}


def test_every_event_of_the_specification_has_its_schema() -> None:
    events = {name.removeprefix("event.") for name in SCHEMAS.names if name.startswith("event.")}
    parts = ("start", "delta", "stop")
    levels = {f"{level}_{part}" for level in ("message", "content", "conversation") for part in parts}
    others = {"session_start", "session_stopped", "session_end", "ping", "error", "done"}
    assert events == levels | others | {"rollback_options", "rollback_completed", "long_running_confirm"}
