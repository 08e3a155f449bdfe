"""What the commands have in common: how settings are found, and how a mistake is told."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from gateway.config import Config

EXIT_USER_ERROR = 2
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














def setting_overrides(*, data: Path | None = None, **others: object) -> dict[str, object]:
    """What the command line says of the settings; a path is meant from where the user stands."""
    return {"data": data.absolute() if data else None, **others}


def has_settings(file: Path | None) -> bool:
    """Whether somebody wrote the settings: a file was named, or config.yaml is here."""
    return file is not None or CONFIG.exists()


def load_settings(file: Path | None, overrides: Mapping[str, object] | None = None) -> "Config":
    from gateway.config import TEMPLATE, load_config

    return load_config(file or (CONFIG if has_settings(file) else TEMPLATE), overrides)


def load_checked_settings(file: Path | None, overrides: Mapping[str, object] | None = None) -> "Config":
    """Read the settings for a server: if they are wrong, the dialects and agents that they name are checked as well."""
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
    """Whether a server could be there: a scheme that we speak, a host, and a port if any that there can be."""
    from yarl import URL

    try:
        return URL(url).origin().scheme in ("http", "https")
    except ValueError:
        return False


def fail(message: str) -> NoReturn:
    """Say it once, on standard error, and leave."""
    typer.echo(message, err=True)
    raise typer.Exit(EXIT_USER_ERROR)


@contextmanager
def report_errors() -> Iterator[None]:
    """Mistakes that the user can mend are told without a traceback, all at once."""
    from gateway.errors import GatewayError
    from gateway.yaml_positions import Problems

    try:
        yield
    except Problems as problems:
        fail(str(problems))
    except GatewayError as error:
        fail(error.message)
