"""How the help texts of the commands are laid out."""

from pathlib import Path
from typing import Any

from typer.core import TyperGroup

DIALECT_NAMES = "{dialects}"
"""In a help, the names of those there are."""


class CommandGroup(TyperGroup):
    """Commands whose help flows: where a line of the docstring ends says nothing of where one of the terminal does."""

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
    """Make the help of a command fit to be read."""
    command.help = join_lines(command.help or "")
    for param in command.get_params(ctx):
        if DIALECT_NAMES in (getattr(param, "help", None) or ""):
            param.help = param.help.replace(DIALECT_NAMES, _dialect_names())
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


def _dialect_names() -> str:
    from adapters import known_dialects

    return ", ".join(known_dialects())


def join_lines(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
