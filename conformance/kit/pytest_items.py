"""Requirements as pytest items, which the plugin registers if a dialect is named."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from conformance.kit.baseline import Baseline, read_baseline
from conformance.kit.documents import DocumentError
from conformance.kit.freeze import chosen_set
from conformance.kit.missing_features import missing
from conformance.kit.reports import parse_destination, write_report
from conformance.kit.reports.html_parts import left_behind
from conformance.kit.reproduction_steps import steps
from conformance.kit.requirement import Level, Requirement
from conformance.kit.runner import Runner, obstacle
from conformance.kit.server_probe import NoServer, locate, plain
from conformance.kit.suite import Suite, Target, choose, find_suite, home_of
from conformance.kit.verdict import Finding, Outcome, Report


class NotMet(Exception):
    """A requirement failed; the terminal shows the text."""


@dataclass
class Examiners:
    """One examination, whose results become pytest reports."""

    suite: Suite
    settings: BaseModel
    wanted: Sequence[Requirement]
    target: Target
    version: str
    baseline: Baseline | None
    destinations: Sequence[tuple[str, Path]]
    allow_incomplete: bool
    report: Report | None = field(default=None)

    @classmethod
    def from_config(cls, config: pytest.Config) -> "Examiners":
        """Read the options; UsageError says what is wrong with them."""

        def option(name: str) -> Any:
            return config.getoption(f"conform_{name}")

        try:
            found = cls._from_options(option)
        except (DocumentError, ValueError) as error:
            raise pytest.UsageError(str(error)) from None
        named_paths = config.args_source is pytest.Config.ArgsSource.ARGS
        config.args = [*(config.args if named_paths else ()), str(found.place)]
        return found

    @classmethod
    def _from_options(cls, option: Any) -> "Examiners":
        url = option("url") or ""
        try:
            plain(url)
        except ValueError as error:
            raise ValueError(f"--conform-url {error}") from None
        dialect = option("dialect")
        suite = find_suite(dialect)
        frozen = chosen_set(option("requirements"), suite.catalogue)
        key = option("key") or os.environ.get("CONFORM_KEY")
        return cls(
            suite=suite,
            settings=suite.read_profile(_path(option("profile"))),
            wanted=choose(frozen.requirements(suite.catalogue), [], option("level")),
            target=Target(url, key, option("timeout"), option("allow_destructive")),
            version=frozen.version,
            baseline=read_baseline(Path(option("baseline")), suite) if option("baseline") else None,
            destinations=[parse_destination(text, dialect) for text in option("report")],
            allow_incomplete=option("allow_incomplete"),
        )

    @property
    def place(self) -> Path:
        """The file under which pytest lists the requirements."""
        return home_of(self.suite.catalogue.dialect) / "requirements.yaml"

    def examine(self, wanted: Sequence[Requirement]) -> Report:
        """Examine the server for these requirements."""
        if reason := asyncio.run(obstacle(plain(self.target.url), self.target.timeout)):
            pytest.exit(f"{self.target.url} cannot be reached: {reason}", pytest.ExitCode.USAGE_ERROR)
        try:
            target = asyncio.run(locate(self.suite, self.target))
        except NoServer as error:
            pytest.exit(str(error), pytest.ExitCode.USAGE_ERROR)
        absent = asyncio.run(missing(self.suite.catalogue, target))
        runner = Runner(self.suite, target, self.settings, missing=absent)
        found = asyncio.run(runner.run(wanted)).judged_by(self.version)
        return self.baseline.held_against(found) if self.baseline else found

    def told(self, wanted: Sequence[Requirement]) -> Report:
        """The report with these requirements; a worker of pytest-xdist examines each when its turn comes."""
        return self.report or self.examine(wanted)

    # -- hooks ---------------------------------------------------------------------------------------------------------

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        if file_path != self.place:
            return None
        name = f"conform-{self.suite.catalogue.dialect}"
        return RequirementFile.from_parent(parent, path=file_path, nodeid=name, examiners=self)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Examine everything that was selected before the tests run; each test then reports its outcome."""
        wanted = [item.requirement for item in session.items if isinstance(item, RequirementItem)]
        if wanted and not session.config.option.collectonly and not hasattr(session.config, "workerinput"):
            self.report = self.examine(wanted)
            for kind, path in self.destinations:
                write_report(self.report, kind, path)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._is_incomplete and session.exitstatus == pytest.ExitCode.OK and not self.allow_incomplete:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.report is not None:
            told = f"{self.report.verdict}: {self.report.title} at {self.report.url}, requirements {self.version}"
            terminalreporter.write_sep("-", "conformance")
            terminalreporter.write_line(told)
            if self.report.left:
                terminalreporter.write_line(left_behind(self.report))
            for kind, path in self.destinations:
                terminalreporter.write_line(f"wrote the {kind} report to {path}")
        if self._is_incomplete and not self.allow_incomplete:
            terminalreporter.write_line("a MUST could not be tested; --conform-allow-incomplete lets that pass")

    @property
    def _is_incomplete(self) -> bool:
        return self.report is not None and self.report.exit_code == 3


