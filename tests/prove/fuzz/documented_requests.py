"""Schemathesis: requests that it makes of the OpenAPI document of each dialect, to a real server.

No answer may be a 500, and every answer must fit the document. The program is installed for a run alone: its libraries
are many.
"""

import subprocess
import sys
from pathlib import Path

from tests.support.dialect_tables import DIALECTS

from .target import Target

PACKAGE = "schemathesis>=4,<5"
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
SECONDS = 60
"""For how long one dialect is asked."""
HANG_SECONDS = 600
ENDLESS = r"stream$|/ws/|socket\.io"
"""Streams that have no end, and sockets."""


def install_schemathesis(folder: Path) -> Path:
    """The program, in an environment of its own."""
    for command in ([sys.executable, "-m", "venv", folder], [folder / "bin" / "pip", "install", "-q", PACKAGE]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{PACKAGE} cannot be installed: {done.stderr[-2000:]}")
    return folder / "bin" / "schemathesis"


def problems_of(schemathesis: Path, port: int, dialect: str) -> str:
    """What Schemathesis says of the answers of one dialect; nothing if all of them fit."""
    document = f"http://127.0.0.1:{port}/openapi.json?dialect={dialect}"
    done = subprocess.run([
        schemathesis, "run", document, "--checks", CHECKS, "--phases", "fuzzing", "--max-examples", "20", "--no-shrink",
        "--request-timeout", "10", "--max-time", str(SECONDS), "--continue-on-failure", "--warnings", "off",
        "--no-color", "--exclude-path-regex", ENDLESS,
    ], capture_output=True, text=True, timeout=HANG_SECONDS, check=False, cwd=schemathesis.parent)
    return "" if done.returncode == 0 else done.stdout[-8000:]


def try_documented_requests(target: Target, folder: Path) -> bool:
    """Ask every dialect; print what was wrong, and return whether nothing was."""
    schemathesis, failed = install_schemathesis(folder / "schemathesis"), 0
    for dialect in DIALECTS:
        found = problems_of(schemathesis, target.port, dialect)
        print(f"schemathesis, {dialect}: {found or 'every answer fits the document'}", flush=True)
        failed += bool(found)
    for line in (complaints := target.complaints()):
        print(f"  {line}", flush=True)
    code = target.stop()
    print(f"{failed} dialects with wrong answers, {len(complaints)} complaints in the journal, exit code {code}")
    return not failed and not complaints and code == 0
