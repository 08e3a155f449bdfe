"""One Socket.IO connection: the handshake, events, acknowledgements, pings, and the end of every wait."""

import asyncio
from typing import Any

import pytest

from gateway.client import Acknowledgement, HttpClient, SocketIOConnection
from gateway.errors import BackendFailed, ConnectionLost, GatewayError, TimedOut
from gateway.ports import ParsedFrame, Timeouts

KEY = "sk-0123456789abcdef"
OPENED = '0{"sid":"a","pingInterval":25000,"pingTimeout":20000}'
PATIENCE = Timeouts(first_byte=10, idle=60, total=600)


class Packets:
    """A transport that a test has written; after its last packet nothing comes."""

    def __init__(self, *packets: str, reads: bool = True) -> None:
        self._left, self._reads = list(packets), reads
        self.sent: list[str] = []

    async def receive(self) -> str:
        if not self._left:
            await asyncio.Event().wait()
        return self._left.pop(0)

    async def send(self, packet: str) -> None:
        if not self._reads:
            await asyncio.Event().wait()
        self.sent.append(packet)

    async def close(self) -> None: ...


async def greeted(*packets: str, auth: dict[str, Any] | None = None) -> tuple[SocketIOConnection, Packets]:
    transport = Packets(OPENED, '40{"sid":"b"}', *packets)
    connection = SocketIOConnection(transport, HttpClient("http://there", secrets=(KEY,), timeouts=PATIENCE))
    await connection.greet(auth)
    return connection, transport


@pytest.mark.parametrize(("auth", "packet"), [(None, "40"), ({"token": KEY}, f'40{{"token":"{KEY}"}}')])
async def test_the_key_is_in_the_handshake_and_nowhere_else(auth: dict[str, Any] | None, packet: str) -> None:
    _, transport = await greeted(auth=auth)
    assert transport.sent == [packet]


async def test_a_refusal_is_quoted_without_the_key() -> None:
    connection = SocketIOConnection(
        Packets(OPENED, f'44{{"message":"{KEY}\\nis nobody"}}'), HttpClient("http://there", secrets=(KEY,)))
    with pytest.raises(BackendFailed, match=r"^http://there refused the connection: \*\*\* is nobody$"):
        await connection.greet({"token": KEY})


async def test_events_are_numbered_and_acknowledged() -> None:
    connection, transport = await greeted('42["a",{"n":1}]', '431[{"ok":true}]', '42["bare"]', '432[]', '42/,["b",2]')
    assert [await connection.emit("say", {"n": number}) for number in range(2)] == [1, 2]
    assert transport.sent[1:] == ['421["say",{"n":0}]', '422["say",{"n":1}]']
    received = [await connection.receive(5) for _ in range(5)]
    assert received == [
        ParsedFrame("a", {"n": 1}), Acknowledgement(1, {"ok": True}), ParsedFrame("bare", None),
        Acknowledgement(2, None), ParsedFrame("b", 2),
    ]


async def test_pings_are_answered_and_other_packets_passed_over() -> None:
    connection, transport = await greeted("2probe", "6", '42/other,["x",{}]', "b4AAAA", '42["a",{}]')
    assert await connection.receive(5) == ParsedFrame("a", {})
    assert transport.sent[1:] == ["3probe"]


@pytest.mark.parametrize(("packet", "error", "words"), [
    ("1", ConnectionLost, "ended the connection"), ("41", ConnectionLost, "ended the connection"),
    ('44{"message":"no"}', ConnectionLost, "ended the connection"),
    ("42{", BackendFailed, "not JSON"), ('42{"a":1}', BackendFailed, "not a list"),
    ("42[]", BackendFailed, "an event without a name"), ("42[7]", BackendFailed, "an event without a name"),
])
async def test_what_cannot_be_used_is_a_failure(packet: str, error: type[GatewayError], words: str) -> None:
    connection, _ = await greeted(packet)
    with pytest.raises(error, match=words):
        await connection.receive(5)


async def waited(coroutine: Any, error: type[GatewayError], words: str) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(error, match=words):
        await coroutine
    return loop.time() - began


async def test_every_wait_ends() -> None:
    """Time is simulated; a server that says how often it sends pings is not waited for longer than that."""
    connection, _ = await greeted()
    assert await waited(connection.receive(5), TimedOut, "did not answer in time") == 5
    assert await waited(connection.receive(500), ConnectionLost, "stopped sending pings") == 45
    upstream = HttpClient("http://there", timeouts=PATIENCE)
    assert await waited(SocketIOConnection(Packets(), upstream).greet(None), TimedOut, "there") == 10
    quiet = SocketIOConnection(Packets("0{}", "40"), upstream)
    await quiet.greet(None)
    assert await waited(quiet.receive(500), TimedOut, "has sent nothing for 60 seconds") == 60
    deaf = SocketIOConnection(Packets(reads=False), upstream)
    assert await waited(deaf.emit("a", {}), TimedOut, "does not read") == 60
