"""Puts the folder of a fifth dialect on the paths of the packages in which dialects are found."""

import importlib
import sys
from pathlib import Path

PACKAGES = ("adapters", "mappings", "conformance", "conformance.faults", "bench.dialects")
"""The packages with an `__init__`; those of the tests have none, so that the path of Python is enough for them."""


def put_on_path(folder: Path) -> None:
    """From now on everything that looks for dialects finds the one in this folder, too."""
    sys.path.append(str(folder))
    for package in PACKAGES:
        importlib.import_module(package).__path__.append(str(folder.joinpath(*package.split("."))))
