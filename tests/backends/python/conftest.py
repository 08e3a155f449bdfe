"""What is imported from a test's folder is forgotten after it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.backends import user_modules


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    path, modules, read = sys.path[:], set(sys.modules), dict(user_modules._LOADED)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if (file := getattr(sys.modules[name], "__file__", None)) and Path(file).name.startswith("agent"):
            del sys.modules[name]
    user_modules._LOADED.clear()
    user_modules._LOADED.update(read)
