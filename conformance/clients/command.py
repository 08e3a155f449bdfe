"""The command line of the examination of clients: `conform-client DIALECT --listen :PORT [--drive CMD]`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conformance.command import Conclusion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.clients.runner import Driver, Examination
    from conformance.clients.situation import Situation
    from conformance.clients.suite import ClientSuite
    from conformance.kit.requirement import Requirement
    from conformance.kit.verdict import CaseResult, Report

USAGE_ERROR = 2
EXAMPLE = """Examine a client of a dialect: play situations to it, and judge what it sends.

Example: dragoman conform-client aap --listen :18950 --report html

A server listens at the port. Have your client use its address. Each situation says in plain words what to do with the
client, such as "Send any message", and goes on by itself when it has seen enough; Enter goes on at once. If the client
does nothing, the situation is not testable.

With --drive a command is run for each situation in place of a person. It finds in its environment DRAGOMAN_URL (where
the server is), DRAGOMAN_KEY, DRAGOMAN_SITUATION (its name), DRAGOMAN_TEXT (the first message to send) and
DRAGOMAN_INSTRUCTION (all there is to do, as JSON). Its exit code does not matter: what the client sends is judged.

The exit code is 0 if every MUST passed, 1 if one failed, 3 if one could not be tested, and 2 if the examination could
not begin. With a baseline it is 0 as long as what does not pass is what the baseline says."""


def conform_client(
    dialect: Annotated[str, typer.Argument(help="The dialect that the client speaks, such as aap.")],
    listen: Annotated[
        str, typer.Option(metavar="[HOST]:PORT", help="Where the server listens; without a host at 127.0.0.1.")
    ] = ":18950",
    drive: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="Run this for each situation, in place of a person.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(envvar="CONFORM_KEY", help="The key that the client sends; struck out of reports.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Only these: AAP-CL-TOOL-01, AAP-CL-SSE-*; commas or repeated.")
    ] = None,
    level: Annotated[str, typer.Option(help="must, should or may: how far down to ask.")] = "may",
    baseline: Annotated[Path | None, typer.Option(help="Known failures, each with reason and expiry (YAML).")] = None,
    report: Annotated[
        list[str] | None,
        typer.Option(help="html, junit, json, markdown or badge; or FORMAT=PATH; or a path with its extension."),
    ] = None,
    transcripts: Annotated[Path | None, typer.Option(help="Write the wire traffic of every judgement here.")] = None,
    timeout: Annotated[
        float, typer.Option(min=1.0, help="Seconds in which the client must do something, in each situation.")
    ] = 60.0,
    list_situations: Annotated[
        bool, typer.Option("--list", help="Print the situations and what is to be done in each; examine nothing.")
    ] = False,
) -> None:
    """The function behind the command; see EXAMPLE for what it says of itself."""
    from conformance.clients.driver import CommandDriver, PersonDriver
    from conformance.clients.runner import Examination
    from conformance.clients.suite import load_client_suite
    from conformance.kit.baseline import read_baseline
    from conformance.kit.documents import DocumentError
    from conformance.kit.reports import parse_destination
    from conformance.kit.suite import choose

    try:
        suite = load_client_suite(dialect)
        wanted = choose(suite.catalogue.requirements, only or [], level)
        known = read_baseline(baseline, suite) if baseline else None
        destinations = [parse_destination(text, suite.catalogue.dialect) for text in report or []]
        host, port = parse_address(listen)
    except (DocumentError, ValueError) as error:
        raise _unusable(str(error)) from None
    if list_situations:
        for situation in suite.chosen(wanted):
            typer.echo(told(situation))
        return
    examination = Examination(host, port, key, timeout)
    driver: Driver = CommandDriver(drive) if drive else PersonDriver()
    found = _examined(suite, wanted, examination, driver)
    raise Conclusion("unreleased", known, destinations, transcripts).leave(found)


conform_client.__doc__ = EXAMPLE


def parse_address(text: str) -> tuple[str, int]:
    """`:8080`, `8080` or `host:8080`; ValueError says what would be right."""
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise ValueError(f"--listen {text}: write [HOST]:PORT, such as :18950")
    return host.strip("[]") or "127.0.0.1", int(port)


def told(situation: "Situation") -> str:
    """A situation and what is to be done in it, in plain words."""
    steps = "\n".join(f"  {number}. {words}" for number, words in enumerate(situation.instruction.words, 1))
    return f"{situation.name}: {situation.sentence}\n{steps}"


def _examined(
    suite: "ClientSuite", wanted: "Sequence[Requirement]", examination: "Examination", driver: "Driver"
) -> "Report":
    import asyncio

    from conformance.clients.runner import ClientRunner

    try:
        return asyncio.run(ClientRunner(suite, examination, driver).run(wanted, _announcer(suite, wanted), _tell))
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        place = f"{examination.host}:{examination.port}"
        raise _unusable(f"cannot listen at {place}: {reason}; --listen takes another address") from None


def _announcer(suite: "ClientSuite", wanted: "Sequence[Requirement]") -> "Callable[[Situation, str], None]":
    """Say which situation begins, and what is to be done."""
    total, count = len(suite.chosen(wanted)), 0

    def announce(situation: "Situation", url: str) -> None:
        nonlocal count
        count += 1
        if count == 1:
            typer.echo(f"the server is at {url}: have your client use it")
        typer.echo(f"\n[{count}/{total}] {told(situation)}")

    return announce


def _tell(result: "CaseResult") -> None:
    typer.echo(f"     {result.outcome} {result.requirements[0]} {result.remark}".rstrip())


def _unusable(words: str) -> typer.Exit:
    typer.echo(words, err=True)
    return typer.Exit(USAGE_ERROR)
