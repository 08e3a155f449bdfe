"""What clients give in confidence is sealed where one server writes it to another, and whole where it arrives."""

from collections.abc import AsyncGenerator
from typing import Any
from uuid import uuid4

import pytest

import gateway.model as m
from gateway.cluster.messages import (
    ClusterMessage,
    OwnerChanged,
    RewindCall,
    RpcReply,
    RpcRequest,
    SubmitCall,
    UpdateCall,
    decode_message,
    encode_message,
    seal_message,
    unseal_message,
)
from gateway.ports import BackendEvent, Receipt, Turn
from gateway.storage import UNSEALED, FernetSeal, Seal
from gateway.storage.redis import RedisPubSub
from tests.support.cluster.agents import ended, made, quick
from tests.support.cluster.receiver import Receiver
from tests.support.cluster.replicas import Replica
from tests.support.gateway_server import until

KEY = "a key of thirty-two characters, or more"
SECRET = "swordfish"
SAID = m.SendMessage(content="hello", variables={"TOKEN": SECRET})
CHOSEN = m.Configure(settings=m.Settings(secrets={"password": SECRET}))
KEPT = {"plain": 1, m.PRIVATE: {"blue": {m.SECRETS: {"TOKEN": SECRET}, "other": 2}}}
OURS: dict[str, str] = {"owner": "ann", "session_id": "s"}


def seal(key: str = KEY) -> Seal:
    return FernetSeal(lambda: [key])


def accepted(command: Any) -> m.Record:
    return m.Record(seq=2, at=1.0, session_id="s", event=m.InputAccepted(command_id="cmd_1", command=command))


@pytest.mark.parametrize("letter", [
    RpcRequest(request="r", sender="x", call=SubmitCall(**OURS, commands=(SAID, CHOSEN))),
    RpcRequest(request="r", sender="x", call=UpdateCall(**OURS, metadata=KEPT)),
    RpcReply(request="r", receipt=Receipt("turn_1", (accepted(SAID), accepted(CHOSEN)), 2, True)),
], ids=["commands", "metadata", "a receipt"])
def test_no_secret_is_readable_on_the_way(letter: ClusterMessage) -> None:
    wire = encode_message(seal_message(letter, seal()))
    assert SECRET.encode() in encode_message(letter) and SECRET.encode() not in wire
    assert unseal_message(decode_message(wire), seal()) == letter
    assert SECRET not in repr(unseal_message(decode_message(wire), seal("another key, and nobody knows which"))), (
        "lost, as in the log"
    )


@pytest.mark.parametrize("letter", [
    RpcRequest(request="r", sender="x", call=SubmitCall(**OURS, commands=(m.SendMessage(content="hello"),))),
    RpcRequest(request="r", sender="x", call=UpdateCall(**OURS, title="a title")),
    RpcRequest(request="r", sender="x", call=RewindCall(**OURS, to_seq=3)),
    RpcReply(request="r", elsewhere=True),
    OwnerChanged(session_id="s", token=3),
])
def test_what_has_no_secrets_stays_as_it_is(letter: ClusterMessage) -> None:
    assert encode_message(seal_message(letter, seal())) == encode_message(letter)
    assert unseal_message(letter, seal()) == letter


def test_what_an_older_server_wrote_unsealed_is_read() -> None:
    letter = RpcRequest(request="r", sender="x", call=SubmitCall(**OURS, commands=(SAID,)))
    assert unseal_message(decode_message(encode_message(letter)), seal()) == letter
    assert seal_message(letter, UNSEALED) is unseal_message(letter, UNSEALED) is letter


async def test_a_secret_given_to_one_server_reaches_the_agent_of_another() -> None:
    given, post = list[Any](), Receiver()

    async def play(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
        given.append(turn.command)
        async for said in quick(turn):
            yield said

    prefix = uuid4().hex
    writer, other = Replica(prefix, play, seal()), Replica(prefix, play, seal())
    spy = RedisPubSub(writer.redis.address, 5)
    await writer.open()
    await other.open()
    await spy.start(post, writer.sessions.inbox.addresses[0], other.sessions.inbox.addresses[0])
    session_id = await made(writer)
    receipt = await other.sessions.submit("ann", session_id, [SAID])
    assert [record.event.command for record in receipt.records] == [SAID]  # type: ignore[union-attr]
    assert writer.log.holds(session_id) and not other.log.holds(session_id)
    await ended(other, session_id)
    assert given == [SAID]
    await until(lambda: len(post.messages) >= 2)
    assert not any(SECRET.encode() in letter for letter in post.messages)
    await spy.close()
    await other.close()
    await writer.close()
