"""Survivors explained: flaws that break a MUST and that no case can notice, each with a reason a user would accept."""

from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from conformance.kit.documents import read_document
from conformance.kit.suite import home_of


class Explanation(BaseModel):
    """Why the flaws of this name, or of this glob, survive."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    flaw: str = Field(min_length=1)
    why: str = Field(min_length=20)

    def covers(self, name: str) -> bool:
        return fnmatchcase(name, self.flaw)


class Survivors(BaseModel):
    """A survivors.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    survivors: tuple[Explanation, ...] = ()

    def why(self, name: str) -> str | None:
        """The reason given for this flaw."""
        return next((item.why for item in self.survivors if item.covers(name)), None)

    def complaints(self, generated: Collection[str], examined: Collection[str], survived: Collection[str]) -> list[str]:
        """Survivors without a reason, and reasons without a survivor.

        `generated` are all flaws there are, `examined` those that were tried.
        """
        found = [f"{name} survives, and nothing says why" for name in sorted(survived) if self.why(name) is None]
        for item in self.survivors:
            if not any(item.covers(name) for name in generated):
                found.append(f"survivors.yaml explains {item.flaw!r}, but there is no such flaw")
            elif any(item.covers(name) for name in examined) and not any(item.covers(name) for name in survived):
                found.append(f"survivors.yaml explains {item.flaw!r}, but it no longer survives")
        return found


def survivors_path(dialect: str) -> Path:
    return home_of(dialect) / "survivors.yaml"


def read_survivors(dialect: str) -> Survivors:
    """What the dialect explains; without a file nothing."""
    path = survivors_path(dialect)
    return read_document(path, Survivors) if path.exists() else Survivors()
