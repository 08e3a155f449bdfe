"""The published JavaScript client over every transport: with and without a connection that breaks."""

from pathlib import Path

import pytest

from tests.support.dialects.blade.npm_client import ask_three_times, chat
from tests.support.gateway_server import serving


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client is installed here once."""
    return tmp_path_factory.mktemp("npm")


@pytest.mark.parametrize(("transports", "breaks"), [
    ("polling,websocket", False), ("websocket", False), ("polling", False), ("websocket", True),
    ("polling,websocket", True),
])
async def test_a_chat(tmp_path: Path, folder: Path, transports: str, breaks: bool) -> None:
    async with serving(tmp_path, dialects={"blade": {}}) as served:
        await chat(served, folder, transports, breaks=breaks)


async def test_each_question_gets_its_answer(tmp_path: Path, folder: Path) -> None:
    async with serving(tmp_path, dialects={"blade": {}}) as served:
        answers = await ask_three_times(served, folder)
    assert answers == ["You said: one", "You said: two", "You said: three"]
