"""The suite by itself: `python -m conformance aap http://localhost:8080/aap`; `python -m conformance record …`."""

import sys

import typer

from conformance.command import conform
from conformance.recording.command import record


def main() -> None:
    """Examine; or record, if that is the first word."""
    is_record = sys.argv[1:2] == ["record"]
    command = record if is_record else conform
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(help=command.__doc__)(command)
    name = "python -m conformance record" if is_record else "python -m conformance"
    app(sys.argv[1 + is_record :], prog_name=name)


if __name__ == "__main__":
    main()
