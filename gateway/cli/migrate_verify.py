"""`dragoman migrate verify`: are the conversations here those of the server that is their agent?"""

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .log import session_file
from .options import ConfigFile, DataFolder, fail, load_settings, report_errors, setting_overrides
from .remote_server import DEFAULT_TIMEOUT, RemoteServer, Timeout, explain_errors

if TYPE_CHECKING:
    from gateway.backends.remote import RemoteSettings
    from gateway.config import Config
    from gateway.migration import Comparison

REMOTE = "remote"
"""The kind of agents whose sessions another server has as well."""
EXIT_DIFFERENT = 1


def verify_sessions(
    agent: Annotated[str | None, typer.Option(
        help="The agent of the kind `remote`, if the settings have several.")] = None,
    user: Annotated[str, typer.Option(help="The user at the server, if the dialect lists by user.")] = "",
    config: ConfigFile = None,
    data: DataFolder = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Compare the sessions here with those of the server that is their agent; a gateway may be running meanwhile.

    Example: [b]dragoman migrate verify[/b]

    Turns, words and calls are compared. Every difference is printed, and every session that only the server has. The
    exit code is 0 if both sides are equal, 1 if they differ, and 2 if they could not be compared.
    """
    with report_errors():
        chosen = load_settings(config, setting_overrides(data=data))
        settings = _remote_settings(chosen, agent)
        server = RemoteServer(
            url=settings.url, dialect=settings.dialect, key=settings.key.get_secret_value(), timeout=timeout)
        with explain_errors(server):
            found = asyncio.run(_compare(session_file(chosen), server, user))
    for line in found.differences:
        typer.echo(line)
    typer.echo(f"{found.sessions:,} sessions and {found.turns:,} turns compared with {server.url}: "
               f"{found.words:,} words here, {found.words_there:,} there; {len(found.differences):,} differences")
    if found.running:
        typer.echo(f"{found.running:,} sessions were not compared, because a turn runs or waits in them")
    raise typer.Exit(0 if found.are_equal else EXIT_DIFFERENT)


async def _compare(path: Path, server: RemoteServer, user: str) -> "Comparison":
    from gateway.migration import Origin, compare_sessions
    from gateway.storage.log import open_log_file

    source = server.past_sessions(user)
    try:
        with open_log_file(path) as file:
            return await compare_sessions(file, source, Origin(dialect=server.dialect, url=server.url), time.time())
    finally:
        await source.close()


def _remote_settings(config: "Config", wanted: str | None) -> "RemoteSettings":
    """The settings of the agent that was named, or of the only one whose turns another server runs."""
    from gateway.backends.remote import RemoteSettings

    names = [name for name, agent in config.agents.items() if agent.backend == REMOTE]
    if wanted is not None and wanted not in names:
        fail(f"--agent: '{wanted}' is no agent of the kind remote; there are: {', '.join(names) or 'none'}")
    if not names:
        fail("no agent of the settings is of the kind remote: there is no server to compare with")
    if wanted is None and len(names) > 1:
        fail(f"name one with --agent; there are several of the kind remote: {', '.join(names)}")
    return RemoteSettings.model_validate(config.agents[wanted or names[0]].settings)
