"""Our own server before every examiner there is: no MUST and no SHOULD fails, and nothing is left untested."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from gateway.resources import KeyStore
from tests.tables import DIALECTS, dialect
from tests.test_serving import Running, running

ROOT = Path(__file__).parents[1]
QUICK = {"zenflux": {"tick_seconds": 1}}
"""Settings that save the examiners a wait."""
AT_THE_ORIGIN = ("blade", "zenflux")
WITHOUT_KEYS = ("zenflux",)
"""Its clients have no place for a key, and its examiner asks that none be wanted."""


@contextmanager
def examined(folder: Path, auth: str) -> Iterator[tuple[Running, str]]:
    """All dialects at once, and a key."""
    key = KeyStore(folder / "data").add("examiner")
    dialects = {name: QUICK.get(name, {}) for name in DIALECTS}
    with running(folder, auth=auth, dialects=dialects) as served:
        yield served, key


def profile(name: str, folder: Path) -> Path:
    """The examiners' own profile, with our shorter waits."""
    told = yaml.safe_load((ROOT / f"conformance/{name}/profile.yaml").read_text())
    if name == "zenflux":
        told["heartbeat"] = QUICK["zenflux"]["tick_seconds"]
    (folder / "profile.yaml").write_text(yaml.safe_dump(told))
    return folder / "profile.yaml"


@pytest.mark.parametrize("name", DIALECTS)
def test_we_conform(name: str, tmp_path: Path) -> None:
    with examined(tmp_path, "none" if name in WITHOUT_KEYS else "keys") as (served, key):
        address = served.address + ("" if name in AT_THE_ORIGIN else dialect(name).mount)
        done = subprocess.run(
            [sys.executable, "-m", "gateway", "conform", name, address, "--key", key, "--profile",
             str(profile(name, tmp_path)), "--report", str(tmp_path / "report.json"), "--allow-destructive"],
            capture_output=True, text=True, timeout=55, cwd=ROOT,
        )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    troubled = [one["id"] for one in report["requirements"] if one["outcome"] in ("failed", "not testable")]
    assert troubled == []
    assert key not in done.stdout + (tmp_path / "report.json").read_text()
