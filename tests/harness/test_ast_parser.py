"""A finalizer that parses something does not disturb a parser that is at work."""

import ast
import gc
from collections.abc import Iterator

import pytest

SOURCE = f"x = [{','.join(f'f(a, b[{number}], lambda q: q + 1)' for number in range(2000))}]"


class Circle:
    """Garbage that only a collection finds, and whose end parses something, some calls deeper."""

    def __init__(self, ends: list[int]) -> None:
        self.circle, self.ends = self, ends

    def __del__(self) -> None:
        self._parse(5)
        self.ends.append(1)

    def _parse(self, depth: int) -> None:
        ast.parse("a.b(c)[d]") if depth == 0 else self._parse(depth - 1)


@pytest.fixture
def frequent_collections() -> Iterator[None]:
    usual = gc.get_threshold()
    gc.set_threshold(50, 2, 2)
    yield
    gc.set_threshold(*usual)


def test_garbage_that_parses_does_not_break_a_parser(frequent_collections: None) -> None:
    ends: list[int] = []
    for _ in range(10):
        for _ in range(40):
            Circle(ends)
        ast.parse(SOURCE)
    assert ends
    assert gc.isenabled()
