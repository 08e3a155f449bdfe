"""The command line of the examiners: `conform DIALECT URL`, or `conform DIALECT --transcript FILE`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import BaseModel

    from conformance.kit.baseline import Baseline
    from conformance.kit.requirement import Requirement
    from conformance.kit.suite import Suite, Target
    from conformance.kit.verdict import Report

USAGE_ERROR = 2
EXAMPLE = """Examine a server of a dialect, requirement by requirement.

Example: dragoman conform aap http://localhost:8080/aap --key KEY --report html --report junit=report.xml

The exit code is 0 if every MUST passed, 1 if one failed, 3 if one could not be tested, and 2 if the examination could
not begin, such as when no server of the dialect answers. With a baseline it is 0 as long as what does not pass is what
the baseline says, and 1 as soon as it says too much. A server whose agent does not know the demo agent's directives
needs a profile that says which prompt brings about which situation: --print-profile prints one to edit.

With --transcript a recording (of `dragoman record`, or a HAR file) is judged instead of a server: what it does not show
is not testable."""


def conform(
    dialect: Annotated[str, typer.Argument(help="The dialect to examine, such as aap.")],
    url: Annotated[
        str | None,
        typer.Argument(help="Where the server is, as `dragoman serve` prints it: http://localhost:8080/aap."),
    ] = None,
    key: Annotated[
        str | None, typer.Option(envvar="CONFORM_KEY", help="The bearer key; struck out of every report.")
    ] = None,
    profile: Annotated[Path | None, typer.Option(help="How to bring about situations (YAML).")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Only these: AAP-SSE-01, AAP-META-*; commas or repeated.")
    ] = None,
    level: Annotated[str, typer.Option(help="must, should or may: how far down to ask.")] = "may",
    baseline: Annotated[Path | None, typer.Option(help="Known failures, each with reason and expiry (YAML).")] = None,
    report: Annotated[
        list[str] | None,
        typer.Option(help="html, junit, json, markdown or badge; or FORMAT=PATH; or a path with its extension."),
    ] = None,
    transcripts: Annotated[Path | None, typer.Option(help="Write the wire traffic of every case here.")] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for any one answer.")] = 10.0,
    allow_destructive: Annotated[
        bool, typer.Option("--allow-destructive", help="Also ask what may change more than the suite has made.")
    ] = False,
    requirements: Annotated[str | None, typer.Option(help="The frozen set to judge by, such as 2026-11.")] = None,
    print_profile: Annotated[
        bool, typer.Option("--print-profile", help="Print the profile of the demo agent, to edit; examine nothing.")
    ] = False,
    transcript: Annotated[
        Path | None, typer.Option(help="Judge this recording (JSON lines or HAR) instead of a server.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="A folder with a suite of your own, as `dragoman new-dialect` writes it.")
    ] = None,
) -> None:
    """The function behind the command; see EXAMPLE for what it says of itself."""
    from conformance.kit.advice import advice
    from conformance.kit.baseline import read_baseline
    from conformance.kit.documents import DocumentError
    from conformance.kit.freeze import chosen_set
    from conformance.kit.reports import parse_destination
    from conformance.kit.suite import Target, add_folder, choose, find_suite

    try:
        if folder is not None:
            add_folder(folder.absolute())
        suite = find_suite(dialect)
        if print_profile:
            typer.echo(suite.default_profile.read_text(encoding="utf-8"), nl=False)
            return
        settings = suite.read_profile(profile)
        frozen = chosen_set(requirements, suite.catalogue)
        wanted = choose(frozen.requirements(suite.catalogue), only or [], level)
        known = read_baseline(baseline, suite) if baseline else None
        destinations = [parse_destination(text, dialect) for text in report or []]
    except (DocumentError, ValueError) as error:
        raise _unusable(str(error)) from None
    hint = None
    if transcript is not None:
        found = _judged(suite, wanted, transcript, url, key)
    elif url is not None:
        found = _examined(suite, settings, wanted, Target(url, key, timeout, allow_destructive))
        hint = advice(found, has_key=bool(key), has_profile=profile is not None)
    else:
        raise _unusable(f"say where the server is: dragoman conform {dialect} URL; or --transcript FILE")
    _conclude(found.judged_by(frozen.version), known, destinations, transcripts, hint)


conform.__doc__ = EXAMPLE


def _examined(suite: "Suite", settings: "BaseModel", wanted: "Sequence[Requirement]", target: "Target") -> "Report":
    """What a live server answers; progress is told on the console."""
    import asyncio

    from rich.console import Console

    from conformance.kit.presence import Absent, locate, plain, public
    from conformance.kit.reports import console as on_console
    from conformance.kit.runner import Runner, obstacle

    try:
        if reason := asyncio.run(obstacle(plain(target.url), target.timeout)):
            where = f"{public(target.url)} cannot be reached: {reason}"
            raise _unusable(f"{where}; is it running, and is that its address?")
        target = asyncio.run(locate(suite, target))
    except (Absent, ValueError) as error:
        raise _unusable(str(error)) from None
    names = {item.id for item in wanted}
    total = sum(bool(names.intersection(case.requirements)) for case in suite.cases)
    with on_console.progress(Console(), total) as watcher:
        return asyncio.run(Runner(suite, target, settings).run(wanted, watcher))


def _judged(
    suite: "Suite", wanted: "Sequence[Requirement]", path: Path, url: str | None, key: str | None
) -> "Report":
    """What a recording tells; of an address beside it only the path counts, as that of the mount."""
    from rich.console import Console
    from yarl import URL

    from conformance.kit.reports import console as on_console
    from conformance.offline.judging import judge, load_offline, mounted
    from conformance.offline.reading import read
    from conformance.offline.tape import Unusable

    try:
        mount = URL(url).path.rstrip("/").removesuffix(suite.own_path) if url is not None else None
        tape = mounted(read(path), suite.catalogue.dialect, mount)
    except Unusable as error:
        raise _unusable(str(error)) from None
    for remark in tape.remarks:
        typer.echo(f"{path}: {remark}", err=True)
    with on_console.progress(Console(), len(load_offline(suite.catalogue.dialect).rules)) as watcher:
        return judge(suite, tape, wanted, watcher, secrets=[key] if key else [])


def _conclude(
    found: "Report", known: "Baseline | None", destinations: "Sequence[tuple[str, Path]]", transcripts: Path | None,
    hint: str | None,
) -> None:
    """Hold the report against the baseline, tell it everywhere, and leave with its exit code."""
    from rich.console import Console

    from conformance.kit.folders import make_folder
    from conformance.kit.reports import console as on_console
    from conformance.kit.reports import write_report, write_transcripts

    if known is not None:
        found = known.held_against(found)
    on_console.conclude(Console(), found)
    if hint is not None:
        typer.echo(hint, err=True)
    try:
        for kind, path in destinations:
            make_folder(path.parent, _say)
            write_report(found, kind, path)
            typer.echo(f"wrote the {kind} report to {path}")
        if transcripts is not None:
            make_folder(transcripts, _say)
            write_transcripts(found, transcripts)
            typer.echo(f"wrote {len(found.results)} transcripts to {transcripts}")
    except OSError as error:
        raise _unusable(f"cannot write the report: {error}; --report takes another place") from None
    raise typer.Exit(found.exit_code)


def _say(words: str) -> None:
    typer.echo(words, err=True)


def _unusable(words: str) -> typer.Exit:
    _say(words)
    return typer.Exit(USAGE_ERROR)
