"""`dragoman new-dialect` writes a dialect that is served, talked to and examined, and changes nothing else."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import Result

import adapters
import conformance
import mappings
from conformance.faults.fault import load_faults
from conformance.kit.suite import add_folder, load_suite
from conformance.kit.verdict import Outcome
from gateway.cli.starter_files import skeleton_files
from tests.support.conformance.examinations import examine_server, made
from tests.support.fork_server import for_shells
from tests.support.gateway_server import serving
from tests.support.server_process import running

Run = Callable[..., Result]
ROOT = Path(__file__).parents[2]
ROOMS = ("adapters", "conformance", "docs", "gateway", "mappings")


@pytest.fixture
def found_only_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Dialects that this test puts on the paths are not found by others."""
    packages = (adapters, mappings, conformance, importlib.import_module("conformance.faults"))
    for package in packages:
        monkeypatch.setattr(package, "__path__", list(package.__path__))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if ".nova" in name:
            del sys.modules[name]


def files_of_the_tree() -> dict[Path, tuple[int, int]]:
    """All files with their sizes and the times of their last changes, but for what Python compiles."""
    found = [path for room in ROOMS for path in (ROOT / room).rglob("*") if path.is_file()]
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in found if path.suffix != ".pyc"}


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_it_writes_a_table_cases_faults_and_a_page_and_says_what_is_next(home: Path, dragoman: Run) -> None:
    result = dragoman("new-dialect", "nova", "--folder", "own")
    assert result.exit_code == 0, result.output
    written = files_in(home / "own")
    assert {"mappings/nova.yaml", "mappings/table.schema.json", "conformance/nova/requirements.yaml",
            "conformance/faults/nova/faults.yaml", "docs/nova.md"} < written
    assert not any(path.startswith("adapters") for path in written)
    assert "dialects: {nova: }" in result.stdout
    assert "dialect_folders: [own]" in result.stdout
    assert "dragoman conform nova http://127.0.0.1:18900/nova --folder own" in result.stdout
    filled = [text for path, text in skeleton_files("nova", code=True) if path.suffix in (".yaml", ".md")]
    assert "@" not in "".join(filled)


def test_nothing_is_overwritten(home: Path, dragoman: Run) -> None:
    (home / "docs").mkdir()
    (home / "docs" / "nova.md").write_text("mine")
    result = dragoman("new-dialect", "nova")
    assert (result.exit_code, result.stderr) == (2, "nothing was written, because these files exist: docs/nova.md\n")
    assert files_in(home) == {"config.yaml", "docs/nova.md"}
    assert (home / "docs" / "nova.md").read_text() == "mine"


def test_a_second_dialect_shares_the_folder(home: Path, dragoman: Run) -> None:
    for name in ("nova", "vela"):
        assert dragoman("new-dialect", name).exit_code == 0
    assert {"mappings/nova.yaml", "mappings/vela.yaml"} < files_in(home)
    assert dragoman("new-dialect", "nova").stderr.endswith(" and 19 more\n")


@pytest.mark.parametrize(("name", "told"), [
    ("Nova", "'Nova' cannot be the name of a dialect: it is a word of small letters, digits and '_', such as nova"),
    ("no-va", "'no-va' cannot be the name of a dialect: it is a word of small letters, digits and '_', such as nova"),
    ("class", "'class' cannot be the name of a dialect: it is a word of small letters, digits and '_', such as nova"),
    ("aap", "the name 'aap' is taken; take another one"),
    ("plain", "the name 'plain' is taken; take another one"),
    ("kit", "the name 'kit' is taken; take another one"),
])
def test_a_name_that_cannot_be_is_refused(home: Path, dragoman: Run, name: str, told: str) -> None:
    result = dragoman("new-dialect", name)
    assert (result.exit_code, result.stderr) == (2, told + "\n")
    assert files_in(home) == {"config.yaml"}


@pytest.mark.timeout(600)
def test_it_is_served_talked_to_and_examined_and_nothing_else_changes(tmp_path: Path) -> None:
    before = files_of_the_tree()
    own = tmp_path / "own"
    _real("new-dialect", "nova", "--folder", str(own), cwd=tmp_path)
    with running(tmp_path, dialects={"nova": {}}, dialect_folders=["own"], log="memory") as served:
        made = _post(f"{served.address}/nova/sessions", {"title": "first"})
        said = _post(f"{served.address}/nova/sessions/{json.loads(made)['id']}/messages", {"text": "hello"})
        deltas = [json.loads(line[6:])["delta"] for line in said.splitlines() if line.startswith('data: {"delta"')]
        assert "".join(deltas) == "You said: hello"
        shown = "\n".join(line.strip() for line in served.greeting if "curl" in line)
        tried = subprocess.run(["bash", "-c", shown], capture_output=True, text=True, timeout=300)
        assert 'data: {"reason":"done"}' in tried.stdout, f"the lines that the server shows:\n{shown}"
        told = _real("conform", "nova", f"{served.address}/nova", "--folder", str(own), cwd=tmp_path)
        assert "conforms: Nova" in told
    assert files_of_the_tree() == before


def _real(*words: str, cwd: Path) -> str:
    given = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120"}
    done = subprocess.run(["bash", "-c", f"{for_shells()} -m gateway {' '.join(words)}"], cwd=cwd, env=given,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _post(url: str, body: object) -> str:
    done = subprocess.run(["curl", "-sS", url, "-d", json.dumps(body)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.usefixtures("found_only_here")
async def test_code_begins_with_what_the_table_says(home: Path, dragoman: Run) -> None:
    assert dragoman("new-dialect", "nova", "--code").exit_code == 0
    projector = home / "adapters" / "nova" / "projector.py"
    projector.write_text(projector.read_text().replace(
        "return self._plain.feed(record)", "return self._plain.feed(record) * 2"))
    async with serving(home, dialects={"nova": {}}, dialect_folders=["."], log="memory") as served:
        async with served.http.post(served.url("/nova/sessions"), json={}) as answer:
            session = (await answer.json())["id"]
        async with served.http.post(served.url(f"/nova/sessions/{session}/messages"), json={"text": "hi"}) as stream:
            said = await stream.text()
    assert said.count("event: started") == 2, "the projector of the new package is used"


@pytest.mark.usefixtures("found_only_here")
async def test_every_requirement_is_proven_by_a_fault(home: Path, dragoman: Run) -> None:
    assert dragoman("new-dialect", "nova").exit_code == 0
    add_folder(home)
    faults, suite = load_faults("nova"), load_suite("nova")
    assert {name for fault in faults.values() for name in fault.requirements} == suite.catalogue.ids
    assert {name for fault in faults.values() for name in fault.cases} == {case.name for case in suite.cases}
    right = made("nova", importlib.import_module("conformance.faults.nova.server").Server)
    assert (await examine_server("nova", right, at_once=4)).exit_code == 0
    for fault in faults.values():
        fault.tally.clear()
        report = await examine_server("nova", made("nova", fault.server), *fault.requirements, at_once=4)
        assert {item.requirement.id for item in report.of(Outcome.FAILED)} == set(fault.requirements)
        assert fault.unapplied == []
