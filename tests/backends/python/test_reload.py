"""`dragoman serve --watch`: the next turn runs the new code, running turns the old, and broken code changes nothing."""

import os
from pathlib import Path

from tests.support.backends.function_server import heard, session_of, streaming, text_of, turn
from tests.support.server_process import running

AGENT = """\
import asyncio
from pathlib import Path

from song import LINE


async def reply(text):
    yield "VERSION "
    if text == "wait":
        await asyncio.to_thread(Path(__file__).with_name("pipe").read_bytes)
    yield LINE
"""


def version(word: str) -> str:
    return AGENT.replace("VERSION", word)


def test_code_is_exchanged_under_a_running_server(tmp_path: Path) -> None:
    (tmp_path / "bird.py").write_text(version("one"))
    (tmp_path / "song.py").write_text("LINE = 'la'\n")
    os.mkfifo(tmp_path / "pipe")
    agents = {"bird": {"backend": "python", "settings": {"agent": "bird:reply"}}}
    with running(tmp_path, "--watch", dialects={"aap": {}}, agents=agents) as server:
        session = session_of(server, "bird")

        def said() -> str:
            return text_of(turn(server, session, {"role": "user", "content": "go"}))

        assert said() == "one la"
        with streaming(server, "bird", "wait") as waiting:
            heard(waiting, "one")

            (tmp_path / "bird.py").write_text(version("two"))
            server.until_told('"reloaded"', 1)
            assert said() == "two la"

            (tmp_path / "song.py").write_text("LINE = 'tirili'\n")
            server.until_told('"reloaded"', 2)
            assert said() == "two tirili", "what it imports from beside it is read again, too"

            (tmp_path / "pipe").write_bytes(b"")
            heard(waiting, '{"delta":"la"}')  # the turn that ran finished with the old

        (tmp_path / "bird.py").write_text(version("three").replace("yield LINE", "yield (LINE"))
        told = server.until_told("reload_failed")
        assert f"{tmp_path}/bird.py:11:11: module 'bird' cannot be read: '(' was never closed" in told
        assert said() == "two tirili"

        (tmp_path / "bird.py").write_text(version("four"))
        server.until_told('"reloaded"', 3)
        assert said() == "four tirili"
        assert server.end() == 0
