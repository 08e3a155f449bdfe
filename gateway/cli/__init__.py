"""The command line; each command imports what it needs only when it runs."""

import re
import signal
from typing import Annotated, Any

import typer
from typer.main import get_command

from .api_documents import asyncapi, openapi
from .chat import chat
from .check import check
from .cluster import cluster
from .doctor import doctor
from .export_sessions import export_sessions
from .import_sessions import import_sessions
from .keys import keys
from .log import log
from .migrate import migrate
from .migrate_verify import verify_sessions
from .options import OWN_PROCESS, CommandGroup, format_help
from .plan import plan
from .purge import purge
from .replay import replay
from .serve import serve
from .sessions import sessions
from .starter_files import init, new_dialect
from .translate import translate
from .usage import usage

EXTERNAL_COMMANDS = {
    "conform": ("conformance.command", "conform"),
    "conform-client": ("conformance.clients.command", "conform_client"),
    "record": ("conformance.recording.command", "record"),
}
"""Commands of other packages, which are imported only when a command runs."""


SPEC = re.compile(r'^spec: "?([^"\n]+)', re.MULTILINE)
"""The version of the protocol in a table; to read a whole table takes longer than anybody waits for a version."""
HANDLE_INTERRUPTS = ("chat", "sessions")
"""Commands that handle Ctrl-C themselves; the others get the default of Python."""


class RootCommandGroup(CommandGroup):
    """The commands of this package and those of other packages."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *EXTERNAL_COMMANDS]

    def get_command(self, ctx: object, cmd_name: str) -> Any:
        return _load_external(ctx, cmd_name) if cmd_name in EXTERNAL_COMMANDS else super().get_command(ctx, cmd_name)


def _load_external(ctx: object, name: str) -> object:
    from importlib import import_module

    module, function = EXTERNAL_COMMANDS[name]
    try:
        found = getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        if error.name and module.startswith(error.name):
            return None  # installed without conformance
        raise
    alone = typer.Typer(add_completion=False)
    alone.command(name)(found)
    command = get_command(alone)
    command.name = name
    format_help(command, ctx)
    return command


app = typer.Typer(
    name="dragoman",
    cls=RootCommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("serve")(serve)
app.command("init")(init)
app.command("check")(check)
app.command("doctor")(doctor)
app.command("new-dialect")(new_dialect)
app.command("chat")(chat)
app.command("sessions")(sessions)
app.command("usage")(usage)
app.command("import")(import_sessions)
app.command("export")(export_sessions)
app.command("purge")(purge)
app.command("plan")(plan)
app.command("translate")(translate)
app.command("replay")(replay)
app.command("openapi")(openapi)
app.command("asyncapi")(asyncapi)
migrate.command("verify")(verify_sessions)
app.add_typer(migrate, name="migrate")
app.add_typer(log, name="log")
app.add_typer(keys, name="keys")
app.add_typer(cluster, name="cluster")


@app.command("version")
def version() -> None:
    """Print the version, and the versions of what it stores and of the tables.

    Example: [b]dragoman version[/b]
    """
    from importlib.metadata import version as version_of

    from adapters import known_dialects
    from gateway.model import MODEL_VERSION
    from gateway.storage import SCHEMA_VERSION
    from mappings.language import builtin_path

    typer.echo(f"dragoman {version_of('dragoman')}")
    typer.echo(f"stores   database {SCHEMA_VERSION}, records {MODEL_VERSION}")
    tables = {name: SPEC.search(builtin_path(name).read_text(encoding="utf-8")) for name in known_dialects()}
    typer.echo(f"tables   {', '.join(f'{name} {found[1]}' for name, found in tables.items() if found)}")


def _version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def dragoman(
    context: typer.Context,
    is_version_wanted: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the versions.")
    ] = False,
) -> None:
    """One agent, every client protocol.

    Example: [b]dragoman serve[/b]
    """
    if context.obj is OWN_PROCESS and context.invoked_subcommand not in HANDLE_INTERRUPTS:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def main() -> None:
    app(obj=OWN_PROCESS)
