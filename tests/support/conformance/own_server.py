"""Our own server as it is examined: where its dialects are, what its profiles say, and the command that examines it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.support.dialect_tables import DIALECTS, dialect
from tests.support.key_stores import key_store
from tests.support.server_process import running

ROOT = Path(__file__).parents[3]
SETTINGS: dict[str, dict[str, Any]] = {name: {} for name in DIALECTS} | {"zenflux": {"tick_seconds": 1}}
"""All dialects at once, with settings that save the examiners a wait."""
AT_THE_ORIGIN = ("blade", "zenflux")
WITHOUT_KEYS = ("zenflux",)
"""Its clients have no place for a key, and its examiner asks that none be wanted."""
HANG = 600
"""Seconds that only an examination that hangs would need."""


def auth(name: str) -> str:
    return "none" if name in WITHOUT_KEYS else "keys"


def address(name: str, origin: str) -> str:
    return origin + ("" if name in AT_THE_ORIGIN else dialect(name).mount)


def profile(name: str, folder: Path) -> Path:
    """The examiners' own profile, with our shorter waits."""
    told = yaml.safe_load((ROOT / f"conformance/{name}/profile.yaml").read_text())
    if name == "zenflux":
        told["heartbeat"] = SETTINGS[name]["tick_seconds"]
    path = folder / "profile.yaml"
    path.write_text(yaml.safe_dump(told))
    return path


def assert_that_we_conform(name: str, folder: Path) -> None:
    """Start the server and the command as somebody would type them."""
    key, report = key_store(folder / "data").add("examiner"), folder / "report.json"
    with running(folder, auth=auth(name), dialects=SETTINGS) as served:
        done = subprocess.run(
            [sys.executable, "-m", "gateway", "conform", name, address(name, served.address), "--key", key,
             "--profile", str(profile(name, folder)), "--report", str(report), "--allow-destructive"],
            capture_output=True, text=True, timeout=HANG, cwd=ROOT,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    told = json.loads(report.read_text())
    assert [one["id"] for one in told["requirements"] if one["outcome"] in ("failed", "not testable")] == []
    assert key not in done.stdout + report.read_text()
