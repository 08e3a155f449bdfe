"""Builds wheel and sdist of the last commit; the same commit and the same tools give the same bytes."""

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

CHECKSUMS = "SHA256SUMS"
LOCKED, SHIPPED = "constraints.txt", "deploy/requirements.txt"
EXTRAS = "acp,agui,mcp,otel,redis"
"""The extras that users install."""
EARLIEST = 315_532_800
"""1980-01-01: zip files know no earlier time."""


def commit_time(root: Path) -> int:
    """The time that all files of an artefact get: SOURCE_DATE_EPOCH, or the time of the last commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return max(EARLIEST, int(given or _git(root, "log", "-1", "--format=%ct")))


def build(root: Path, out: Path, when: int) -> tuple[Path, Path]:
    """Build wheel and sdist of the last commit of `root` into `out`."""
    with TemporaryDirectory() as home:
        tree, made = Path(home, "tree"), Path(home, "made")
        export(root, tree)
        _run_build(tree, made, when)
        [wheel], [sdist] = made.glob("*.whl"), made.glob("*.tar.gz")
        out.mkdir(parents=True, exist_ok=True)
        (out / sdist.name).write_bytes(repacked(sdist.read_bytes(), when))
        return Path(shutil.copy(wheel, out)), out / sdist.name


def export(root: Path, tree: Path) -> None:
    """Write the files of the last commit, with modes that do not depend on who builds."""
    with tarfile.open(fileobj=io.BytesIO(_git_bytes(root, "archive", "HEAD"))) as archive:
        archive.extractall(tree, filter="data")
    for path in tree.rglob("*"):
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def repacked(sdist: bytes, when: int) -> bytes:
    """The sdist with its files in order, all of one time and of no user."""
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(sdist)) as old,
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=when) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda one: one.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = when, 0, 0, "", ""
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    return packed.getvalue()


def write_checksums(out: Path, files: list[Path]) -> Path:
    """Write the file that `sha256sum --check` reads."""
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(files)]
    (out / CHECKSUMS).write_text("".join(lines))
    return out / CHECKSUMS


def write_requirements(root: Path, out: Path, wheel: Path) -> Path:
    """Write what `pip install -r requirements.txt` needs to install the wheel and what it brings along, all by hash."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    own = f"./{wheel.name}[{EXTRAS}] --hash=sha256:{digest}\n"
    (out / "requirements.txt").write_text((root / SHIPPED).read_text() + own)
    return out / "requirements.txt"


def _run_build(tree: Path, made: Path, when: int) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(made), str(tree)]
    done = subprocess.run(  # noqa: S603
        command, env={**os.environ, "SOURCE_DATE_EPOCH": str(when)}, capture_output=True, text=True, umask=0o022)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)


def _git(root: Path, *words: str) -> str:
    return _git_bytes(root, *words).decode().strip()


def _git_bytes(root: Path, *words: str) -> bytes:
    return subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True).stdout  # noqa: S603, S607
