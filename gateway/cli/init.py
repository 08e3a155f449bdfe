"""`dragoman init`: writes a config.yaml to edit."""

from pathlib import Path
from typing import Annotated

import typer

from .options import CONFIG, fail


def init(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = CONFIG,
) -> None:
    """Write a config.yaml that serves the demo agent and explains every setting.

    Example: [b]dragoman init && dragoman serve[/b]

    A file that exists is never overwritten.
    """
    from gateway.config import TEMPLATE

    try:
        with file.open("x", encoding="utf-8") as written:
            written.write(TEMPLATE.read_text(encoding="utf-8"))
    except FileExistsError:
        fail(f"{file} exists and was left as it is; name another file, or edit this one")
    except OSError as error:
        fail(f"{file} cannot be written: {error.strerror}")
    typer.echo(f"{file} is written; edit it, then: dragoman serve" + ("" if file == CONFIG else f" --config {file}"))
