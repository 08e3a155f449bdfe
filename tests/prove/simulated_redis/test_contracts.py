"""The tests of storage and cluster, with the simulated Redis in place of the real one."""

import subprocess
import sys

CONTRACTS = (
    "tests/cluster", "tests/storage/log/test_every_log.py", "tests/storage/log/test_session_lists.py",
    "tests/storage/log/test_record_sealing.py", "tests/storage/log/redis/test_redis_lists.py",
    "tests/storage/redis/test_token_buckets.py", "tests/storage/resources", "tests/resources/test_key_service.py",
)
RESP3 = "not whose_client_has_left and not heard_nothing"
"""Two tests look at channels with a client that speaks RESP3, which the gateway does not."""


def test_storage_and_cluster_keep_their_contracts_on_the_simulated_server() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.prove.simulated_redis.stand_in", *CONTRACTS, "-k", RESP3],
        capture_output=True, text=True, check=False,
    )
    assert ended.returncode == 0, ended.stdout[-4000:]
    assert "not simulated: nothing" in ended.stdout
