"""The command line of the examiners: `conform DIALECT URL`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.kit.requirement import Requirement
    from conformance.kit.suite import Suite

USAGE_ERROR = 2
EXAMPLE = """Examine a server of a dialect, requirement by requirement.

Example: dragoman conform aap http://localhost:8080/aap --key KEY --report report.html --report junit=report.xml

The exit code is 0 if every MUST passed, 1 if one failed, 3 if one could not be tested, and 2 if the examination could
not begin. A server whose agent does not know the demo agent's directives needs a profile that says which prompt brings
about which situation."""


def conform(
    dialect: Annotated[str, typer.Argument(help="The dialect to examine, such as aap.")],
    url: Annotated[str, typer.Argument(help="Where the dialect is mounted, such as http://localhost:8080/aap.")],
    key: Annotated[str | None, typer.Option(help="The bearer key; struck out of every report.")] = None,
    profile: Annotated[Path | None, typer.Option(help="How to bring about situations (YAML).")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Only this requirement; may be repeated.")] = None,
    level: Annotated[str, typer.Option(help="must, should or may: how far down to ask.")] = "may",
    report: Annotated[
        list[str] | None, typer.Option(help="Write a report: FORMAT=PATH or a path ending in .json, .xml or .html.")
    ] = None,
    transcripts: Annotated[Path | None, typer.Option(help="Write the wire traffic of every case here.")] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for any one answer.")] = 10.0,
) -> None:
    """The function behind the command; see EXAMPLE for what it says of itself."""
    import asyncio

    from rich.console import Console

    from conformance.kit.documents import DocumentError
    from conformance.kit.reports import console as on_console
    from conformance.kit.reports import parse_destination, write_transcripts, writer
    from conformance.kit.runner import Runner, obstacle
    from conformance.kit.suite import Target

    try:
        suite = _suite(dialect)
        settings = suite.read_profile(profile)
        requirements = _chosen(suite, only or [], level)
        destinations = [parse_destination(text) for text in report or []]
    except (DocumentError, ValueError) as error:
        raise _unusable(str(error)) from None
    if not url.startswith(("http://", "https://")):
        raise _unusable(f"{url!r} is not an http or https address")
    if reason := asyncio.run(obstacle(url, timeout)):
        raise _unusable(f"{url} cannot be reached: {reason}")

    console = Console()
    wanted = {item.id for item in requirements}
    total = sum(bool(wanted.intersection(case.requirements)) for case in suite.cases)
    with on_console.progress(console, total) as watcher:
        runner = Runner(suite, Target(url, key, timeout), settings)
        found = asyncio.run(runner.run(requirements, watcher))
    on_console.conclude(console, found)
    try:
        for kind, path in destinations:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(writer(kind)(found), encoding="utf-8")
        if transcripts is not None:
            write_transcripts(found, transcripts)
    except OSError as error:
        raise _unusable(f"cannot write the report: {error}") from None
    raise typer.Exit(found.exit_code)


conform.__doc__ = EXAMPLE


def _suite(dialect: str) -> "Suite":
    from conformance.kit.suite import dialects, load_suite

    try:
        return load_suite(dialect)
    except KeyError:
        raise ValueError(f"there is no suite for {dialect!r}; there is one for: {', '.join(dialects())}") from None


def _chosen(suite: "Suite", only: list[str], level: str) -> "Sequence[Requirement]":
    """The requirements asked for, in the order of the catalogue."""
    from conformance.kit.requirement import Level

    if level not in list(Level):
        raise ValueError(f"there is no level {level!r}; say must, should or may")
    if unknown := sorted(set(only) - suite.catalogue.ids):
        raise ValueError(f"no such requirement: {', '.join(unknown)}")
    reach = Level(level)
    asked = [item for item in suite.catalogue.requirements if not only or item.id in only]
    return [item for item in asked if reach.includes(item.level)]


def _unusable(words: str) -> typer.Exit:
    typer.echo(words, err=True)
    return typer.Exit(USAGE_ERROR)
