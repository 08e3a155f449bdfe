"""The packages that an extra of the project installs, as one gives them to pip in a shell."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def packages_of(extra: str) -> str:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return " ".join(f"'{need}'" for need in extras[extra])
