"""The previous release as its users have it: a wheel that is built from its commit, and installed into a folder."""

import os
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[3]
NAMED = Path(__file__).with_name("previous_release.yaml")
HANG = 900


def install_previous_release(folder: Path) -> Path:
    """Build the wheel in this folder; return the folder with its packages, which PYTHONPATH may name."""
    commit = yaml.safe_load(NAMED.read_text())["commit"]
    tree, wheels, packages = folder / "tree", folder / "wheels", folder / "packages"
    tree.mkdir(parents=True)
    _run("git", "-C", ROOT, "archive", "--output", folder / "tree.tar", commit)
    _run("tar", "-x", "-f", folder / "tree.tar", "-C", tree)
    _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", wheels, tree)
    [wheel] = wheels.glob("*.whl")
    _run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", packages, wheel)
    return packages


def run_release(packages: Path, *words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `dragoman` of a release that is installed in a folder."""
    command = [sys.executable, "-c", "from gateway.cli import main; main()", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=HANG,
                          env={**os.environ, "PYTHONPATH": str(packages)})


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stdout + done.stderr
