"""The command line of the examiners: `conform DIALECT URL`, or `--transcript FILE`, or `--diff OLD NEW`."""

from dataclasses import dataclass
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
is not testable. With --diff two JSON reports are compared: the exit code is 1 if something got worse, and else 0.
With --watch the server is examined again each time it was gone and is back, until Ctrl-C."""


DialectName = Annotated[str | None, typer.Argument(help="The dialect to examine, such as aap.")]
ServerUrl = Annotated[
    str | None, typer.Argument(help="Where the server is, as `dragoman serve` prints it: http://localhost:8080/aap.")
]
Key = Annotated[str | None, typer.Option(envvar="CONFORM_KEY", help="The bearer key; struck out of every report.")]
ProfileFile = Annotated[Path | None, typer.Option(help="How to bring about situations (YAML).")]
Patterns = Annotated[
    list[str] | None, typer.Option(help="Only these: AAP-SSE-01, AAP-META-*; commas or repeated.")
]
LowestLevel = Annotated[str, typer.Option(help="must, should or may: how far down to ask.")]
BaselineFile = Annotated[Path | None, typer.Option(help="Known failures, each with reason and expiry (YAML).")]
ReportFormats = Annotated[
    list[str] | None,
    typer.Option(help="html, junit, json, markdown or badge; or FORMAT=PATH; or a path with its extension."),
]
TranscriptFolder = Annotated[Path | None, typer.Option(help="Write the wire traffic of every case here.")]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds to wait for any one answer.")]
AllowDestructive = Annotated[
    bool, typer.Option("--allow-destructive", help="Also ask what may change more than the suite has made.")
]
BudgetText = Annotated[
    str | None, typer.Option(help="What may be spent: turns=200,seconds=600, or one of them; the rest is left out.")
]
FrozenSet = Annotated[str | None, typer.Option(help="The frozen set to judge by, such as 2026-11.")]
PrintProfile = Annotated[
    bool, typer.Option("--print-profile", help="Print the profile of the demo agent, to edit; examine nothing.")
]
Recording = Annotated[
    Path | None, typer.Option(help="Judge this recording (JSON lines or HAR) instead of a server.")
]
SuiteFolder = Annotated[
    Path | None, typer.Option(help="A folder with a suite of your own, as `dragoman new-dialect` writes it.")
]
Watch = Annotated[
    bool, typer.Option("--watch", help="Examine again when the server was restarted; say what changed.")
]
TwoReports = Annotated[
    tuple[Path, Path] | None,
    typer.Option(metavar="OLD NEW", help="Compare two JSON reports of a dialect; examine nothing."),
]


def conform(
    dialect: DialectName = None, url: ServerUrl = None, key: Key = None, profile: ProfileFile = None,
    only: Patterns = None, level: LowestLevel = "may", baseline: BaselineFile = None, report: ReportFormats = None,
    transcripts: TranscriptFolder = None, timeout: Timeout = 10.0, allow_destructive: AllowDestructive = False,
    budget: BudgetText = None, requirements: FrozenSet = None, print_profile: PrintProfile = False,
    transcript: Recording = None, folder: SuiteFolder = None, watch: Watch = False, diff: TwoReports = None,
) -> None:
    """The function behind the command; see EXAMPLE for what it says of itself."""
    from conformance.kit.advice import advice
    from conformance.kit.budget import parse_budget
    from conformance.kit.documents import DocumentError
    from conformance.kit.freeze import chosen_set
    from conformance.kit.suite import Target, add_folder, choose, find_suite

    if diff is not None:
        raise _compared(*diff, dialect, is_alone=not (url or transcript or watch or report))
    if dialect is None:
        raise _unusable("say what to examine, and where: dragoman conform DIALECT URL")
    if watch and (transcript is not None or url is None):
        raise _unusable(f"only a server can be watched: dragoman conform {dialect} URL --watch")
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
        conclusion = _conclusion(dialect, suite, frozen.version, baseline, report or (), transcripts)
        purse = parse_budget(budget) if budget is not None else None
    except (DocumentError, ValueError) as error:
        raise _unusable(str(error)) from None
    if transcript is not None:
        raise conclusion.leave(_judged(suite, wanted, transcript, url, key))
    if url is None:
        raise _unusable(f"say where the server is: dragoman conform {dialect} URL; or --transcript FILE")
    target = Target(url, key, timeout, allow_destructive, budget=purse)
    if watch:
        raise _watched(suite, settings, wanted, target, conclusion)
    found = _examined(suite, settings, wanted, target)
    raise conclusion.leave(found, advice(found, has_key=bool(key), has_profile=profile is not None))


conform.__doc__ = EXAMPLE


def _conclusion(
    dialect: str, suite: "Suite", frozen: str, baseline: Path | None, reports: "Sequence[str]",
    transcripts: Path | None,
) -> "Conclusion":
    """What finishes the examination: the baseline, and the files for reports."""
    from conformance.kit.baseline import read_baseline
    from conformance.kit.reports import parse_destination

    known = read_baseline(baseline, suite) if baseline else None
    return Conclusion(frozen, known, [parse_destination(text, dialect) for text in reports], transcripts)


def _examined(suite: "Suite", settings: "BaseModel", wanted: "Sequence[Requirement]", target: "Target") -> "Report":
    """Examine a live server."""
    import asyncio

    from conformance.kit.server_probe import NoServer

    try:
        return asyncio.run(_examination(suite, settings, wanted, target))
    except NoServer as error:
        raise _unusable(str(error)) from None


async def _examination(
    suite: "Suite", settings: "BaseModel", wanted: "Sequence[Requirement]", target: "Target"
) -> "Report":
    """Find the server and examine it; show progress on the console."""
    from rich.console import Console

    from conformance.kit.missing_features import missing
    from conformance.kit.reports import console as on_console
    from conformance.kit.runner import Runner

    target = await _located(suite, target)
    names = {item.id for item in wanted}
    total = sum(bool(names.intersection(case.requirements)) for case in suite.cases)
    absent = await missing(suite.catalogue, target)
    with on_console.progress(Console(), total) as watcher:
        return await Runner(suite, target, settings, missing=absent).run(wanted, watcher, watcher.begun)


async def _located(suite: "Suite", target: "Target") -> "Target":
    """The address at which the dialect's paths begin; NoServer if no server of the dialect answers."""
    from conformance.kit.runner import obstacle
    from conformance.kit.server_probe import NoServer, locate, plain, public

    try:
        if reason := await obstacle(plain(target.url), target.timeout):
            where = f"{public(target.url)} cannot be reached: {reason}"
            raise NoServer(f"{where}; is it running, and is that its address?")
        return await locate(suite, target)
    except ValueError as error:
        raise NoServer(str(error)) from None


