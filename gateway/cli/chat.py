"""`dragoman chat`: talk with a server of any dialect from the terminal."""

import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING, Annotated

import typer

from .options import OWN_PROCESS, fail, report_errors
from .remote_server import (
    DEFAULT_TIMEOUT,
    DialectName,
    Key,
    RemoteServer,
    Timeout,
    explain_errors,
    resolve_server,
)

if TYPE_CHECKING:
    import gateway.model as m
    from gateway.chat import InterruptWatcher, SyncClient

NO_SESSION_STATUSES = (400, 404, 410, 422)
"""Statuses of servers that do not have the session or do not accept its id."""


def chat(
    context: typer.Context,
    url: Annotated[str, typer.Argument(help="The URL of the server: the address below which its dialect is served.")],
    dialect: DialectName = None,
    session: Annotated[str | None, typer.Option(
        metavar="ID", help="Continue this session of the server; `dragoman sessions URL` lists them.")] = None,
    agent: Annotated[str | None, typer.Option(help="The agent to talk with, if the server has several.")] = None,
    key: Key = None,
    system: Annotated[str | None, typer.Option(
        metavar="TEXT", help="The system prompt of the session.")] = None,
    model: Annotated[str | None, typer.Option(help="The model that the agent should use.")] = None,
    tool: Annotated[
        list[str] | None, typer.Option(
            metavar="NAME", help="Offer a client tool, NAME or NAME=DESCRIPTION; you type results. May be repeated.")
    ] = None,
    ask_before: Annotated[
        list[str] | None, typer.Option(
            metavar="NAME",
            help="Ask you before the agent uses this server tool, if the dialect can say so. May be repeated.")
    ] = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Talk with an agent behind a server of any dialect: see text as it arrives, tool calls and questions.

    Example: [b]dragoman chat https://agents.example.com/their/path --dialect NAME[/b]

    Ctrl-C interrupts the agent; at the prompt, Ctrl-C or Ctrl-D leaves. /help lists the commands. Pasted
    text of several lines is one message. Without a terminal each line of the input is a message, and only replies are
    printed: [b]echo hello | dragoman chat URL --dialect D[/b]

    The exit code is 0, 1 if the agent failed in a chat without a terminal, 2 if the server cannot be used, and 130 if
    Ctrl-C ended the command while the agent was working.
    """
    from gateway.chat import InterruptWatcher

    with InterruptWatcher(is_last=context.obj is OWN_PROCESS) as interrupts, report_errors():
        server, code = resolve_server(url, dialect, key, timeout, agent), 0
        if session and system:
            fail("--system is for new sessions: an existing session keeps its system prompt")
        with explain_errors(server):
            code = _converse_with(interrupts, server, session, system, model, tool or [], ask_before or [])
    raise typer.Exit(code)


def _converse_with(
    interrupts: "InterruptWatcher",
    server: RemoteServer,
    session: str | None,
    system: str | None,
    model: str | None,
    own: list[str],
    careful: list[str],
) -> int:
    import gateway.model as m
    from gateway.chat import ChatLoop, LinePrompt, PlainScreen, SyncClient, TerminalPrompt, TerminalScreen

    _prepare_streams()
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    specs = tuple(map(_tool, own))
    with SyncClient(server.connect(), interrupts) as client:
        if session:
            _join(client, session, server)
        card = client.about()
        if specs and not card.capabilities.client_tools:
            fail(f"--tool {specs[0].name}: this server does not accept client tools")
        settings = m.Settings(system=system, model=model, client_tools=specs, tools=_permissions(card, careful))
        opened = session or client.open(settings)
        keeps = session is not None and not (specs or careful)
        if not is_terminal:
            screen, prompt = PlainScreen(sys.stdout, sys.stderr), LinePrompt(interrupts, sys.stdin)
            return ChatLoop(
                client, screen, prompt, opened, settings=settings, keeps_settings=keeps, is_interactive=False,
            ).run()

        from rich.console import Console

        terminal = TerminalScreen(Console(highlight=False))
        terminal.note(f"talking with {card.title or card.name}; /help lists the commands")
        terminal.note(f"session {opened}")
        return ChatLoop(
            client, terminal, TerminalPrompt(interrupts), opened, settings=settings, keeps_settings=keeps,
            is_interactive=True,
        ).run()


def _prepare_streams() -> None:
    """Send logs to standard error, because standard output has only replies, and let no character stop the chat."""
    import structlog

    from gateway import logging

    if not structlog.is_configured():
        logging.configure_logging("console", "warning")
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # instead of raising: the other side may use another encoding


def _join(client: "SyncClient", session: str, server: RemoteServer) -> None:
    from gateway.client import upstream_status
    from gateway.errors import GatewayError

    try:
        client.join(session)
    except GatewayError as error:
        if upstream_status(error) not in NO_SESSION_STATUSES:
            raise
        client.about()  # raises a better error if this is a server of another kind
        fail(f"there is no session '{session}' at {server.url}; `dragoman sessions {server.url}` lists those there are")


def _tool(option: str) -> "m.ToolSpec":
    import gateway.model as m

    name, _, what = option.partition("=")
    if not name.strip():
        fail(f"--tool '{option}': write NAME, or NAME=DESCRIPTION")
    return m.ToolSpec(name=name.strip(), description=what.strip() or name.strip(), parameters={"type": "object"})


def _permissions(card: "m.AgentCard", careful: list[str]) -> "dict[str, m.Permission] | None":
    """Return the permissions of the server tools; None leaves them to the server."""
    import gateway.model as m

    names = [tool.spec.name for tool in card.tools]
    if strange := [name for name in careful if name not in names]:
        has = f"the agent has: {', '.join(names)}" if names else "this server does not list the tools of its agent"
        fail(f"--ask-before {strange[0]}: there is no such tool; {has}")
    if not careful:
        return None
    return {tool.spec.name: m.Permission.ASK if tool.spec.name in careful else tool.permission for tool in card.tools}
