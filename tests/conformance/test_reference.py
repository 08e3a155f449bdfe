"""The correct server of every dialect passes entirely, and finds itself as it was before the examination."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from conformance.kit.suite import dialects, load_suite
from conformance.kit.verdict import Verdict
from tests.support.conformance.examinations import troubles

Recorded = Callable[[str], Awaitable[Any]]


@pytest.mark.parametrize("dialect", dialects())
async def test_the_reference_server_conforms(recorded: Recorded, dialect: str) -> None:
    live = (await recorded(dialect)).live
    assert troubles(live) == []
    assert (live.verdict, live.exit_code) == (Verdict.CONFORMS, 0)
    assert len(live.results) == len(load_suite(dialect).cases)


@pytest.mark.parametrize("dialect", dialects())
async def test_a_server_is_left_as_it_was_found(recorded: Recorded, dialect: str) -> None:
    whole = await recorded(dialect)
    before, after = whole.lists
    assert after == before
    assert "heirs" in str(before) or "Not yours" in str(before) or "sessionId" in str(before)
    before, after = whole.held
    assert after == before
    assert any(before.values())
