"""Imports a library without optional libraries that it would import as well, and that we never use."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hidden_modules(*names: str) -> Iterator[None]:
    """Import in this block as if these libraries were not installed; what is imported already stays visible.

    structlog imports rich for tracebacks that we do not print, and python-socketio imports redis for a broker that we
    do not use: together 120 modules and 12 MB of a server that has just started.
    """
    hidden = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None makes an import fail
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
