"""The judge: applies the rules of a dialect to a recording and returns the report that a live examination gives."""

import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from functools import cached_property
from importlib import import_module
from typing import Any

from conformance.kit.attribution import attributed
from conformance.kit.expect import Failed, NotTestable
from conformance.kit.requirement import Requirement
from conformance.kit.secrets import Redactor
from conformance.kit.suite import Suite, dialects
from conformance.kit.unreadable_answers import READING
from conformance.kit.verdict import CaseResult, Outcome, Report, find
from conformance.offline.recording import Exchange, Recording, Unusable
from conformance.offline.rule import Offline, Rule

STUMBLES = (*READING, RuntimeError)
Watcher = Callable[[CaseResult], None]


def load_offline(dialect: str) -> Offline:
    """The rules for recordings of this dialect."""
    found: Offline = import_module(f"conformance.{dialect}.offline").offline()
    return found


def mounted(recording: Recording, dialect: str, mount: str | None = None) -> Recording:
    """The recording with the dialect's own paths, which begin after the mount; Unusable if it has none."""
    if recording.dialect not in (None, dialect):
        raise Unusable(
            f"{recording.source}: this is a recording of {recording.dialect}, not of {dialect}; "
            f"try: dragoman conform {recording.dialect} --transcript {recording.source}"
        )
    stated = recording.mount if mount is None else mount
    found = _guess(recording, dialect) if stated is None else stated
    if found is None or not any(item.path.startswith(found) for item in recording.exchanges):
        raise Unusable(_nothing(recording, dialect))
    kept = [item for item in recording.exchanges if item.path.startswith(found)]
    for item in kept:
        item.path = item.path[len(found) :] or "/"
    return Recording(recording.source, kept, dialect, found, recording.remarks)


def _guess(recording: Recording, dialect: str) -> str | None:
    """The prefix that most paths of the dialect have in the recording."""
    pattern = re.compile(load_offline(dialect).mount)
    mounts = Counter(match[1] for item in recording.exchanges if (match := pattern.match(item.path)))
    return mounts.most_common(1)[0][0] if mounts else None


def _nothing(recording: Recording, dialect: str) -> str:
    words = f"{recording.source}: nothing in it ({len(recording.exchanges)} exchanges) looks like {dialect}"
    others = [name for name in dialects() if name != dialect and _guess(recording, name) is not None]
    return words + (f"; is it a recording of {' or '.join(others)}?" if others else "")


def judge(
    suite: Suite,
    recording: Recording,
    requirements: Collection[Requirement],
    watcher: Watcher = lambda result: None,
    secrets: Iterable[str] = (),
) -> Report:
    """Decide these requirements by what is in the recording, which must be mounted; secrets do not reach the report."""
    dialect = suite.catalogue.dialect
    offline = load_offline(dialect)
    started, clock = datetime.now(UTC), time.monotonic()
    view, cover = offline.view(recording), _Cover(recording, secrets)
    wanted = {item.id for item in requirements}
    results = []
    for item in offline.rules:
        if wanted.intersection(item.requirements):
            results.append(cover.hide(_put(item, view)))
            watcher(results[-1])
    results += [_acting(name, why) for name, why in offline.acting.items() if name in wanted]
    others = [item for item in suite.catalogue.requirements if item.id not in wanted]
    return Report(
        dialect=dialect,
        title=suite.catalogue.title,
        url=recording.source,
        started=started,
        seconds=time.monotonic() - clock,
        findings=find(requirements, results),
        results=tuple(results),
        aside=tuple(item for item in find(others, results) if item.outcome is Outcome.FAILED),
    )


class _Cover:
    """Removes secrets from results; searches the recording for secrets only if a result has text to hide them in."""

    def __init__(self, recording: Recording, known: Iterable[str]) -> None:
        self._recording = recording
        self._known = list(known)

    def hide(self, result: CaseResult) -> CaseResult:
        return result if result.outcome is Outcome.PASSED else result.told(self._redactor.shown)

    @cached_property
    def _redactor(self) -> Redactor:
        redactor = Redactor(self._known)
        for item in self._recording.exchanges:
            redactor.headers(item.headers.items())
            redactor.headers(item.reply_headers.items())
            redactor.query("&".join(f"{name}={value}" for name, value in item.query))
            redactor.data(item.body or b"", is_sent=True)
            for frame in item.frames:
                redactor.text(frame.text or "", is_sent=frame.is_sent)
            redactor.data(item.reply.body)
        return redactor


def _acting(name: str, why: str) -> CaseResult:
    reason = f"only a live examination can decide it: {why}"
    sentence = "A recording cannot show this."
    return CaseResult(f"acting.{name}", sentence, (name,), Outcome.NOT_TESTABLE, 0.0, "", reason=reason)


def _put(item: Rule, view: Any) -> CaseResult:
    """Apply one rule to the recording: the first violation is its result."""
    clock, count = time.monotonic(), 0
    found: Exchange | str = ""

    def result(outcome: Outcome, *, transcript: str = "", **more: Any) -> CaseResult:
        spent = time.monotonic() - clock
        return CaseResult(item.name, item.sentence, item.requirements, outcome, spent, transcript, **more)

    try:
        for latest in item.check(view):
            found, count = latest, count + 1
    except Failed as failure:
        told = Failed(failure.expected, f"{failure.seen} (at {_place(found)})", failure.owner)
        return result(transcript=_excerpt(found), **vars(attributed(item.requirements, told, ())))
    except NotTestable as error:
        return result(Outcome.NOT_TESTABLE, reason=str(error))
    except STUMBLES as error:
        reason = f"the examiner stumbled at {_place(found)}: {type(error).__name__}: {error}"
        return result(Outcome.NOT_TESTABLE, reason=reason)
    if not count:
        return result(Outcome.NOT_TESTABLE, reason=f"no evidence: the recording holds no {item.needs}")
    return result(Outcome.PASSED)


def _place(found: Exchange | str) -> str:
    return found or "the start" if isinstance(found, str) else f"{found.place}, {found.asked}"


def _excerpt(found: Exchange | str) -> str:
    return found if isinstance(found, str) else found.shown
