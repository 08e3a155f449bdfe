"""A fifth dialect touches nothing: it is files of its own, and everything that runs over dialects finds it by looking.

The dialect is Quill, in tests/support/fifth_dialect/tree. It is copied into a temporary folder, and tests are run in a
process that has the folder on its path.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOME = ROOT / "tests" / "support" / "fifth_dialect"
ROOMS = ("adapters", "bench", "conformance", "docs", "gateway", "mappings", "tests")
CHECKS = "tests/support/fifth_dialect/test_taken_up.py"
"""One small thing of each: it is served, listed, paired, recorded, killed, examined, worked and translated."""
RUN_OVER_DIALECTS = (
    "tests/contract/test_dialect_parts.py", "tests/contract/test_dialects.py", "tests/conformance/test_mutation.py",
    "tests/conformance/test_kill_sample.py", "tests/conformance/test_reference.py",
    "tests/conformance/test_offline_judging.py", "tests/pairs/test_brought.py", "tests/property/test_resuming.py",
    "tests/property/test_translation.py", "tests/security/test_hostile_json.py", "tests/security/test_tenants.py",
    "tests/test_conforming.py", "tests/test_unknown_agents.py", "tests/backends/remote/test_backend.py",
    "tests/backends/remote/test_bad_servers.py", "tests/backends/remote/test_permission_guard.py",
    "tests/translate/test_recorded_commands.py",
)
"""Files of tests with a parameter for each dialect."""
HANG = 600
"""Seconds that only a hang takes."""


def files_of_the_tree() -> dict[Path, tuple[int, int]]:
    """All files with their sizes and the times of their last changes, but for what Python compiles."""
    found = [path for room in ROOMS for path in (ROOT / room).rglob("*") if path.is_file()]
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in found if path.suffix != ".pyc"}


@pytest.mark.timeout(HANG)
def test_a_fifth_dialect_is_taken_up_by_everything_and_changes_nothing(tmp_path: Path) -> None:
    shutil.copytree(HOME / "tree", tmp_path / "fifth", ignore=shutil.ignore_patterns("__pycache__"))
    before = files_of_the_tree()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.support.fifth_dialect.plugin", "-p", "no:cacheprovider", "-rA",
         "--tb=short", CHECKS, *RUN_OVER_DIALECTS, "-k", "quill or taken_up"],
        cwd=ROOT, env={**os.environ, "FIFTH_DIALECT": str(tmp_path / "fifth")}, capture_output=True, text=True,
        timeout=HANG,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    passed = set(re.findall(r"^PASSED ([^:]+)::", done.stdout, re.MULTILINE))
    assert passed == {CHECKS, *RUN_OVER_DIALECTS}, "each of these files has a test of the fifth dialect"
    left_out = re.findall(r"^SKIPPED .*: quill is left out: there is no .*/quill/(\w+)\.py$", done.stdout, re.MULTILINE)
    assert set(left_out) == {"endless_server", "leaving_requests", "message_ways"}, "what is not there is named"
    assert files_of_the_tree() == before
