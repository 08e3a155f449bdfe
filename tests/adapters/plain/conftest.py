"""Plain dialects in a folder of the test, found only while the test runs."""

from pathlib import Path

import pytest

import adapters
import mappings
from tests.support.plain_dialect import PlainFolder


@pytest.fixture
def plain_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlainFolder:
    """A folder for dialects; nobody finds them after the test."""
    monkeypatch.setattr(adapters, "__path__", list(adapters.__path__))
    monkeypatch.setattr(mappings, "__path__", list(mappings.__path__))
    return PlainFolder(tmp_path / "own")
