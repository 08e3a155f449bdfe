"""Counts the functions of our own packages that are entered while a block runs, in the thread of the block."""

import dis
import gc
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType, FrameType
from typing import Any

PACKAGES = ("gateway", "adapters", "mappings")
ELSEWHERE: ContextVar[bool] = ContextVar("ELSEWHERE", default=False)
"""True in whatever belongs to another server of the same process: nothing is counted there."""
INLINED = ("<listcomp>", "<dictcomp>", "<setcomp>")
"""Since Python 3.12 these are lines of the function around them, so they are not counted with Python 3.11 either."""

RESUME = dis.opmap["RESUME"]
"""The instruction at which a function begins or goes on."""


class Trace:
    """What was entered: how often, how deeply nested at first, and the longest row of functions that were open at once.

    A function is entered when it is called, and a generator or coroutine also each time it is resumed. Functions are in
    the order in which they were entered first. A name is `module:Class.function`; a lambda has its line, too.
    """

    def __init__(self, packages: Sequence[str] = PACKAGES) -> None:
        self.entries: Counter[str] = Counter()
        self.nesting: dict[str, int] = {}
        self.deepest: list[str] = []
        self._packages = frozenset(packages)
        self._open: list[tuple[FrameType, str]] = []
        self._names: dict[int, tuple[CodeType, str]] = {}

    @property
    def modules(self) -> set[str]:
        return {name.partition(":")[0] for name in self.entries}

    def hook(self, frame: FrameType, happened: str, given: Any) -> None:
        """The callback for sys.setprofile."""
        if happened == "call":
            if (name := self._name(frame)) and not ELSEWHERE.get() and not _is_dropped(frame):
                self._enter(frame, name)
        elif happened == "return" and self._open and self._open[-1][0] is frame:
            self._open.pop()

    def _enter(self, frame: FrameType, name: str) -> None:
        self.entries[name] += 1
        self.nesting.setdefault(name, len(self._open))
        self._open.append((frame, name))
        if len(self._open) > len(self.deepest):
            self.deepest = [each for _, each in self._open]

    def _name(self, frame: FrameType) -> str:
        """Empty if the function is not one of ours. The code is kept, so that no other code gets the same id."""
        code = frame.f_code
        known = self._names.get(id(code))
        if known is None:
            known = self._names[id(code)] = code, self._full_name(frame)
        return known[1]

    def _full_name(self, frame: FrameType) -> str:
        module, code = str(frame.f_globals.get("__name__", "")), frame.f_code
        if module.partition(".")[0] not in self._packages or code.co_name in INLINED:
            return ""
        if code.co_filename == "<string>" and "self" in frame.f_locals:  # what dataclasses write
            return f"{module}:{type(frame.f_locals['self']).__qualname__}.{code.co_name}"
        line = f" (line {code.co_firstlineno})" if code.co_name.startswith("<") else ""  # <lambda>, <genexpr>
        return f"{module}:{code.co_qualname}{line}"


def _is_dropped(frame: FrameType) -> bool:
    """Whether a generator expression is closed before its end, as `any` does: later versions than 3.11 do not tell."""
    return frame.f_code.co_name == "<genexpr>" and frame.f_code.co_code[frame.f_lasti] != RESUME


@contextmanager
def tracing(packages: Sequence[str] = PACKAGES) -> Iterator[Trace]:
    """Count until the block ends. Garbage is not collected meanwhile: it would end generators at any moment."""
    trace, was_collecting = Trace(packages), gc.isenabled()
    gc.collect()
    gc.disable()
    sys.setprofile(trace.hook)
    try:
        yield trace
    finally:
        sys.setprofile(None)
        if was_collecting:
            gc.enable()
