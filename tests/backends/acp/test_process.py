"""The parts below an ACP agent: lines, inbox, peer, keeper and child, each by itself."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.acp import agent as agents
from gateway.backends.acp import json_rpc as peers
from gateway.backends.acp import process as children
from gateway.backends.acp.agent import AcpAgent
from gateway.backends.acp.json_rpc import JsonRpcPeer, RequestRefused
from gateway.backends.acp.process import ChildProcess, ProcessSupervisor
from gateway.backends.acp.session_folder import SessionFolder
from gateway.backends.acp.update_queue import UpdateQueue
from gateway.backends.acp.wire import LineSplitter, PromptResult, RpcMessage, SessionUpdate, decode_line, encode_line
from gateway.errors import BackendFailed, GatewayError, Overloaded, TimedOut
from tests.support.backends.acp_turns import settings
from tests.support.gateway_server import until

WORD = SessionUpdate(session_update="news")


async def python(code: str, folder: Path, **given: Any) -> ChildProcess:
    return await ChildProcess.start(sys.executable, ["-I", "-S", "-c", code], env={}, folder=folder, **given)


# -- lines ------------------------------------------------------------------------------------------------------------

@given(st.lists(st.binary(max_size=9).map(lambda line: line.replace(b"\n", b"")), max_size=9), st.data())
def test_lines_are_whole_wherever_they_are_cut(lines: list[bytes], data: Any) -> None:
    wire, reader, heard, at = b"".join(line + b"\n" for line in lines), LineSplitter(100), list[bytes](), 0
    while at < len(wire):
        upto = data.draw(st.integers(at + 1, len(wire)))
        heard += reader.feed(wire[at:upto])
        at = upto
    assert heard == [line.strip() for line in lines if line.strip()]


def test_a_line_may_be_so_long_and_no_longer() -> None:
    assert list(LineSplitter(4).feed(b"1234\n")) == [b"1234"]
    reader = LineSplitter(4)
    with pytest.raises(OverflowError, match="more than 4 bytes"):
        [line for piece in (b"12", b"34", b"5") for line in reader.feed(piece)]


def test_messages() -> None:
    assert decode_line(encode_line(id=1, method="x", params={"a": 1})) == RpcMessage(
        id=1, method="x", params=msgspec.Raw(b'{"a":1}')
    )
    for line in (b"", b"nonsense", b"[]", b"{}", b"7", b'{"id": null}', b'{"method": 7}', b"[" * 10_000, b"\xff"):
        assert decode_line(line) is None


# -- inbox ------------------------------------------------------------------------------------------------------------

async def test_an_inbox_keeps_order_and_ends_with_its_last_word() -> None:
    inbox = UpdateQueue()
    await inbox.put(WORD, 1)
    inbox.close(PromptResult())
    await inbox.put(WORD, 1)
    inbox.close(BackendFailed("too late"))
    assert [await inbox.get(), await inbox.get()] == [WORD, PromptResult()]
    assert inbox.empty


async def test_who_fills_an_inbox_waits_until_there_is_room() -> None:
    inbox = UpdateQueue(most=2)
    await inbox.put(WORD, 3)
    late = asyncio.create_task(inbox.put(WORD, 1))
    await asyncio.sleep(0)
    assert not late.done()
    await inbox.get()
    await asyncio.wait_for(late, 60)
    assert not inbox.empty


async def test_who_fills_an_inbox_while_people_think_is_cut_off() -> None:
    inbox = UpdateQueue(most=2, most_while_waiting=4)
    await inbox.put(WORD, 3)
    late = asyncio.create_task(inbox.put(WORD, 3))
    await asyncio.sleep(0)
    inbox.wait_for_people(True)
    await asyncio.wait_for(late, 60)
    await inbox.put(WORD, 1)
    assert [type(await inbox.get()) for _ in range(3)] == [SessionUpdate, SessionUpdate, Overloaded]
    assert inbox.closed.is_set()


# -- child and peer ---------------------------------------------------------------------------------------------------

STUBBORN = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(flush=True)
signal.pause()
"""


async def test_a_child_that_ignores_everything_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "GRACE_SECONDS", 0.2)
    child = await python(STUBBORN, tmp_path)
    assert await asyncio.wait_for(child.stdout.readline(), 60) == b"\n"
    await asyncio.wait_for(child.end(), 60)
    assert await child.exit_reason() == " (signal 9)"
    await child.end()


async def test_last_words_are_the_last_line_without_secrets(tmp_path: Path) -> None:
    code = "import sys; sys.stderr.write('first\\nthe key is abcdefgh' + 'x' * 5000)"
    child = await python(code, tmp_path, secrets=("abcdefgh",))
    await asyncio.wait_for(child.stdout.read(), 60)
    words = await child.exit_reason()
    assert words.startswith(" (exit code 0): the key is ***xxx")
    assert len(words) < 400
    await child.end()


