"""Options, settings and error reports that all commands share."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from gateway.config import Config

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
