"""Ordinary tests with a parameter for each dialect take up a fifth one."""

from pathlib import Path

from tests.support.fifth_dialect.run import files_of_the_tree, run_with_fifth_dialect

RUN_OVER_DIALECTS = (
    "tests/contract/test_dialect_parts.py", "tests/contract/test_dialects.py", "tests/conformance/test_mutation.py",
    "tests/conformance/test_kill_sample.py", "tests/prove/reference/test_reference.py",
    "tests/conformance/test_offline_judge.py", "tests/pairs/test_brought.py", "tests/property/test_resuming.py",
    "tests/property/test_translation.py", "tests/security/test_hostile_json.py", "tests/security/test_tenants.py",
    "tests/test_conforming.py", "tests/test_unknown_agents.py", "tests/backends/remote/test_backend.py",
    "tests/backends/remote/test_bad_servers.py", "tests/backends/remote/test_permission_guard.py",
    "tests/translate/test_recorded_commands.py",
)


def test_every_file_has_a_test_of_the_fifth_dialect(tmp_path: Path) -> None:
    before = files_of_the_tree()
    passed, left_out = run_with_fifth_dialect(tmp_path, RUN_OVER_DIALECTS)
    assert passed == set(RUN_OVER_DIALECTS)
    missing = {"endless_server", "leaving_requests", "message_ways", "read_back", "shared_resources"}
    assert left_out == missing, "what is not there is named"
    assert files_of_the_tree() == before
