"""`dragoman serve`: runs the server until it is stopped."""

import errno
from typing import TYPE_CHECKING, Annotated

import typer

from .options import ConfigFile, DataFolder, fail, has_settings, load_checked_settings, report_errors, setting_overrides

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Mapping

    from gateway.config import Config
    from gateway.worker import Worker


def serve(
    config: ConfigFile = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = None,
    data: DataFolder = None,
    watch: Annotated[bool, typer.Option("--watch", help="Read settings, tables and code again when changed.")] = False,
    workers: Annotated[str, typer.Option(
        "--workers", metavar="NUMBER|auto", envvar="DRAGOMAN_WORKERS",
        help="How many processes serve the port; auto: one per core. More than one needs `log: redis://…`.")] = "1",
) -> None:
    """Serve the agents of the settings in the dialects of the settings.

    Example: [b]dragoman serve --port 8080 --watch[/b]

    Ctrl-C stops the server: running turns may finish first. SIGHUP makes it read settings and tables again; several
    workers are replaced one by one.
    """
    from gateway.worker import Worker

    with report_errors():
        overrides = setting_overrides(host=host, port=port, data=data)
        chosen = load_checked_settings(config, overrides)
        worker = Worker.of_this_process()
        if not worker and not has_settings(config):
            _announce("There is no config.yaml here: the demo agent is served. `dragoman init` writes one to edit.")
        try:
            if worker or workers == "1":
                code = _run(chosen, watch, overrides, worker)
            else:
                from gateway.worker_pool import run_workers

                code = run_workers(chosen, workers, lambda: load_checked_settings(config, overrides), _announce)
        except OSError as error:
            fail(_listen_error(error, chosen))
        except KeyboardInterrupt:
            code = 0
    raise typer.Exit(code)


def _run(config: "Config", watch: bool, overrides: "Mapping[str, object]", worker: "Worker | None") -> int:
    import asyncio

    from gateway import logging, server

    logging.configure_logging(config.logging.format, config.logging.level)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(server.run(config, watch=watch, announce=_announce, overrides=overrides, worker=worker))


def _loop_factory() -> "Callable[[], AbstractEventLoop] | None":
    try:
        from uvloop import new_event_loop
    except ImportError:  # without uvloop the server uses the loop of asyncio, which is slower
        return None
    return new_event_loop


def _announce(line: str) -> None:
    print(line, flush=True)


def _listen_error(error: OSError, config: "Config") -> str:
    """Explain why the server cannot listen; other errors of the system are raised again."""
    import socket

    where = f"{config.host}:{config.port}"
    if isinstance(error, socket.gaierror):
        return f"cannot listen on {where}: there is no host '{config.host}'; choose another with --host"
    reasons = {
        errno.EADDRINUSE: "the port is in use; stop what uses it, or choose another with --port (0 takes a free one)",
        errno.EACCES: "the system does not allow it; ports below 1024 are for the administrator, choose with --port",
        errno.EADDRNOTAVAIL: "this machine does not have that address; choose another with --host",
    }
    if error.errno not in reasons:
        raise error
    return f"cannot listen on {where}: {reasons[error.errno]}"
