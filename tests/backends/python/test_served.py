"""A function behind several client protocols: what docs and examples show, served for real and talked to."""

import os
import re
from pathlib import Path
from typing import Any

import yaml

from tests.support.backends.function_server import (
    ROOT,
    call_of,
    example_served,
    heard,
    result,
    session_of,
    shown,
    streaming,
    text_of,
    turn,
)
from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.gateway_server import Served, serving
from tests.support.server_process import running


async def posted(served: Served, path: str, body: Any) -> Any:
    async with served.http.post(served.url(path), json=body) as response:
        assert response.status < 300, await response.text()
        return await response.json()


async def said(served: Served, session: str, *messages: Any) -> list[dict[str, Any]]:
    """The messages that one AAP turn answers with."""
    answer = await posted(served, f"/aap/sessions/{session}/turns", {"messages": messages})
    return list(answer["messages"])


async def test_the_example_of_the_page_answers_in_several_dialects(tmp_path: Path) -> None:
    (tmp_path / "weather.py").write_text(shown("python"))
    async with serving(tmp_path, dialects=ALL_DIALECTS, **yaml.safe_load(shown("yaml"))) as served:
        session = (await posted(served, "/aap/sessions", {"agent": {"name": "weather"}}))["sessionId"]
        hello = {"role": "user", "content": "hello"}
        assert text_of(await said(served, session, hello)) == "You said: hello. Ask me about the weather."

        asking = await said(served, session, {"role": "user", "content": "the weather"})
        call = call_of(asking)
        assert call["input"]["questions"][0]["options"][1]["label"] == "Tomorrow"
        assert text_of(await said(served, session, result(call, "Tomorrow"))) == "Tomorrow it will be sunny in Ankara."

        again = await posted(served, "/api/v1/chat", {
            "message": "ahoy", "userId": "ann", "conversationId": session, "stream": False,
        })
        assert "You said: ahoy. Ask me about the weather." in str(again)

        async with served.http.get(served.url(f"/api/v1/cloud/sessions/{session}/events?limit=100")) as response:
            told = str(await response.json())
        assert "You said: hello. Ask me about the weather." in told
        assert "Tomorrow it will be sunny in Ankara." in told
        assert "You said: ahoy. Ask me about the weather." in told


# -- in a process of its own ------------------------------------------------------------------------------------------

def test_the_example_folder_is_ready_to_be_served(tmp_path: Path) -> None:
    with example_served(tmp_path) as server:
        session = session_of(server, "weather")
        call = call_of(turn(server, session, {"role": "user", "content": "weather"}))
        assert text_of(turn(server, session, result(call, "Today"))) == "Today it will be sunny in Ankara."
        assert server.end() == 0


def test_the_example_is_the_one_of_the_page() -> None:
    code = (ROOT / "examples" / "python" / "agent.py").read_text()
    assert code.partition('"""\n\n\n')[2] == shown("python")


def test_a_function_that_hangs_does_not_keep_the_server_from_ending(tmp_path: Path) -> None:
    code = "import threading\n\ndef reply():\n    yield 'x'\n    threading.Event().wait()\n"
    (tmp_path / "hanging.py").write_text(code)
    agents = {"hanging": {"backend": "python", "settings": {"agent": "hanging:reply"}}}
    limits = {"drain_seconds": 0.1}
    with (running(tmp_path, dialects={"aap": {}}, agents=agents, limits=limits) as server,
          streaming(server, "hanging", "go") as stream):
        heard(stream, "delta")
        assert server.end() == 0
        heard(stream, "stopReason")
        told = server.errors.read_text()
    assert f'"at":"{tmp_path}/hanging.py:5 in reply"' in told, "and the journal tells where it hangs"


BLOCKING = """\
from pathlib import Path


async def reply():
    yield "so "
    Path(__file__).with_name("pipe").read_bytes()
    yield "what"
"""


def test_a_function_that_blocks_the_server_is_named_in_its_journal(tmp_path: Path) -> None:
    (tmp_path / "blocking.py").write_text(BLOCKING)
    os.mkfifo(tmp_path / "pipe")
    agents = {"heavy": {"backend": "python", "settings": {"agent": "blocking:reply", "blocked_seconds": 0.3}}}
    with (running(tmp_path, dialects={"aap": {}}, agents=agents) as server,
          streaming(server, "heavy", "go") as stream):
        told = server.until_told("agent_blocks_event_loop")
        (tmp_path / "pipe").write_bytes(b"")
        heard(stream, "what")  # it was named, not stopped
        assert server.end() == 0
        [line] = [line for line in server.errors.read_text().splitlines() if "agent_blocks_event_loop" in line]
    assert line in told
    assert '"agent":"heavy"' in line
    assert re.search(rf'"at":"{re.escape(str(tmp_path))}/blocking.py:6 in reply"', line)
