"""A server in a process of its own, talked to over AAP with curl, for tests of functions."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from tests.support import fork_server
from tests.support.server_process import PROGRAM, Running

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "backends.md").read_text()
SECTION = PAGE.partition("## `python`: a function of yours")[2].partition("\n## ")[0]
Messages = list[dict[str, Any]]


def shown(language: str) -> str:
    """What the page about backends shows of functions."""
    [block] = re.findall(rf"^```{language}\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)
    return str(block)


@contextmanager
def example_served(folder: Path) -> Iterator[Running]:
    """The folder of the example as it is, but for the port and where data goes."""
    words = ["--config", str(ROOT / "examples/python/config.yaml"), "--port", "0", "--data", str(folder / "data")]
    errors = folder / "errors.txt"
    with errors.open("w") as told, fork_server.Popen(
        [*PROGRAM, "serve", *words], stdout=subprocess.PIPE, stderr=told, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"},
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, f"it ended: {errors.read_text()}"
            yield Running(process, [line], errors)
        finally:
            process.kill()


def curl(address: str, body: Any) -> str:
    command = ["curl", "-s", address, "-d", orjson.dumps(body)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout


def session_of(server: Running, agent: str) -> str:
    return str(orjson.loads(curl(f"{server.address}/aap/sessions", {"agent": {"name": agent}}))["sessionId"])


def turn(server: Running, session: str, *messages: Any) -> Messages:
    """The messages that a turn answers with."""
    answer = curl(f"{server.address}/aap/sessions/{session}/turns", {"messages": messages})
    return list(orjson.loads(answer)["messages"])


@contextmanager
def streaming(server: Running, agent: str, words: str) -> Iterator["subprocess.Popen[str]"]:
    """A turn in a session of its own, as it streams."""
    body = orjson.dumps({"stream": "delta", "messages": [{"role": "user", "content": words}]})
    address = f"{server.address}/aap/sessions/{session_of(server, agent)}/turns"
    with subprocess.Popen(["curl", "-sN", address, "-d", body], stdout=subprocess.PIPE, text=True) as stream:
        try:
            yield stream
        finally:
            stream.kill()


def heard(stream: "subprocess.Popen[str]", words: str) -> None:
    """Wait until the stream has said it."""
    assert stream.stdout is not None
    while words not in (line := stream.stdout.readline()):
        assert line, f"the stream ended before {words!r} was said"


def text_of(messages: Messages) -> str:
    return "".join(part["text"] for message in messages if message["role"] == "assistant"
                   for part in message["content"] if part["type"] == "text")


def call_of(messages: Messages) -> dict[str, Any]:
    """The one call there is in the messages."""
    [call] = [part for message in messages for part in message["content"] if part["type"] == "tool_use"]
    return dict(call)


def result(call: dict[str, Any], content: str) -> dict[str, str]:
    return {"role": "tool", "toolCallId": call["toolCallId"], "content": content}
