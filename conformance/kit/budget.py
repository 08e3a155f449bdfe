"""The budget of an examination: how many turns of the agent it may cause, and how many seconds it may take."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from conformance.kit.case import Case
from conformance.kit.requirement import Level, Requirement
from conformance.kit.verdict import LEFT_OUT

EXAMPLE = "turns=200,seconds=600"


@dataclass(frozen=True)
class Budget:
    """The limits of an examination; None means no limit."""

    turns: int | None = None
    seconds: float | None = None

    def spent(self, turns: int, seconds: float) -> str | None:
        """Why no further case begins; None while cases may begin."""
        if self.turns is not None and turns >= self.turns:
            return f"{LEFT_OUT} ({turns} of {self.turns} turns spent)"
        if self.seconds is not None and seconds >= self.seconds:
            return f"{LEFT_OUT} ({seconds:.0f} of {self.seconds:g} seconds spent)"
        return None


def parse_budget(text: str) -> Budget:
    """Parse `turns=200,seconds=600`, or one of both; ValueError says what is expected."""
    found: dict[str, int] = {}
    for part in text.split(","):
        name, _, amount = (word.strip() for word in part.partition("="))
        if name not in ("turns", "seconds"):
            raise ValueError(f"--budget: {name!r} is nothing to spend; say turns, seconds or both: {EXAMPLE}")
        if name in found:
            raise ValueError(f"--budget: {name} is said twice; say it once: {EXAMPLE}")
        if not (amount.isascii() and amount.isdigit() and int(amount)):
            raise ValueError(f"--budget: {name}={amount} is no whole number above 0; say, for example, {EXAMPLE}")
        found[name] = int(amount)
    return Budget(**found)


def most_telling_first(cases: Iterable[Case], wanted: Collection[Requirement]) -> list[Case]:
    """The cases in the order in which a budget is spent: MUSTs first, and of those the cases that decide most."""
    levels = {item.id: item.level for item in wanted}

    def weight(case: Case) -> tuple[int, ...]:
        decided = [levels[name] for name in case.requirements if name in levels]
        return tuple(-decided.count(level) for level in Level)

    def rank(case: Case) -> tuple[int, tuple[int, ...]]:
        amounts = weight(case)
        return next(place for place, amount in enumerate(amounts) if amount), amounts

    return sorted(cases, key=rank)
