"""The proof `hops` counts what is entered, and tells which figure is above its limit."""

import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.prove.hops.__main__ import load, main
from tests.prove.hops.counts import Counts, below, read_limits, table, violations, write_limits
from tests.prove.hops.tracer import ELSEWHERE, tracing

MODULE = """
def words():
    yield "one"
    yield "two"

class Reader:
    def read(self):
        return [word for word in words() if is_long(word)]

def is_long(word):
    return len(word) > 3
"""
COUNTS = Counts(entered=100, functions=40, modules=7, per_delta=12.5, per_delta_in_burst=3, nesting=9)


@pytest.fixture
def ours() -> Iterator[types.ModuleType]:
    module = types.ModuleType("gateway.traced")
    exec(compile(MODULE, "traced.py", "exec"), module.__dict__)
    yield module


def test_calls_and_resumed_generators_are_counted_in_the_order_of_their_first_entry(ours: types.ModuleType) -> None:
    reader = ours.Reader()
    with tracing() as trace:
        reader.read()
        Path("of a library").is_absolute()
    assert trace.entries == {"gateway.traced:Reader.read": 1, "gateway.traced:words": 3, "gateway.traced:is_long": 2}
    assert list(trace.entries) == ["gateway.traced:Reader.read", "gateway.traced:words", "gateway.traced:is_long"]
    assert trace.modules == {"gateway.traced"}
    assert trace.deepest == ["gateway.traced:Reader.read", "gateway.traced:words"]


def test_what_belongs_to_another_server_is_not_counted(ours: types.ModuleType) -> None:
    token = ELSEWHERE.set(True)
    with tracing() as trace:
        ours.is_long("word")
    ELSEWHERE.reset(token)
    assert not trace.entries


def test_a_turn_above_its_limit_is_told_and_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    limits, run = tmp_path / "limits.yaml", tmp_path / "run.json"
    write_limits({"aap": Counts(1, 10_000, 10_000, 10_000, 10_000, 10_000)}, limits)
    assert main(["--only", "aap", "--limits", str(limits), "--json", str(run)]) == 1
    printed, entered = capsys.readouterr().out, load(run)["aap"].entered
    assert printed.endswith(f"\naap: entered: {entered}, but the limit is 1\n")
    assert entered > 1


def test_limits_that_are_written_keep_those_of_other_turns(tmp_path: Path) -> None:
    limits = tmp_path / "limits.yaml"
    write_limits({"aap": COUNTS, "cas": COUNTS}, limits)
    write_limits({"aap": Counts(**{**COUNTS.figures(), "entered": 50})}, limits)
    assert read_limits(limits) == {"aap": {**COUNTS.figures(), "entered": 50}, "cas": COUNTS.figures()}


def test_a_turn_without_limits_is_told() -> None:
    limits = COUNTS.figures()
    assert violations({"aap": COUNTS}, {"aap": limits}) == []
    assert violations({"aap": COUNTS}, {"aap": {**limits, "per_delta": 12}}) == [
        "aap: per delta: 12.5, but the limit is 12"]
    assert len(violations({"aap": COUNTS}, {})) == len(limits)
    assert below({"aap": COUNTS}, {"aap": {**limits, "modules": 8}}) == ["aap"]


def test_a_comparison_shows_before_and_after() -> None:
    earlier = Counts(**{**COUNTS.figures(), "entered": 200})
    assert "200 → 100 (0.50)" in table({"aap": COUNTS}, {"aap": earlier})
