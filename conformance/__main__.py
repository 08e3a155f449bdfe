"""The suite by itself: `python -m conformance aap http://localhost:8080/aap`; `record …` and `client …` likewise."""

import sys
from collections.abc import Callable

import typer

from conformance.clients.command import conform_client
from conformance.command import conform
from conformance.recording.command import record

COMMANDS: dict[str, Callable[..., None]] = {"record": record, "client": conform_client}


def main() -> None:
    """Examine a server, or run the subcommand that the first argument names."""
    word = sys.argv[1] if sys.argv[1:2] and sys.argv[1] in COMMANDS else ""
    command = COMMANDS[word] if word else conform
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(help=command.__doc__)(command)
    app(sys.argv[1 + bool(word) :], prog_name=f"python -m conformance {word}".rstrip())


if __name__ == "__main__":
    main()
