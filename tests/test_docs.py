"""What README and docs show is what happens: their commands are run, their answers compared."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from conformance.aap.profile import AapProfile
from tests.support.dialect_tables import DIALECTS
from tests.support.fork_server import for_shells
from tests.support.server_process import Running, running

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*/README.md"))
OURS = "http://127.0.0.1:18900"
ID = re.compile(r"\b(sess|call|turn|evt)_[0-9a-z_]+\b")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def sessions(page: Path) -> Iterator[list[tuple[str, str]]]:
    """(command, what it prints) of each console block."""
    for block in blocks(page, "console"):
        yield [(command, printed) for command, _, printed in
               (part.partition("\n") for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:])]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("docs"), dialects={"aap": {}, **{name: {} for name in DIALECTS}}) as served:
        yield served


@pytest.mark.parametrize("page", [page for page in PAGES if any(sessions(page))], ids=lambda page: page.name)
def test_a_session_shown_is_a_session_had(page: Path, server: Running) -> None:
    for session in sessions(page):
        known: dict[str, str] = {}
        for command, printed in session:
            command = _ours(command, known).replace(OURS, server.address)
            command = command.replace(".venv/bin/dragoman", f"{for_shells()} -m gateway")
            done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300, cwd=ROOT)
            assert done.returncode == 0, done.stderr + done.stdout
            if printed:
                _same(printed, done.stdout, known)


def _ours(command: str, known: dict[str, str]) -> str:
    """The command with the ids that were had in place of those that are shown."""
    return ID.sub(lambda shown: known.get(shown[0], shown[0]), command)


def _same(shown: str, had: str, known: dict[str, str]) -> None:
    """Equal but for the ids, which are remembered for the commands that follow."""
    assert ID.sub("ID", had.rstrip("\n")) == ID.sub("ID", shown.rstrip("\n"))
    known.update(zip((m[0] for m in ID.finditer(shown)), (m[0] for m in ID.finditer(had)), strict=True))


def test_the_agent_of_the_readme_answers(tmp_path: Path) -> None:
    [code] = blocks(ROOT / "README.md", "python")
    (tmp_path / "parrot.py").write_text(code)
    [agents] = blocks(ROOT / "README.md", "yaml")
    with running(tmp_path, **yaml.safe_load(agents)) as served:
        lines = [line.strip() for line in served.greeting if "curl" in line]
        done = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, text=True, timeout=300, check=True)
        assert 'data: {"delta":"hello! "}' in done.stdout
        assert done.stdout.rstrip().endswith('data: {"stopReason":"end_turn"}')


def test_the_conform_command_of_the_readme_passes(server: Running, tmp_path: Path) -> None:
    [command] = [line for block in blocks(ROOT / "README.md", "sh") for line in block.splitlines() if "conform" in line]
    command = command.replace(OURS, server.address).replace(".venv/bin/dragoman", f"{for_shells()} -m gateway")
    done = subprocess.run(["bash", "-c", command.replace("report.html", str(tmp_path / "report.html"))],
                          capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.returncode == 0, done.stdout
    assert "<html" in (tmp_path / "report.html").read_text()


def test_the_profile_of_the_docs_is_one() -> None:
    [profile, *_] = blocks(ROOT / "docs/conformance.md", "yaml")
    assert AapProfile.model_validate(yaml.safe_load(profile))


def test_the_commit_hook_of_the_docs_has_a_command_that_begins(tmp_path: Path) -> None:
    [hook] = [block for block in blocks(ROOT / "docs/conformance.md", "yaml") if "hooks:" in block]
    [entry] = [hook["entry"] for repo in yaml.safe_load(hook)["repos"] for hook in repo["hooks"]]
    command = entry.replace("dragoman", f"{for_shells()} -m gateway").replace("8080", "1")
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 2
    assert "cannot be reached" in done.stderr, done.stdout + done.stderr


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.parent.name)
def test_the_commands_of_an_example_name_what_is_there(page: Path) -> None:
    """They are for the top of the project, with what `make run` has made."""
    said = "\n".join(blocks(page, "sh"))
    named = re.findall(r"(?<=\s)examples/\S+", said)
    assert f"examples/{page.parent.name}/config.yaml" in named or not (page.parent / "config.yaml").exists()
    assert named
    assert all((ROOT / path).is_file() for path in named)
    assert ".venv/bin/" in said


@pytest.mark.parametrize("page", [*PAGES, *EXAMPLES], ids=lambda page: str(page.relative_to(ROOT)))
def test_what_is_installed_is_this_project(page: Path) -> None:
    """What goes by its name elsewhere is somebody else's."""
    assert not re.search(r"pip install[^`\n]* '?dragoman\b", page.read_text())


def test_the_settings_of_the_dialects_are_documented() -> None:
    from tests.support.dialect_tables import DIALECTS, dialect

    for name in DIALECTS:
        text, shape = (ROOT / f"docs/{name}.md"), dialect(name).settings
        for setting in shape.model_fields if shape else ():
            assert f"{setting}:" in text.read_text(), f"docs/{name}.md does not say what {setting} is"
