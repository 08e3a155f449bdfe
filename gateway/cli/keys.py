"""`dragoman keys`: adds, lists and removes the keys of `auth: keys`."""

from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    CommandGroup,
    ConfigFile,
    DataFolder,
    load_settings,
    report_errors,
    setting_overrides,
    write_audit_line,
)

if TYPE_CHECKING:
    from gateway.config import Config
    from gateway.ports import Key
    from gateway.resources import KeyStore

MINUTE = "%Y-%m-%d %H:%M"

keys = typer.Typer(
    cls=CommandGroup, no_args_is_help=True, help="Make, list and remove keys. Example: [b]dragoman keys add laptop[/b]",
)

KeyName = Annotated[str, typer.Argument(help="The name of the key.", metavar="NAME")]


@keys.command("add")
def add(
    name: KeyName,
    user: Annotated[str | None, typer.Option(
        help="The user whose sessions the key opens; by default the name of the key.")] = None,
    config: ConfigFile = None,
    data: DataFolder = None,
) -> None:
    """Make a key and print it once: only its hash is stored.

    Example: [b]dragoman keys add laptop --user ada[/b]

    Keys of the same user open the same sessions. Only the key goes to standard output, so that it can be piped.
    """
    with report_errors():
        chosen = load_settings(config, setting_overrides(data=data))
        token = _store(chosen).add(name, user)
        write_audit_line(chosen, "key.created", f"{name} of {user or name}")
        typer.echo(f"Key '{name}' of user '{user or name}'. Copy it now: it cannot be shown again.", err=True)
        typer.echo(token)


@keys.command("list")
def show(config: ConfigFile = None, data: DataFolder = None) -> None:
    """List the keys: names, users, when each was made and last used, and which key made it.

    Example: [b]dragoman keys list[/b]
    """
    with report_errors():
        found = _store(load_settings(config, setting_overrides(data=data))).list()
    if not found:
        typer.echo("There are no keys. Make one with: dragoman keys add NAME", err=True)
        return
    names = {key.hash: key.name for key in found}
    rows = [(key.name, key.user or "-", f"{key.created:{MINUTE}} UTC", _use(key), _origin(key, names)) for key in found]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo("  ".join(f"{word:{width}}" for word, width in zip(row, widths, strict=True)).rstrip())


def _use(key: "Key") -> str:
    if key.used is None:
        return "never used"
    return f"used {key.used:{MINUTE}} UTC" + (f" from {key.used_from}" if key.used_from else "")


def _origin(key: "Key", names: dict[str, str]) -> str:
    if not key.user:
        return "opens nothing: it was made without a user, with auth: none"
    return f"made by {names.get(key.parent, key.parent)}" if key.parent else ""


@keys.command("remove")
def remove(name: KeyName, config: ConfigFile = None, data: DataFolder = None) -> None:
    """Remove a key, and the keys that were made with it: they stop working at once, on running servers too.

    Example: [b]dragoman keys remove laptop[/b]

    Connections that were opened with such a key are closed within a second.
    """
    with report_errors():
        chosen = load_settings(config, setting_overrides(data=data))
        first, *others = _store(chosen).remove(name)
        write_audit_line(chosen, "key.revoked", first.name)
        for other in others:
            write_audit_line(chosen, "key.revoked", f"{other.name}, made by {name}")
        typer.echo(f"Key '{name}' is removed.", err=True)
        if others:
            typer.echo(f"So are the keys that were made with it: {', '.join(key.name for key in others)}", err=True)


def _store(config: "Config") -> "KeyStore":
    from gateway.storage_factory import make_key_store

    return make_key_store(config)
