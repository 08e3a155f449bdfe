"""A fifth dialect touches nothing: it is files of its own, and everything that runs over dialects finds it by looking.

The files of ordinary tests that take it up: `test_ordinary_tests.py`.
"""

from pathlib import Path

import pytest

from tests.support.fifth_dialect.run import CHECKS, HANG, files_of_the_tree, run_with_fifth_dialect


@pytest.mark.timeout(HANG)
def test_a_fifth_dialect_is_taken_up_and_changes_nothing(tmp_path: Path) -> None:
    before = files_of_the_tree()
    passed, _ = run_with_fifth_dialect(tmp_path, [CHECKS])
    assert passed == {CHECKS}
    assert files_of_the_tree() == before
