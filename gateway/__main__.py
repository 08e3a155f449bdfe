"""`python -m gateway` is `dragoman`."""

import os
import signal

EXIT_INTERRUPTED = 130
"""The exit code of a program that was stopped by Ctrl-C."""


def main() -> None:
    """Whoever presses Ctrl-C before a command has begun leaves without a traceback; then it is the command's."""
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(EXIT_INTERRUPTED))
    from gateway.cli import main as run

    run()


if __name__ == "__main__":
    main()
