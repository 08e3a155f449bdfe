"""Ten thousand random calls to a real Redis server and to the simulated one."""

from pathlib import Path

import pytest

from gateway.storage.redis.scripts import scripts
from tests.prove.simulation.redis_comparison import compare
from tests.support.redis_server import RedisServer

CALLS = 10_000


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_ten_thousand_calls_are_answered_alike(seed: int, tmp_path: Path) -> None:
    server = RedisServer(tmp_path / "redis")
    server.start()
    try:
        compared = compare(server.port, seed, CALLS)
    finally:
        server.stop(kill=True)
    print(f"seed {seed}: {compared.calls.total()} calls, {compared.refusals.total()} of them refused, "
          f"{compared.messages} messages, {compared.keys} keys")
    assert compared.calls.keys() >= scripts().keys()
    assert not compared.differences, "\n".join(compared.differences[:10])
