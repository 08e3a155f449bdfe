"""What tests of the harness share."""

import pytest


@pytest.fixture
def few_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pytest that the test starts loads only these plugins: to import all of them takes longer than its few tests."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "_hypothesis_pytestplugin,xdist.plugin,pytest_timeout")
