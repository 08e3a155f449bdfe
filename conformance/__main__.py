"""The suite by itself: `python -m conformance aap http://localhost:8080/aap`."""

import typer

from conformance.command import conform


def main() -> None:
    """Run the one command."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(help=conform.__doc__)(conform)
    app(prog_name="python -m conformance")


if __name__ == "__main__":
    main()
