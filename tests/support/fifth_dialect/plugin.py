"""A plugin of pytest: every test of this run finds the fifth dialect that is in the folder of `FIFTH_DIALECT`."""

import os
from pathlib import Path

import pytest

from tests.support.fifth_dialect.path import put_on_path


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    put_on_path(Path(os.environ["FIFTH_DIALECT"]))
