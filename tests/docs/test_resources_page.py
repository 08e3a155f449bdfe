"""The table of docs/resources.md is what the command prints that the page names."""

from pathlib import Path

from typer.testing import CliRunner

from gateway.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "resources.md"


def test_the_table_is_what_the_command_prints() -> None:
    command = "dragoman check --resources"
    printed = CliRunner().invoke(app, command.split()[1:])
    assert printed.exit_code == 0, printed.output
    page = PAGE.read_text(encoding="utf-8")
    assert f"`{command}` prints this table" in page
    assert printed.stdout in page
