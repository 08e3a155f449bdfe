"""What clients give in confidence is sealed where one server writes it to another, and whole where it arrives."""

from collections.abc import AsyncGenerator
from typing import Any
from uuid import uuid4

import pytest

from gateway.cluster.letters import Asked, Letter, Replied, Rewind, Submit, Taken, Update, decode, encode
from gateway.cluster.sealing import opened, sealed
from gateway.model import PRIVATE, SECRETS, Configure, InputAccepted, Record, SendMessage, Settings
from gateway.ports import Receipt, Said, Turn
from gateway.storage import UNSEALED, Seal
from gateway.storage.redis import Listener
from tests.support.cluster.agents import ended, made, quick
from tests.support.cluster.replicas import Replica
from tests.support.gateway_server import until

KEY = "a key of thirty-two characters, or more"
SECRET = "swordfish"
SAID = SendMessage(content="hello", variables={"TOKEN": SECRET})
CHOSEN = Configure(settings=Settings(secrets={"password": SECRET}))
KEPT = {"plain": 1, PRIVATE: {"blue": {SECRETS: {"TOKEN": SECRET}, "other": 2}}}
OURS: dict[str, str] = {"owner": "ann", "session_id": "s"}


def seal(key: str = KEY) -> Seal:
    return Seal(lambda: [key])


def accepted(command: Any) -> Record:
    return Record(seq=2, at=1.0, session_id="s", event=InputAccepted(command_id="cmd_1", command=command))


@pytest.mark.parametrize("letter", [
    Asked(request="r", sender="x", call=Submit(**OURS, commands=(SAID, CHOSEN))),
    Asked(request="r", sender="x", call=Update(**OURS, metadata=KEPT)),
    Replied(request="r", receipt=Receipt("turn_1", (accepted(SAID), accepted(CHOSEN)), 2, True)),
], ids=["commands", "metadata", "a receipt"])
def test_no_secret_is_readable_on_the_way(letter: Letter) -> None:
    wire = encode(sealed(letter, seal()))
    assert SECRET.encode() in encode(letter) and SECRET.encode() not in wire
    assert opened(decode(wire), seal()) == letter
    assert SECRET not in repr(opened(decode(wire), seal("another key, and nobody knows which"))), "lost, as in the log"


@pytest.mark.parametrize("letter", [
    Asked(request="r", sender="x", call=Submit(**OURS, commands=(SendMessage(content="hello"),))),
    Asked(request="r", sender="x", call=Update(**OURS, title="a title")),
    Asked(request="r", sender="x", call=Rewind(**OURS, to_seq=3)),
    Replied(request="r", elsewhere=True),
    Taken(session_id="s", token=3),
])
def test_what_has_no_secrets_stays_as_it_is(letter: Letter) -> None:
    assert encode(sealed(letter, seal())) == encode(letter)
    assert opened(letter, seal()) == letter


def test_what_an_older_server_wrote_unsealed_is_read() -> None:
    letter = Asked(request="r", sender="x", call=Submit(**OURS, commands=(SAID,)))
    assert opened(decode(encode(letter)), seal()) == letter
    assert sealed(letter, UNSEALED) is opened(letter, UNSEALED) is letter


async def test_a_secret_given_to_one_server_reaches_the_agent_of_another() -> None:
    given, post = list[Any](), list[bytes]()

    async def play(turn: Turn) -> AsyncGenerator[Said, None]:
        given.append(turn.command)
        async for said in quick(turn):
            yield said

    prefix = uuid4().hex
    writer, other = Replica(prefix, play, seal()), Replica(prefix, play, seal())
    spy = Listener(writer.redis.address, 5, lambda channel, message: post.append(message), lambda: None)
    await writer.open()
    await other.open()
    await spy.start(writer.sessions._mail, other.sessions._mail)
    session_id = await made(writer)
    receipt = await other.sessions.submit("ann", session_id, [SAID])
    assert [record.event.command for record in receipt.records] == [SAID]  # type: ignore[union-attr]
    assert writer.log.holds(session_id) and not other.log.holds(session_id)
    await ended(other, session_id)
    assert given == [SAID]
    await until(lambda: len(post) >= 2)
    assert not any(SECRET.encode() in letter for letter in post)
    await spy.close()
    await other.close()
    await writer.close()
