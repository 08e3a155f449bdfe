"""Schemathesis sends requests that it makes of the document: no answer is a 500, and every answer fits the document."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.prove.fuzz.target import Target
from tests.support.dialect_tables import DIALECTS

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
SECONDS = 60
"""For how long one dialect is asked."""
HANG_SECONDS = 600
ENDLESS = r"stream$|/ws/|socket\.io"
"""Streams that have no end, and sockets."""


@pytest.fixture(scope="module")
def schemathesis(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, installed for this proof alone: its libraries are many."""
    folder = tmp_path_factory.mktemp("schemathesis") / "venv"
    install = [folder / "bin" / "pip", "install", "-q", "schemathesis>=4,<5"]
    for command in ([sys.executable, "-m", "venv", folder], install):
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
        assert done.returncode == 0, done.stderr
    return folder / "bin" / "schemathesis"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> object:
    target = Target(tmp_path_factory.mktemp("target"))
    yield target.port
    assert target.complaints() == []
    assert target.stop() == 0


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_answer_fits_the_document(schemathesis: Path, port: int, dialect: str) -> None:
    document = f"http://127.0.0.1:{port}/openapi.json?dialect={dialect}"
    done = subprocess.run([
        schemathesis, "run", document, "--checks", CHECKS, "--phases", "fuzzing", "--max-examples", "20", "--no-shrink",
        "--request-timeout", "10", "--max-time", str(SECONDS), "--continue-on-failure", "--warnings", "off",
        "--no-color", "--exclude-path-regex", ENDLESS,
    ], capture_output=True, text=True, timeout=HANG_SECONDS, check=False, cwd=schemathesis.parent)
    assert done.returncode == 0, done.stdout[-8000:]
