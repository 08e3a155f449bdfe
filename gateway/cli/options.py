"""What all commands share: options, settings, error reports, and the layout of the help texts."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from gateway.config import Config
from typing import Any

from typer.core import TyperGroup

EXIT_USER_ERROR = 2
"""The exit code of an error that the user can correct."""

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
"""The context object of a command that runs alone in its process."""


def setting_overrides(*, data: Path | None = None, **others: object) -> dict[str, object]:
    """Return the settings that the command line overrides; paths are relative to the current folder."""
    return {"data": data.absolute() if data else None, **others}


def has_settings(file: Path | None) -> bool:
    """Say whether there is a settings file: one was named, or config.yaml exists here."""
    return file is not None or CONFIG.exists()


def load_settings(file: Path | None, overrides: Mapping[str, object] | None = None) -> "Config":
    from gateway.config import TEMPLATE, load_config

    return load_config(file or (CONFIG if has_settings(file) else TEMPLATE), overrides)


def load_checked_settings(file: Path | None, overrides: Mapping[str, object] | None = None) -> "Config":
    """Read the settings of a server; if they have problems, report those of their dialects and agents as well."""
    from gateway.config import ConfigProblems
    from gateway.yaml_positions import Problems

    try:
        return load_settings(file, overrides)
    except ConfigProblems as found:
        if found.usable is None:
            raise
        from gateway.composition import component_problems

        raise Problems({*found.problems, *component_problems(found.usable)}) from None


def is_address(url: str) -> bool:
    """Say whether this is an http or https URL with a host and a valid port."""
    from yarl import URL

    try:
        return URL(url).origin().scheme in ("http", "https")
    except ValueError:
        return False


def fail(message: str) -> NoReturn:
    """Print the message on standard error, and exit."""
    typer.echo(message, err=True)
    raise typer.Exit(EXIT_USER_ERROR)


@contextmanager
def report_errors() -> Iterator[None]:
    """Print errors that the user can correct without a traceback, all of them together."""
    from gateway.errors import GatewayError
    from gateway.yaml_positions import Problems

    try:
        yield
    except Problems as problems:
        fail(str(problems))
    except GatewayError as error:
        fail(error.message)


def write_audit_line(config: "Config", event: str, target: str) -> None:
    """Write a line to the audit log; the actor is the user of this machine."""
    import getpass
    import time

    from gateway.audit import append_line, audit_line

    try:
        who = getpass.getuser()
    except (KeyError, OSError):  # a container may run as a user without a name
        who = "operator"
    append_line(config.data / config.audit, audit_line(time.time(), event, who, "", "command line", target))


DIALECT_NAMES = "{dialects}"
"""This placeholder in a help text becomes the names of the dialects."""


class CommandGroup(TyperGroup):
    """A group of commands whose help texts are wrapped to the width of the terminal."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            format_help(command, ctx)
        return command

    def get_params(self, ctx: Any) -> Any:
        params: Any = super().get_params(ctx)
        for param in params:
            _name_value(param)
        return params


def format_help(command: Any, ctx: Any) -> None:
    """Join the lines of the help text, and name the values of the options."""
    command.help = join_lines(command.help or "")
    for param in command.get_params(ctx):
        if DIALECT_NAMES in (getattr(param, "help", None) or ""):
            param.help = param.help.replace(DIALECT_NAMES, _dialect_names())
        _name_value(param)


def _name_value(param: Any) -> None:
    """Show the value of an option as PATH, NUMBER or its own name, instead of a Python type; a flag has no value."""
    shown = ""
    if param.param_type_name == "option" and not param.is_flag:
        kind = getattr(getattr(param, "type_descriptor", None), "annotation", str)
        words = {Path: "PATH", int: "NUMBER", float: "NUMBER"}
        shown = param.metavar or words.get(kind) or str(param.name).rpartition("_")[2].upper()
        param.metavar = shown
    param.display_type_rich = lambda ctx: shown


def _dialect_names() -> str:
    from adapters import known_dialects

    return ", ".join(known_dialects())


def join_lines(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
