"""`dragoman doctor`: says what keeps a server from running well here, and how to mend it."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from ..options import ConfigFile, DataFolder, has_settings, load_checked_settings, setting_overrides

if TYPE_CHECKING:
    from pathlib import Path

    from .machine import Finding

EXIT_PROBLEM = 1
MARKS = {"ok": "✓", "warning": "!", "problem": "✗"}


def doctor(
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
) -> None:
    """Look at versions, settings, port, files, rights, Redis, clock, proxy and TLS, and say how to mend what is wrong.

    Example: [b]dragoman doctor --config config.yaml[/b]

    Nothing is changed, and no secret is printed. The exit code is 1 if there is a problem; warnings do not count.
    """
    findings = list(find(config, data))
    is_well = all(finding.level != "problem" for finding in findings)
    if as_json:
        typer.echo(json.dumps({"ok": is_well, "findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        for finding in findings:
            typer.echo(f"{MARKS[finding.level]} {finding.topic:<9} {finding.text}")
            if finding.mend:
                typer.echo(f"  {'':<9} → {finding.mend}")
    raise typer.Exit(0 if is_well else EXIT_PROBLEM)


def find(file: "Path | None", data: "Path | None") -> Iterator["Finding"]:
    """Run all checks; those that need settings run only if the settings can be read."""
    from gateway import app
    from gateway.errors import GatewayError
    from gateway.yaml_positions import Problems

    from .machine import check_files, check_open_files, check_port, check_versions, ok, problem, warning
    from .services import check_bucket, check_clock, check_database, check_proxies, check_redis, check_tls

    yield from check_versions()
    try:
        config = load_checked_settings(file, setting_overrides(data=data))
        parts = app.describe_components(config)
    except Problems as found:
        for one in found.problems:
            hint = one.hint or "`dragoman init FILE` writes a file that explains every setting"
            yield problem("settings", f"{one.position}: {one.message}", hint)
        return
    except GatewayError as error:
        yield problem("settings", error.message, "see docs/troubleshooting.md")
        return
    name = config.display_path if has_settings(file) else "there is no config.yaml here: the demo"
    yield ok("settings", f"{name}; {'; '.join(parts)}")
    for line in config.warnings:
        yield warning("settings", line, "change the name in the settings")
    for check in (check_port, check_files, check_open_files, check_database, check_redis, check_bucket, check_clock,
                  check_proxies, check_tls):
        yield from check(config)
