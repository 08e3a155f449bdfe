"""Prerequisites: what a requirement builds on, so that a failure is charged to what it builds on if that is broken.

What a call takes, answers, refuses and does (`ZF-AG-03.out`) builds on the row of the call (`ZF-HTTP-3.5-03`). Only
when a case fails is it looked whether its prerequisites hold: their cases are put once, for all who ask.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from conformance.kit.case import Case, Check
from conformance.kit.expect import Failed, NotTestable, Unanswered
from conformance.zenflux.examination import ZenfluxExamination

PART = re.compile(r"ZF-(AG|MCP|SK|TL|SET|MEM|TASK|DOC)-(\d\d)\.(in|out|err|does)")
SECTIONS = {"AG": "3.5", "SK": "3.6", "TL": "3.7", "SET": "3.9", "MEM": "3.10", "TASK": "3.11", "DOC": "3.12"}
OWN = {
    "ZF-MG-02": ("ZF-HTTP-3.5-01", "ZF-HTTP-3.7-01"),
    "ZF-MG-04": ("ZF-HTTP-3.5-03", "ZF-HTTP-3.7-02", "ZF-HTTP-3.7-10", "ZF-AG-03.err", "ZF-TL-02.err", "ZF-MCP-08.err"),
    "ZF-MG-05": ("ZF-AG-02.in", "ZF-AG-03.err"),
    "ZF-MG-07": ("ZF-AG-02.in", "ZF-AG-03.err"),
    "ZF-MG-08": ("ZF-AG-02.in",),
    "ZF-MG-12": ("ZF-HTTP-3.5-03", "ZF-AG-03.out"),
    "ZF-AG-02.in": ("ZF-HTTP-3.5-02", "ZF-AG-02.out"),
    "ZF-AG-02.err": ("ZF-HTTP-3.5-02", "ZF-AG-02.in"),
    "ZF-AG-04.in": ("ZF-HTTP-3.5-04", "ZF-HTTP-3.5-10", "ZF-HTTP-3.5-03"),
    "ZF-AG-05.does": ("ZF-HTTP-3.5-05", "ZF-AG-02.does"),
    "ZF-MCP-03.does": ("ZF-HTTP-3.5-13", "ZF-HTTP-3.5-11"),
    "ZF-MCP-07.in": ("ZF-HTTP-3.7-09", "ZF-HTTP-3.7-11"),
    "ZF-MCP-09.in": ("ZF-HTTP-3.7-11", "ZF-HTTP-3.7-10"),
    "ZF-MCP-10.does": ("ZF-HTTP-3.7-12", "ZF-HTTP-3.5-11"),
}
"""What else is built upon, the nearest first."""


def prerequisites(requirement: str) -> tuple[str, ...]:
    """The requirements that this one builds on."""
    if requirement in OWN:
        return OWN[requirement]
    found = PART.fullmatch(requirement)
    return (_row(found[1], int(found[2])),) if found else ()


def _row(group: str, number: int) -> str:
    """The row of a call: the agents' MCP servers are in 3.5, the register of MCP servers is in 3.7."""
    if group == "MCP":
        return f"ZF-HTTP-3.5-{number + 10:02}" if number <= 5 else f"ZF-HTTP-3.7-{number + 2:02}"
    return f"ZF-HTTP-{SECTIONS[group]}-{number:02}"


def guarded(cases: Sequence[Case]) -> tuple[Case, ...]:
    """The cases; what fails in one of them is charged to what it builds on, if that is broken."""
    checks: dict[str, list[Check]] = {}
    for case in cases:
        for name in case.requirements if case.destructive is None else ():
            checks.setdefault(name, []).append(case.check)
    return tuple(_guarded(case, checks) for case in cases)


def _guarded(case: Case, checks: Mapping[str, list[Check]]) -> Case:
    needed = tuple(dict.fromkeys(name for it in case.requirements for name in prerequisites(it)))
    if not needed:
        return case

    async def check(exam: ZenfluxExamination) -> None:
        try:
            await case.check(exam)
        except Unanswered:
            raise
        except Failed as failure:
            if failure.owner is None or failure.owner in case.requirements:
                failure.owner = await _cause(exam, needed, checks) or failure.owner
            raise

    return replace(case, check=check)


async def _cause(exam: ZenfluxExamination, needed: Iterable[str], checks: Mapping[str, list[Check]]) -> str | None:
    """The first of the requirements that does not hold, or what keeps it from holding."""
    for name in needed:
        if (cause := await exam.once(f"whether {name} holds", _Holds(name, checks.get(name, [])))) is not None:
            return cause
    return None


class _Holds:
    """Puts the cases of one requirement, to see whether it holds."""

    def __init__(self, name: str, checks: list[Check]) -> None:
        self._name = name
        self._checks = checks

    async def __call__(self, exam: ZenfluxExamination) -> str | None:
        for check in self._checks:
            try:
                await check(exam)
            except NotTestable:
                continue
            except Failed as failure:
                return failure.owner or self._name
        return None
