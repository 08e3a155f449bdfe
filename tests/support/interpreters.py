"""The interpreters of this machine, one for every version of Python that we support."""

import os
import subprocess
from pathlib import Path
from shutil import which

VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def version_of(python: str) -> str | None:
    """Its version, if it is an interpreter that runs."""
    words = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def installed() -> list[str]:
    """One interpreter of every version that is on the path or in pyenv's folder."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = []
    for version in VERSIONS:
        places = [which(f"python{version}"), *map(str, sorted(pyenv.glob(f"{version}.*/bin/python{version}")))]
        found += [place for place in places if place and version_of(place) == version][:1]
    return found