ECHO = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    answer = {
        "fail": {"id": asked.get("id"), "error": {"code": -32000, "message": "no"}},
        "echo": {"id": asked.get("id"), "result": asked["params"]},
        "tell": {"method": "told", "params": asked["params"]},
    }.get(asked["method"])
    if answer: print(json.dumps(answer), flush=True)
"""


async def test_a_peer_asks_tells_and_is_told(tmp_path: Path) -> None:
    told = asyncio.Queue[RpcMessage]()
    peer = JsonRpcPeer(await python(ECHO, tmp_path), 1000, told.put)
    assert bytes(await peer.request("echo", {"a": "ü"}, 30)) == b'{"a": "\\u00fc"}'
    with pytest.raises(RequestRefused, match="refused fail: no") as refused:
        await peer.request("fail", {}, 30)
    assert refused.value.rpc_code == -32000
    await peer.notify("tell", [1])
    assert bytes((await asyncio.wait_for(told.get(), 60)).params) == b"[1]"
    with pytest.raises(TimedOut, match=r"did not answer silence within 0\.1 seconds"):
        await peer.request("silence", {}, 0.1)
    answers = list[RpcMessage | GatewayError]()
    await peer.begin("silence", {}, answers.append)
    await peer.close()
    assert [str(answer) for answer in answers] == ["the agent was ended"]
    with pytest.raises(BackendFailed, match="was ended"):
        await peer.request("echo", {}, 30)


async def test_who_stops_listening_is_as_good_as_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "EXIT_REASON_SECONDS", 0.05)
    told = asyncio.Queue[RpcMessage]()
    code = "import os, signal; os.close(0); print('{\"method\": \"closed\"}', flush=True); signal.pause()"
    peer = JsonRpcPeer(await python(code, tmp_path), 1000, told.put)
    await asyncio.wait_for(told.get(), 60)
    with pytest.raises(BackendFailed, match="closed its standard input"):
        await peer.request("echo", {"long": "x" * 1_000_000}, 30)
    await peer.close()


async def test_sessions_with_a_turn_are_not_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "MAX_SESSIONS", 2)
    agent = await AcpAgent.start(settings(), tmp_path)
    first = await agent.new_session("a", SessionFolder(tmp_path / "a"), [])
    inbox = await agent.prompt(first, [{"type": "text", "text": '[["hang"]]'}])
    idle, last = [await agent.new_session(name, SessionFolder(tmp_path / name), []) for name in "bc"]
    assert [agent.session(one.session_id) is one for one in (first, idle, last)] == [True, False, True]
    await agent.cancel(first)
    await asyncio.wait_for(inbox.closed.wait(), 60)
    await agent.close()


async def test_an_agent_that_is_greeted_tells_what_it_can(tmp_path: Path) -> None:
    agent = await AcpAgent.start(settings("--images", auth_method="any"), tmp_path)
    assert agent.capabilities.takes_images
    assert not agent.capabilities.can_load
    assert agent.capabilities.mcp_transports == {"http"}
    assert agent.session("nobody") is None
    await agent.close()
    assert agent.broken is not None


async def test_one_that_writes_something_else_is_asked_whether_it_is_an_agent(tmp_path: Path) -> None:
    async def nobody(message: RpcMessage) -> None: ...

    peer = JsonRpcPeer(
        await python("import sys\nprint('Ready.', flush=True)\nsys.stdin.read()", tmp_path), 1000, nobody
    )
    await until(lambda: peer._garbage)
    with pytest.raises(TimedOut, match="wrote lines that are no messages; is it an agent of the protocol"):
        await peer.request("initialize", {}, 0.1)
    await peer.close()


# -- keeper -----------------------------------------------------------------------------------------------------------

class Lamp:
    def __init__(self) -> None:
        self.broken: GatewayError | None = None
        self.closed = 0

    async def close(self) -> None:
        self.closed += 1


async def test_a_keeper_has_one_and_replaces_it_when_it_breaks() -> None:
    now, made = 0.0, list[Lamp]()

    async def start() -> Lamp:
        await asyncio.sleep(0)
        made.append(Lamp())
        return made[-1]

    keeper = ProcessSupervisor(start, 2, clock=lambda: now)
    first, same = await asyncio.gather(keeper.ready(), keeper.ready())
    assert first is same
    first.broken = BackendFailed("out")
    assert await keeper.ready() is made[1]
    assert first.closed == 1
    made[1].broken = BackendFailed("out")
    now = 59.0
    with pytest.raises(Overloaded, match=r"started 2 times within a minute.*; the last time: out$") as refused:
        await keeper.ready()
    assert refused.value.details == {"retry_after": 1}
    now = 60.0
    assert await keeper.ready() is made[2]
    await keeper.close()
    await keeper.close()
    assert [lamp.closed for lamp in made] == [1, 1, 1]
