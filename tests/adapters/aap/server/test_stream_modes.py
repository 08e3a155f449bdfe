"""What a client gets at the end is what it would have heard on the way, whatever the agent does and asks."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.demo.directive_parser import ARGUMENT_PARSERS
from tests.simulation import simulated
from tests.support.dialects.aap.reader import TurnText, read, read_stream
from tests.support.examples import examples
from tests.support.gateway_server import Served, serving

CLIENT_TOOL = {"name": "weather", "description": "d", "parameters": {"type": "object"}}
AGENT = {"name": "demo", "tools": [{"name": "clock", "trust": True}, {"name": "calc"}, {"name": "search"}]}
WORDS = {"slow": "/slow 2", "burst": "/burst 5", "title": "/title A trip\n", "tool": '/tool calc {"expression": "6*7"}'}
DIRECTIVES = [WORDS.get(name, f"/{name}") for name in ARGUMENT_PARSERS]
QUICK = [words for words in DIRECTIVES if words != WORDS["slow"]]
PERMITTED = ("clock", "calc", "search")


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path, dialects={"aap": {}}, log="memory") as served:
        yield served


async def opened(served: Served) -> str:
    body = {"agent": AGENT, "tools": [CLIENT_TOOL]}
    async with served.http.post(served.url("/aap/sessions"), json=body) as response:
        return served.url(f"/aap/sessions/{(await response.json())['sessionId']}/turns")


async def told(served: Served, at: str, messages: list[dict[str, Any]]) -> TurnText:
    """What came at the end, held against the stream of the same turn in either mode."""
    async with served.http.post(at, json={"messages": messages}) as response:
        assert response.status == 200, await response.text()
        whole = read(await response.json())
    for mode in ("delta", "message"):
        async with served.http.get(f"{at}/current", params={"stream": mode}) as response:
            [heard] = read_stream(without_ids(await response.read()))
        assert whole == heard, mode
    return whole


def without_ids(stream: bytes) -> bytes:
    return b"\n".join(line for line in stream.split(b"\n") if not line.startswith((b"id: ", b"retry: ")))


def answers(heard: TurnText) -> list[dict[str, Any]]:
    """To everything that a turn has left open; a sub-agent is the server's own affair."""
    done = {call_id for call_id, _ in heard.results}
    return [
        {"role": "tool_permission", "toolCallId": call_id, "granted": True} if name in PERMITTED
        else {"role": "tool", "toolCallId": call_id, "content": "retry" if name == "choose_rollback" else "yes"}
        for call_id, name, _ in heard.calls if call_id not in done and name != "Agent"
    ]


async def talk(served: Served, at: str, words: str) -> list[TurnText]:
    """One message, and whatever must be answered until the agent is done."""
    turns = [await told(served, at, [{"role": "user", "content": words}])]
    while turns[-1].stop == "tool_use":
        assert len(turns) < 20
        assert answers(turns[-1]), f"nothing that could be answered in {turns[-1]}"
        turns.append(await told(served, at, answers(turns[-1])))
    return turns


@pytest.mark.parametrize("words", DIRECTIVES)
async def test_a_turn_that_is_not_streamed_is_the_stream_folded(served: Served, words: str) -> None:
    assert await talk(served, await opened(served), f"{words} and so on")


@pytest.mark.parametrize(("words", "name"), [
    ("/continue", "confirm_continue"), ("/rollback", "choose_rollback"), ("/fork-ask", None), ("/ask", None),
])
async def test_what_the_agent_asks_is_told_and_can_be_answered(served: Served, words: str, name: str | None) -> None:
    first, *_, last = await talk(served, await opened(served), words)
    assert first.stop == "tool_use"
    assert name in (None, first.calls[-1][1])
    assert last.stop == "end_turn"


@examples(20)
@given(chosen=st.lists(st.sampled_from(QUICK), min_size=2, max_size=4))
def test_so_are_turns_in_which_much_happens(chosen: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    async def run() -> None:
        async with serving(tmp_path_factory.mktemp("modes"), dialects={"aap": {}}, log="memory") as served:
            assert await talk(served, await opened(served), " ".join(chosen))

    simulated(run())
