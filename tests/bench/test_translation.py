"""The translation alone is the one that the server makes: whole in, whole out."""

import importlib
from itertools import count
from types import SimpleNamespace

import pytest

import gateway.model as m
from bench.measure import BenchFailure
from bench.model_service import answer
from bench.protocols import words
from bench.scenarios.translation import decode_response, translation


def test_what_the_model_says_is_heard_word_for_word() -> None:
    talk = words(40)
    said = decode_response(answer(talk))
    assert [event.delta for event in said if isinstance(event, m.BlockDelta)] == list(talk.deltas)
    assert isinstance(said[-1], m.MessageEnded)
    assert said[-1].usage.output_tokens == 40


def test_an_answer_that_is_cut_is_no_answer() -> None:
    with pytest.raises(BenchFailure, match="not read to its end"):
        decode_response(answer(words(3))[:-1])


def test_both_halves_and_the_whole_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock finds it a second later."""
    clock = SimpleNamespace(process_time=count().__next__)
    monkeypatch.setattr(importlib.import_module("bench.scenarios.translation"), "time", clock)
    rows = list(translation((50, 2)))
    assert [row.unit for row in rows] == ["µs/delta"] * 3
    assert [row.figures["dragoman"].median for row in rows] == [20_000, 20_000, 40_000]
