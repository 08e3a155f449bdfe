"""What the commands have in common: how settings are found, and how a mistake is told."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from gateway.config import Config

MISTAKE = 2
"""The exit code where the user can do something about it."""

ConfigFile = Annotated[
    Path | None, typer.Option(
        "--config", "-c", envvar="DRAGOMAN_CONFIG", show_default="config.yaml, or the demo if there is none",
        help="The file with the settings.")
]
DataFolder = Annotated[
    Path | None, typer.Option("--data", help="The data folder, in place of the one in the settings.")
]
CONFIG = Path("config.yaml")
OWN_PROCESS = object()
"""What the context of a command carries where the command has the process for itself, which ends with it."""


DIALECTS = "{dialects}"
"""In a help, the names of those there are."""


class Commands(TyperGroup):
    """Commands whose help flows: where a line of the docstring ends says nothing of where one of the terminal does."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            explain(command, ctx)
        return command

    def get_params(self, ctx: Any) -> Any:
        params: Any = super().get_params(ctx)
        for param in params:
            _name_value(param)
        return params


def explain(command: Any, ctx: Any) -> None:
    """Make the help of a command fit to be read."""
    command.help = flowing(command.help or "")
    for param in command.get_params(ctx):
        if DIALECTS in (getattr(param, "help", None) or ""):
            param.help = param.help.replace(DIALECTS, _dialects())
        _name_value(param)


def _name_value(param: Any) -> None:
    """Name what an option takes by a word, PATH or NUMBER, in place of a type of Python; a flag takes nothing."""
    shown = ""
    if param.param_type_name == "option" and not param.is_flag:
        kind = getattr(getattr(param, "type_descriptor", None), "annotation", str)
        words = {Path: "PATH", int: "NUMBER", float: "NUMBER"}
        shown = param.metavar or words.get(kind) or str(param.name).rpartition("_")[2].upper()
        param.metavar = shown
    param.display_type_rich = lambda ctx: shown


def _dialects() -> str:
    from adapters import known_dialects

    return ", ".join(known_dialects())


def flowing(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def given(*, data: Path | None = None, **others: object) -> dict[str, object]:
    """What the command line says of the settings; a path is meant from where the user stands."""
    return {"data": data.absolute() if data else None, **others}


def has_settings(file: Path | None) -> bool:
    """Whether somebody wrote the settings: a file was named, or config.yaml is here."""
    return file is not None or CONFIG.exists()


def settings(file: Path | None, overrides: Mapping[str, object] | None = None) -> "Config":
    from gateway.config import TEMPLATE, load_config

    return load_config(file or (CONFIG if has_settings(file) else TEMPLATE), overrides)


def checked(file: Path | None, overrides: Mapping[str, object] | None = None) -> "Config":
    """Read the settings for a server: if they are wrong, the dialects and agents that they name are checked as well."""
    from gateway.config import ConfigProblems
    from gateway.marks import Problems

    try:
        return settings(file, overrides)
    except ConfigProblems as found:
        if found.rest is None:
            raise
        from gateway.parts import problems_of

        raise Problems({*found.problems, *problems_of(found.rest)}) from None


def is_address(url: str) -> bool:
    """Whether a server could be there: a scheme that we speak, a host, and a port if any that there can be."""
    from yarl import URL

    try:
        return URL(url).origin().scheme in ("http", "https")
    except ValueError:
        return False


def fail(message: str) -> NoReturn:
    """Say it once, on standard error, and leave."""
    typer.echo(message, err=True)
    raise typer.Exit(MISTAKE)


@contextmanager
def telling() -> Iterator[None]:
    """Mistakes that the user can mend are told without a traceback, all at once."""
    from gateway.errors import GatewayError
    from gateway.marks import Problems

    try:
        yield
    except Problems as problems:
        fail(str(problems))
    except GatewayError as error:
        fail(error.message)
