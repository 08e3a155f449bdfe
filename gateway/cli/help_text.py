"""The layout of the help texts of all commands."""

from pathlib import Path
from typing import Any

from typer.core import TyperGroup

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
