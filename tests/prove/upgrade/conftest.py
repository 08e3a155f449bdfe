"""The servers are processes, so these tests run in real time; the previous release is built once."""

from pathlib import Path

import pytest

from tests.prove.upgrade.releases import install_previous_release
from tests.support.real_time import pytest_asyncio_loop_factories  # noqa: F401


@pytest.fixture(scope="session")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the packages of the previous release."""
    return install_previous_release(tmp_path_factory.mktemp("previous"))