def _watched(
    suite: "Suite", settings: "BaseModel", wanted: "Sequence[Requirement]", target: "Target", conclusion: "Conclusion"
) -> typer.Exit:
    """Examine the server after each restart, until Ctrl-C; the last verdict gives the exit code."""
    import asyncio
    from functools import partial

    from conformance.kit.runner import obstacle
    from conformance.kit.server_probe import NoServer, plain
    from conformance.kit.server_watch import Watch

    async def absence() -> str | None:
        try:
            await _located(suite, target)
        except NoServer as error:
            return str(error)
        return None

    if words := asyncio.run(absence()):
        return _unusable(words)
    refusal = partial(obstacle, plain(target.url), target.timeout)
    examine = partial(_examination, suite, settings, wanted, target)
    last = None
    try:
        for found in Watch(refusal, absence, examine, _say).reports():
            last = conclusion.tell(found, since=last)
    except KeyboardInterrupt:
        if last is None:
            raise
    return typer.Exit(last.exit_code if last else USAGE_ERROR)


def _compared(old: Path, new: Path, dialect: str | None, *, is_alone: bool) -> typer.Exit:
    """Print the differences of two JSON reports."""
    from rich.console import Console

    from conformance.kit.documents import DocumentError
    from conformance.kit.reports import console as on_console
    from conformance.kit.reports.comparison import compare_files

    if not is_alone:
        return _unusable("--diff compares two files and examines nothing: leave out the address and other options")
    try:
        comparison = compare_files(old, new, dialect)
    except DocumentError as error:
        return _unusable(str(error))
    on_console.tell_changes(Console(), comparison)
    return typer.Exit(1 if comparison.has_worse else 0)


def _judged(
    suite: "Suite", wanted: "Sequence[Requirement]", path: Path, url: str | None, key: str | None
) -> "Report":
    """Judge a recording; of an address beside it only the path counts, which is that of the mount."""
    from rich.console import Console
    from yarl import URL

    from conformance.kit.reports import console as on_console
    from conformance.offline.judge import judge, load_offline, mounted
    from conformance.offline.recording import Unusable
    from conformance.offline.recording_file import read

    try:
        mount = URL(url).path.rstrip("/").removesuffix(suite.own_path) if url is not None else None
        recording = mounted(read(path), suite.catalogue.dialect, mount)
    except Unusable as error:
        raise _unusable(str(error)) from None
    for remark in recording.remarks:
        typer.echo(f"{path}: {remark}", err=True)
    with on_console.progress(Console(), len(load_offline(suite.catalogue.dialect).rules)) as watcher:
        return judge(suite, recording, wanted, watcher, secrets=[key] if key else [])


@dataclass(frozen=True)
class Conclusion:
    """How a report is finished: judged by this set, compared with this baseline, written to these files."""

    version: str
    known: "Baseline | None"
    destinations: "Sequence[tuple[str, Path]]"
    transcripts: Path | None

    def leave(self, found: "Report", hint: str | None = None) -> typer.Exit:
        """Print and write the report, and a hint; return the exit code of the report."""
        return typer.Exit(self.tell(found, hint).exit_code)

    def tell(self, found: "Report", hint: str | None = None, *, since: "Report | None" = None) -> "Report":
        """Print and write the report; if it follows an earlier one, the console shows only the changes."""
        from rich.console import Console

        from conformance.kit.reports import console as on_console
        from conformance.kit.reports.comparison import compare, summary

        found = found.judged_by(self.version)
        if self.known is not None:
            found = self.known.held_against(found)
        if since is None:
            on_console.conclude(Console(), found)
        else:
            on_console.tell_changes(Console(), compare(summary(since), summary(found)))
            on_console.tell_verdict(Console(), found)
        if hint is not None:
            _say(hint)
        self._write(found)
        return found

    def _write(self, found: "Report") -> None:
        """The files that were asked for."""
        from conformance.kit.output_folders import make_folder
        from conformance.kit.reports import write_report, write_transcripts

        try:
            for kind, path in self.destinations:
                make_folder(path.parent, _say)
                write_report(found, kind, path)
                typer.echo(f"wrote the {kind} report to {path}")
            if self.transcripts is not None:
                make_folder(self.transcripts, _say)
                write_transcripts(found, self.transcripts)
                typer.echo(f"wrote {len(found.results)} transcripts to {self.transcripts}")
        except OSError as error:
            raise _unusable(f"cannot write the report: {error}; --report takes another place") from None


def _say(words: str) -> None:
    typer.echo(words, err=True)


def _unusable(words: str) -> typer.Exit:
    _say(words)
    return typer.Exit(USAGE_ERROR)
