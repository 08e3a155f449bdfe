"""The commands of docs/mappings.md print what the page says that they print."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli import app
from tests.support.doc_pages import ROOT

PAGE = (ROOT / "docs" / "mappings.md").read_text("utf-8")
SHOWN = re.findall(r"```\n\$ dragoman ([^\n]+)\n(.*?)\n```", PAGE, re.DOTALL)


def test_the_page_shows_a_command() -> None:
    assert [words for words, _ in SHOWN] == ["check --explain aap turn.ended"]


@pytest.mark.parametrize(("words", "printed"), SHOWN, ids=[words for words, _ in SHOWN])
def test_a_command_prints_what_is_shown(
    words: str, printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    result = CliRunner().invoke(app, words.split())
    assert result.exit_code == 0, result.output
    assert result.stdout.rstrip() == printed, f"the page should show:\n\n{result.stdout}"