class RequirementFile(pytest.File):
    """The requirements of a dialect, as a file of tests."""

    def __init__(self, *, examiners: Examiners, **more: Any) -> None:
        super().__init__(**more)
        self.examiners = examiners

    def collect(self) -> Iterator[pytest.Item]:
        for requirement in self.examiners.wanted:
            yield RequirementItem.from_parent(
                self, name=requirement.id, examiners=self.examiners, requirement=requirement
            )
        if self.examiners.baseline is not None:
            yield BaselineItem.from_parent(self, name="baseline", examiners=self.examiners)


class RequirementItem(pytest.Item):
    """One requirement, as a test."""

    def __init__(self, *, examiners: Examiners, requirement: Requirement, **more: Any) -> None:
        super().__init__(**more)
        self.examiners = examiners
        self.requirement = requirement

    def runtest(self) -> None:
        report = self.examiners.told([self.requirement])
        [finding] = [item for item in report.findings if item.requirement.id == self.requirement.id]
        if reason := (report.standing.known if report.standing else {}).get(self.requirement.id):
            pytest.xfail(f"known: {reason}")
        if self.examiners.report is None and self._leaves_a_gap(finding):
            raise NotMet(_words(finding, report.url))
        _tell(finding, report.url)

    def _leaves_a_gap(self, finding: Finding) -> bool:
        """A worker cannot set the exit code, so there a MUST that cannot be tested fails by itself."""
        is_must = finding.requirement.level is Level.MUST
        return is_must and finding.outcome is Outcome.NOT_TESTABLE and not self.examiners.allow_incomplete

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return str(excinfo.value) if isinstance(excinfo.value, NotMet) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.requirement.id} ({self.requirement.level})"


class BaselineItem(pytest.Item):
    """Whether the baseline still holds, as a test."""

    def __init__(self, *, examiners: Examiners, **more: Any) -> None:
        super().__init__(**more)
        self.examiners = examiners

    def runtest(self) -> None:
        standing = self.examiners.told([]).standing
        if standing is not None and standing.complaints:
            raise NotMet("\n".join(standing.complaints))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return str(excinfo.value) if isinstance(excinfo.value, NotMet) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, "baseline"


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def _tell(finding: Finding, url: str) -> None:
    """The outcome of a requirement as an outcome of pytest: only a MUST fails."""
    match finding.outcome:
        case Outcome.FAILED if finding.requirement.level is Level.MUST:
            raise NotMet(_words(finding, url))
        case Outcome.FAILED:
            pytest.xfail(f"{finding.requirement.level}: " + "; ".join(result.remark for result in finding.grave))
        case Outcome.NOT_TESTABLE:
            reasons = dict.fromkeys(result.remark for result in finding.grave)
            pytest.skip(f"not testable: {'; '.join(reasons) or 'no case could be put'}")
        case Outcome.NOT_OFFERED:
            pytest.skip(f"not offered: {finding.not_offered}")
        case Outcome.NOT_APPLICABLE:
            pytest.skip(f"not applicable: {finding.requirement.not_applicable}")


def _words(finding: Finding, url: str) -> str:
    """The failure as the terminal shows it."""
    requirement = finding.requirement
    lines = [f"{requirement.id} ({requirement.level}): {requirement.sentence}", *(requirement.seed or "").splitlines()]
    lines += (requirement.english or "").splitlines()
    for result in finding.grave:
        lines += ["", f"{result.name}: {result.sentence}"]
        if result.outcome is Outcome.FAILED:
            lines += [f"  expected  {result.expected}", f"  seen      {result.seen}", ""]
            lines += [result.transcript, "", *steps(result.transcript, url)]
        else:
            lines.append(f"  {result.reason}")
    return "\n".join(lines)
