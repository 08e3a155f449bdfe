"""Artefacts do not depend on who builds them or when; what pins them names no host and every package."""

import gzip
import hashlib
import io
import re
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest

from deploy.release.artefacts import (
    EARLIEST,
    EXTRAS,
    LOCKED,
    SHIPPED,
    commit_time,
    export,
    repacked,
    write_checksums,
    write_requirements,
)
from deploy.release.sbom import pinned_versions

ROOT = Path(__file__).parents[3]
WHEN = 1_700_000_000


def sdist(*names: str, mtime: int, user: str) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uname, member.uid = len(name), mtime, user, mtime % 1000
            archive.addfile(member, io.BytesIO(name.encode()))
    return made.getvalue()


def test_an_sdist_does_not_tell_who_packed_it_and_when() -> None:
    one = repacked(sdist("a/b", "a/c", mtime=1, user="ann"), WHEN)
    assert one == repacked(sdist("a/c", "a/b", mtime=2, user="bob"), WHEN)
    with tarfile.open(fileobj=io.BytesIO(one)) as archive:
        assert [(m.name, m.mtime, m.uname) for m in archive.getmembers()] == [("a/b", WHEN, ""), ("a/c", WHEN, "")]
    assert gzip.decompress(one)


def test_what_is_not_committed_is_not_shipped(tmp_path: Path) -> None:
    root, tree = tmp_path / "root", tmp_path / "tree"
    root.mkdir()
    (root / "kept").write_text("as committed")
    for words in (["init", "-q"], ["add", "."],
                  ["-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(root), *words], check=True, timeout=300)
    (root / "kept").write_text("changed")
    (root / "secret").write_text("not committed")
    export(root, tree)
    assert {path.name: path.read_text() for path in tree.iterdir()} == {"kept": "as committed"}
    assert (tree / "kept").stat().st_mode & 0o777 == 0o644


def test_the_time_of_the_files_is_the_one_that_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(WHEN))
    assert commit_time(ROOT) == WHEN
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert commit_time(ROOT) == EARLIEST, "zip files cannot say less"


def test_checksums_are_those_that_sha256sum_checks(tmp_path: Path) -> None:
    (tmp_path / "b.whl").write_bytes(b"b")
    (tmp_path / "a.tar.gz").write_bytes(b"a")
    write_checksums(tmp_path, [tmp_path / "b.whl", tmp_path / "a.tar.gz"])
    done = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path, capture_output=True,
                          text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "a.tar.gz: OK\nb.whl: OK\n")


def test_the_requirements_name_the_wheel_by_its_hash(tmp_path: Path) -> None:
    (tmp_path / "x.whl").write_bytes(b"wheel")
    digest = hashlib.sha256(b"wheel").hexdigest()
    own = f"./x.whl[{EXTRAS}] --hash=sha256:{digest}\n"
    assert write_requirements(ROOT, tmp_path, tmp_path / "x.whl").read_text() == (ROOT / SHIPPED).read_text() + own


CONSTRAINTS = (ROOT / LOCKED).read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("name", [LOCKED, SHIPPED])
def test_what_is_pinned_names_no_host_and_no_path(name: str) -> None:
    lines = [line for line in (ROOT / name).read_text().splitlines() if not line.startswith("#")]
    shape = re.compile(r"[a-z0-9][a-z0-9-]*==[^\s/]+( ; [^/]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?")
    assert [line for line in lines if not shape.fullmatch(line)] == []


def test_the_constraints_pin_everything_that_the_project_asks_for() -> None:
    asked = [*PROJECT["dependencies"], *(line for lines in PROJECT["optional-dependencies"].values() for line in lines)]
    names = {re.sub(r"[-_.]+", "-", re.split(r"[\s\[<>=!~;]", line)[0]).lower() for line in asked}
    assert names - pinned_versions(CONSTRAINTS).keys() == set(), "run `make lock`"


def test_users_get_versions_that_are_tested_and_no_tools() -> None:
    shipped = pinned_versions((ROOT / SHIPPED).read_text())
    assert shipped.items() <= pinned_versions(CONSTRAINTS).items(), "run `make lock`"
    assert {"aiohttp", "redis", "mcp"} <= shipped.keys()
    assert shipped.keys().isdisjoint({"pytest", "ruff", "uv", "build"})


def test_the_extras_for_users_are_all_but_those_for_contributors() -> None:
    assert set(EXTRAS.split(",")) == PROJECT["optional-dependencies"].keys() - {"docs", "release", "test"}


def test_the_environment_that_makes_a_release_has_what_the_bill_of_materials_looks_up() -> None:
    recipe = (ROOT / "Makefile").read_text().partition("\n$(VENV)/.release:")[2].partition("\n\n")[0]
    assert f"-e '.[{EXTRAS},release]'" in recipe
