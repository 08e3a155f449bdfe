"""`dragoman openapi` and `dragoman asyncapi`: print the API documents of the settings without starting a server."""

from typing import TYPE_CHECKING, Annotated

import typer

from .options import ConfigFile, load_checked_settings, report_errors

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.config import Config

ChosenDialect = Annotated[str | None, typer.Option(
    "--dialect", metavar="DIALECT", help="Only this dialect, also if the settings do not serve it: {dialects}.")]


def openapi(config: ConfigFile = None, dialect: ChosenDialect = None) -> None:
    """Print the OpenAPI document: every request that a server with these settings answers.

    Example: [b]dragoman openapi > openapi.json[/b]
    """
    _print_document("/openapi.json", config, dialect)


def asyncapi(config: ConfigFile = None, dialect: ChosenDialect = None) -> None:
    """Print the AsyncAPI document: every stream and socket that a server with these settings has.

    Example: [b]dragoman asyncapi > asyncapi.json[/b]
    """
    _print_document("/asyncapi.json", config, dialect)


def _print_document(kind: str, file: "Path | None", dialect: str | None) -> None:
    import orjson

    with report_errors():
        from gateway.app import Gateway
        from gateway.composition import load_components

        settings = load_checked_settings(file)
        if dialect is not None:
            settings = _serving(settings, dialect)
        gateway = Gateway(load_components(settings))
        document = gateway.api_documents.make(kind, dialect or "")
    typer.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())


def _serving(settings: "Config", dialect: str) -> "Config":
    """The settings; if they do not serve the dialect, with the dialect at its usual path."""
    from adapters import add_dialect_folders
    from gateway.composition import find_dialect
    from gateway.config import DialectSettings

    add_dialect_folders(settings.dialect_folders)
    find_dialect(dialect)
    served = settings.dialects.get(dialect) or DialectSettings()
    return settings.model_copy(update={"dialects": {dialect: served}})
