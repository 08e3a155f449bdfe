"""What a client has handed in is in history at once, also while its turn waits for more."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.adapters.aap_client import MINE, Client
from tests.support.gateway_server import serving


@pytest.fixture
async def aap(tmp_path: Path) -> AsyncIterator[Client]:
    async with serving(tmp_path) as served:
        yield Client(served)


async def asked(aap: Client) -> tuple[str, dict[str, str]]:
    """A session that waits for a result and a permission."""
    session = await aap.session(agent={"tools": [{"name": "calc"}]}, tools=[MINE])
    heard = await aap.turn(session, "/parallel")
    return session, {name: call_id for call_id, name, _ in heard.calls}


@pytest.mark.parametrize("kind", ["full", "compacted"])
async def test_a_result_is_in_history_before_the_turn_goes_on(aap: Client, kind: str) -> None:
    session, calls = await asked(aap)
    before = await aap.history(session, kind)
    result = {"role": "tool", "toolCallId": calls["mine"], "content": [{"type": "text", "text": "«ok»"}]}
    assert (await aap.turn(session, result)).stop == "tool_use"
    between = await aap.history(session, kind)
    assert between == [*before, result]
    granted = {"role": "tool_permission", "toolCallId": calls["calc"], "granted": True}
    assert (await aap.turn(session, granted)).stop == "end_turn"
    after = await aap.history(session, kind)
    assert after[:len(between)] == between
    assert [message for message in after if message.get("toolCallId") == calls["mine"]] == [result]


async def test_a_decision_is_no_message(aap: Client) -> None:
    session, calls = await asked(aap)
    before = await aap.history(session)
    denied = {"role": "tool_permission", "toolCallId": calls["calc"], "granted": False}
    assert (await aap.turn(session, denied)).stop == "tool_use"
    assert await aap.history(session) == before
