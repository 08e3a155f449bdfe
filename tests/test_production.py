"""The page on production is true: its metrics are those that are there, its nginx is one that nginx takes."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.gateway_server import serving

PAGE = (Path(__file__).parents[1] / "docs" / "production.md").read_text()


async def test_every_metric_is_explained_and_no_other(tmp_path: Path) -> None:
    told = set(re.findall(r"`(dragoman_\w+?)(?:_total)?(?:\{[^}]*\})?`", PAGE))
    async with serving(tmp_path) as served:
        families = list(served.gateway.metrics.registry.collect())
    there = {family.name for family in families if family.name.startswith("dragoman_")}
    assert told == there


def test_nginx_takes_the_settings_that_are_shown(tmp_path: Path) -> None:
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if nginx is None and not os.environ.get("CI"):
        pytest.skip("there is no nginx here; `make test` installs it where it may")
    assert nginx is not None, "nginx is needed"
    [shown] = re.findall(r"^```nginx\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    port = shown.replace("listen 80;", f"listen unix:{tmp_path}/nginx.sock;")
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/nginx.pid;\nevents {{}}\nhttp {{\naccess_log off;\n{port}\n}}\n")
    done = subprocess.run(
        [nginx, "-t", "-c", str(tmp_path / "nginx.conf"), "-e", str(tmp_path / "errors"), "-p", str(tmp_path)],
        capture_output=True, text=True, timeout=60,
    )
    assert done.returncode == 0, done.stderr
