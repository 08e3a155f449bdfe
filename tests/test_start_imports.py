"""A server loads what its settings name: libraries of dialects and features that it does not serve stay away."""

import subprocess
import sys
from pathlib import Path

import pytest

from gateway.hidden_modules import hidden_modules

SPARED = (
    "rich", "redis", "socketio", "jsonschema_rs", "croniter", "mcp", "gateway.backends.scripted", "gateway.translate",
    "opentelemetry",
)
SETTINGS = """\
log: memory
data: {folder}
dialects: {{{dialects}}}
agents: {{demo: {{backend: demo}}}}
"""
LIST_MODULES = """\
import sys
from pathlib import Path
from gateway.config import load_config
from gateway import logging, server  # in the order of `dragoman serve`
from gateway.app import Gateway
from gateway.composition import load_components
Gateway(load_components(load_config(Path(sys.argv[1]), {})))
print(*(name for name in sys.argv[2:] if name in sys.modules))
"""


def modules_after_start(folder: Path, dialects: str) -> set[str]:
    """Those of the libraries above that a new process has imported when its gateway is made."""
    settings = folder / "config.yaml"
    settings.write_text(SETTINGS.format(folder=folder, dialects=dialects))
    command = [sys.executable, "-c", LIST_MODULES, str(settings), *SPARED]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_a_server_of_one_dialect_loads_no_library_of_the_others(tmp_path: Path) -> None:
    assert modules_after_start(tmp_path, "aap: {}") == set()


def test_a_dialect_on_socketio_loads_its_library_without_the_brokers(tmp_path: Path) -> None:
    assert modules_after_start(tmp_path, "blade: {}") == {"socketio"}


def test_a_hidden_library_is_there_again_afterwards() -> None:
    sys.modules.pop("colorsys", None)
    with hidden_modules("colorsys", "json"), pytest.raises(ImportError):
        import colorsys
    import colorsys

    assert colorsys.rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)


def test_a_library_that_is_loaded_is_not_hidden() -> None:
    before = sys.modules["subprocess"]
    with hidden_modules("subprocess"):
        assert sys.modules["subprocess"] is before
    assert sys.modules["subprocess"] is before
