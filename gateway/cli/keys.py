"""`dragoman keys`: who may come in where `auth: keys` is set."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import Commands, ConfigFile, DataFolder, given, settings, telling

if TYPE_CHECKING:
    from gateway.resources import KeyStore

keys = typer.Typer(
    cls=Commands, no_args_is_help=True, help="Make, list and remove keys. Example: [b]dragoman keys add laptop[/b]",
)

KeyName = Annotated[str, typer.Argument(help="What the key is called, here and in the list.", metavar="NAME")]


@keys.command("add")
def add(
    name: KeyName,
    user: Annotated[str | None, typer.Option(help="Whose sessions it opens; by default the key's name.")] = None,
    config: ConfigFile = None,
    data: DataFolder = None,
) -> None:
    """Make a key and show it, this once: only a hash of it is kept.

    Example: [b]dragoman keys add laptop --user ada[/b]

    Keys of the same user open the same sessions. The key alone goes to standard output, so that it can be piped.
    """
    with telling():
        token = _store(config, data).add(name, user)
        typer.echo(f"Key '{name}' of user '{user or name}'. Keep it now: it cannot be shown again.", err=True)
        typer.echo(token)


@keys.command("list")
def show(config: ConfigFile = None, data: DataFolder = None) -> None:
    """List the keys: their names, users and dates.

    Example: [b]dragoman keys list[/b]
    """
    with telling():
        found = _store(config, data).list()
    if not found:
        typer.echo("There are no keys. Make one with: dragoman keys add NAME", err=True)
        return
    names, users = (max(map(len, column)) for column in zip(*((k.name, k.user) for k in found), strict=True))
    for key in found:
        typer.echo(f"{key.name:{names}}  {key.user:{users}}  {key.created:%Y-%m-%d %H:%M} UTC")


@keys.command("remove")
def remove(name: KeyName, config: ConfigFile = None, data: DataFolder = None) -> None:
    """Remove a key: from now on it opens nothing, not even on a server that runs.

    Example: [b]dragoman keys remove laptop[/b]
    """
    with telling():
        _store(config, data).remove(name)
        typer.echo(f"Key '{name}' is removed.", err=True)


def _store(config: Path | None, data: Path | None) -> "KeyStore":
    from gateway.resources import KeyStore

    return KeyStore(settings(config, given(data=data)).data)
