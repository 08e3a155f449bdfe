"""What a credential has open ends with it, and nothing else does."""

import asyncio

from gateway.http import OpenRequests
from gateway.ports import Caller
from tests.support.gateway_server import simulation

ANN, BEN = Caller(user="ann", credential="a"), Caller(user="ben", credential="b")


async def test_a_revoked_credential_ends_what_it_has_open_and_nothing_else() -> None:
    connections, ended = OpenRequests(), list[str]()
    for number, caller in enumerate((ANN, ANN, BEN)):
        connections.add(caller, lambda number=number: ended.append(number))  # type: ignore[misc]
    connections.revoke(["a", "unknown"])
    assert ended == [], "who is nearly done may finish"
    await asyncio.sleep(1)
    assert sorted(ended) == [0, 1]


async def test_what_has_finished_meanwhile_is_not_cut() -> None:
    connections, ended = OpenRequests(), list[str]()
    admission = connections.add(ANN, lambda: ended.append("cut"))
    connections.revoke(["a"])
    assert admission.is_revoked
    connections.discard(admission)
    connections.discard(admission)
    await asyncio.sleep(1)
    assert (ended, len(connections)) == ([], 0)


async def test_a_credential_that_expires_ends_what_it_has_open() -> None:
    clock = simulation().wall_clock
    connections, ended = OpenRequests(clock), list[str]()
    caller = Caller(user="ann", credential="t", expires=clock() + 100)
    admission = connections.add(caller, lambda: ended.append("cut"))
    done = connections.add(caller, lambda: ended.append("never"))
    connections.discard(done)
    await asyncio.sleep(99)
    assert not admission.is_revoked
    await asyncio.sleep(2)
    assert (ended, admission.is_revoked) == (["cut"], True)
