"""Runs `dragoman` as `python -m gateway`."""

import os
import signal

EXIT_INTERRUPTED = 130
"""The exit code of a program that Ctrl-C stopped."""


def main() -> None:
    """Run the command line; Ctrl-C before a command has begun exits without a traceback."""
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(EXIT_INTERRUPTED))
    from gateway.cli import main as run

    run()


if __name__ == "__main__":
    main()
