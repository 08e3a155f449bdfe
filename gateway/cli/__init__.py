"""The command line; each command imports what it needs when it runs, and not before."""

import signal
from typing import Annotated, Any

import typer
from typer.main import get_command

from .chat import chat
from .check import check
from .common import OWN_PROCESS, Commands, explain
from .init import init
from .keys import keys
from .log import log
from .replay import replay
from .serve import serve
from .sessions import sessions
from .translate import translate

ELSEWHERE = {
    "conform": ("conformance.command", "conform"),
    "record": ("conformance.recording.command", "record"),
}
"""Commands that live in another package, which is imported only when they are asked for."""


OWN_BELL = ("chat", "sessions")
"""Commands that take care of Ctrl-C themselves; to the others it is what Python makes of it."""


class AllCommands(Commands):
    """The commands of this package, and those of others by name."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *ELSEWHERE]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _fetched(ctx, cmd_name) if cmd_name in ELSEWHERE else super().get_command(ctx, cmd_name)


def _fetched(ctx: Any, name: str) -> Any:
    from importlib import import_module

    module, function = ELSEWHERE[name]
    try:
        found = getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        if error.name and module.startswith(error.name):
            return None  # installed without it
        raise
    alone = typer.Typer(add_completion=False)
    alone.command(name)(found)
    command = get_command(alone)
    command.name = name
    explain(command, ctx)
    return command


app = typer.Typer(
    name="dragoman", cls=AllCommands, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("serve")(serve)
app.command("init")(init)
app.command("check")(check)
app.command("chat")(chat)
app.command("sessions")(sessions)
app.command("translate")(translate)
app.command("replay")(replay)
app.add_typer(log, name="log")
app.add_typer(keys, name="keys")


@app.command("version")
def version() -> None:
    """Say which version this is.

    Example: [b]dragoman version[/b]
    """
    from importlib.metadata import version as version_of

    typer.echo(f"dragoman {version_of('dragoman')}")


def _version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def dragoman(
    context: typer.Context,
    is_version_wanted: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    """One agent, every client protocol.

    Example: [b]dragoman serve[/b]
    """
    if context.obj is OWN_PROCESS and context.invoked_subcommand not in OWN_BELL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def main() -> None:
    app(obj=OWN_PROCESS)
