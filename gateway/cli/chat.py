"""`dragoman chat`: talk with a server of any dialect from the terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TYPE_CHECKING, Annotated

import typer

from .common import DIALECTS, fail, is_address, telling
from .translate import hang_up

if TYPE_CHECKING:
    from gateway.errors import GatewayError
    from gateway.model import AgentCard, Permission, ToolSpec
    from gateway.upstream import Remote

PATIENCE = 300.0
"""Seconds to wait for the server to say something."""
CONNECTING = 10.0
STOPPED = 130
"""The exit code of a program that was stopped by Ctrl-C."""
LONGEST_TURN = 24 * 3600.0
NOT_FOUND = 404
HINTS = {401: "give a key that it knows with --key or in DRAGOMAN_KEY", 403: "this key may not talk there"}
"""What can be done about a refusal."""
ELSEWHERE = (400, NOT_FOUND, 405, 415, 422, 501)
"""What a server that is something else, or somewhere else, may say."""


def chat(
    url: Annotated[str, typer.Argument(help="Where the server is: the address its dialect's routes start from.")],
    dialect: Annotated[str | None, typer.Option(
        "--dialect", "-d", help=f"What it speaks: {DIALECTS}. Left out, it is the one whose usual path this is.",
    )] = None,
    agent: Annotated[str | None, typer.Option(help="Which of its agents, where it has several.")] = None,
    key: Annotated[str | None, typer.Option(envvar="DRAGOMAN_KEY", help="The key to be let in with.")] = None,
    system: Annotated[str | None, typer.Option(help="What the agent is told before everything else.")] = None,
    model: Annotated[str | None, typer.Option(help="The model that the agent should use.")] = None,
    tool: Annotated[
        list[str] | None, typer.Option(help="A tool of yours, NAME or NAME=WHAT IT DOES; you give its results.")
    ] = None,
    ask_before: Annotated[
        list[str] | None, typer.Option(help="Be asked before the agent uses this tool of its own, where that is told.")
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for each word of the server.")] = PATIENCE,
) -> None:
    """Talk with a server of any dialect: its words as they come, its tools, its questions.

    Example: [b]dragoman chat https://agents.example.com/their/path --dialect NAME[/b]

    Ctrl-C interrupts the agent; at the prompt, Ctrl-C or Ctrl-D leaves. /help tells what else can be said. Without a
    terminal each line that is read is a message, and the reply alone is printed:
    [b]echo hello | dragoman chat URL --dialect D[/b]

    The exit code is 0, 1 if the agent failed in a chat without a terminal, and 2 if the server cannot be talked to.
    """
    with telling():
        name = _spoken(url, dialect)
        remote, code = _dialled(url, name, key or "", agent, timeout), 0
        with _explaining(url, name, agent):
            code = _talk(remote, system, model, tool or [], ask_before or [])
    raise typer.Exit(code)


def _spoken(url: str, wanted: str | None) -> str:
    """The dialect that was named, or the one that gateways have at this path."""
    from gateway.backends.remote import speakers

    if not is_address(url):
        fail(f"'{url}' is not an http or https address; write it as http://HOST:PORT/PATH")
    usual = [name for name in speakers() if _usual(url, name) == url.rstrip("/")]
    name = wanted or next(iter(usual), None)
    if name not in speakers():
        what = f"nobody speaks '{name}' here" if name else "say which dialect the server speaks, with --dialect"
        fail(f"{what}; there are: {', '.join(speakers())}")
    return name


def _dialled(url: str, dialect: str, key: str, agent: str | None, timeout: float) -> "Remote":
    from gateway.backends.remote import dialled
    from gateway.upstream import Patience, RemoteAddress

    patience = Patience(
        connect=min(CONNECTING, timeout), first_byte=timeout, idle=timeout, total=LONGEST_TURN, attempts=2,
    )
    return dialled(dialect, RemoteAddress(url=url.rstrip("/"), key=key, agent=agent, patience=patience))


def _talk(remote: "Remote", system: str | None, model: str | None, own: list[str], careful: list[str]) -> int:
    import structlog

    from gateway import journal
    from gateway.chat import Bell, Line, LinePrompt, PlainScreen, Talk, TerminalPrompt, TerminalScreen
    from gateway.model import Settings

    if not structlog.is_configured():
        journal.configure("console", "warning")  # to standard error: standard output has the replies alone
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # what one side cannot spell is no reason to stop
    specs = tuple(map(_tool, own))
    with Bell() as bell, Line(remote) as line:
        with bell.listening():
            card = line.about()
        if specs and not card.capabilities.client_tools:
            fail(f"--tool {specs[0].name}: this server takes no tools of its clients")
        settings = Settings(system=system, model=model, client_tools=specs, tools=_permissions(card, careful))
        if not is_terminal:
            screen, prompt = PlainScreen(sys.stdout, sys.stderr), LinePrompt(bell, sys.stdin)
            return Talk(line, screen, prompt, bell, settings=settings, is_patient=False).run()

        from rich.console import Console

        terminal = TerminalScreen(Console(highlight=False))
        terminal.note(f"talking with {card.title or card.name}; /help tells what can be said beside words")
        return Talk(line, terminal, TerminalPrompt(bell), bell, settings=settings, is_patient=True).run()


def _tool(said: str) -> "ToolSpec":
    from gateway.model import ToolSpec

    name, _, what = said.partition("=")
    if not name.strip():
        fail(f"--tool '{said}': say NAME, or NAME=WHAT IT DOES")
    return ToolSpec(name=name.strip(), description=what.strip() or name.strip(), parameters={"type": "object"})


def _permissions(card: "AgentCard", careful: list[str]) -> "dict[str, Permission] | None":
    """What the agent may do with its own tools; None where nobody said anything about that."""
    from gateway.model import Permission

    names = [tool.spec.name for tool in card.tools]
    if strange := [name for name in careful if name not in names]:
        has = f"the agent has: {', '.join(names)}" if names else "this server names no tools of its agent"
        fail(f"--ask-before {strange[0]}: there is no such tool; {has}")
    if not careful:
        return None
    return {tool.spec.name: Permission.ASK if tool.spec.name in careful else tool.permission for tool in card.tools}


@contextmanager
def _explaining(url: str, dialect: str, agent: str | None) -> Iterator[None]:
    """What keeps us from talking is told with what can be done about it."""
    from gateway.chat import Rung
    from gateway.errors import GatewayError

    try:
        yield
    except GatewayError as error:
        hint = _hint(error, url, dialect, agent)
        fail(f"{error.message.removesuffix('.')}; {hint}" if hint else error.message)
    except Rung:
        raise typer.Exit(STOPPED) from None
    except BrokenPipeError:
        hang_up()


def _hint(error: "GatewayError", url: str, dialect: str, agent: str | None) -> str:
    from gateway.errors import TimedOut
    from gateway.upstream import Unreachable

    status, usual = (error.details or {}).get("upstream_status"), _usual(url, dialect)
    if isinstance(error, Unreachable):
        return "is it running, and is that its address?"
    if isinstance(error, TimedOut):
        return "is that its address? --timeout waits longer"
    if status == NOT_FOUND and agent and f"'{agent}'" in error.message:
        return f"is '{agent}' what the agent is called there? Without --agent the server chooses"
    if status in ELSEWHERE and url.rstrip("/") != usual:
        return f"is {dialect} at this address? Dragoman has it at {usual}"
    return HINTS.get(status, "") if isinstance(status, int) else ""


def _usual(url: str, name: str) -> str:
    """Where a gateway that has not been told otherwise serves this dialect."""
    from urllib.parse import urlsplit

    from gateway.backends.remote import dialect

    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{dialect(name).mount}"
