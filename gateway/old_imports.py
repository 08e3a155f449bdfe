"""Old names that modules of users may still import from our packages."""

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def renamed(package: str, names: Mapping[str, str]) -> Callable[[str], object]:
    """Return a `__getattr__` for the package that maps old names to new ones (or `module:name`), with a warning."""

    def get(old: str) -> Any:
        if old not in names:
            raise AttributeError(f"module {package!r} has no attribute {old!r}")
        module, _, new = names[old].rpartition(":")
        words = f"{package}.{old} is called {module or package}.{new} now; the old name will be removed"
        warnings.warn(words, FutureWarning, stacklevel=2)
        return getattr(importlib.import_module(module or package), new)

    return get
