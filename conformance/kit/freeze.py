"""Frozen sets: the requirements of each version of the suite, so that reports can be compared over the years.

`python -m conformance.kit.freeze 2026-11` writes the set of that name from the catalogues as they are.
"""

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field

from conformance.kit.documents import read_document
from conformance.kit.requirement import Catalogue, Level, Requirement
from conformance.kit.suite import HOME, dialects, load_suite

FOLDER = HOME / "requirements"
UNRELEASED = "unreleased"
HEADING = """\
# What this version of the suite holds servers to: of every requirement its level and the beginning of the SHA-256 of
# its sentence. Written by `python -m conformance.kit.freeze {version}`; never changed once released.
"""


class Frozen(BaseModel):
    """One requirement at the time when the set was frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    level: Level
    sentence: str = Field(pattern="^[0-9a-f]{16}$")


class FrozenSet(BaseModel):
    """The requirements of all dialects under one version."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: str = Field(pattern=rf"^(\d{{4}}-\d{{2}}|{UNRELEASED})$")
    dialects: Mapping[str, Mapping[str, Frozen]]

    def requirements(self, catalogue: Catalogue) -> Sequence[Requirement]:
        """The requirements of this set with their levels in it, without those whose sentence was replaced since."""
        listed = self.dialects.get(catalogue.dialect, {})
        kept = (item for item in catalogue.requirements if item.id in listed and not _is_replaced(item, listed))
        return [_as_it_was(item, listed[item.id]) for item in kept]

    def changes(self, catalogue: Catalogue) -> list[str]:
        """The differences between this set and the catalogue; additions and MAYs with a newer sentence do not count."""
        listed, now = self.dialects.get(catalogue.dialect, {}), frozen(catalogue)
        gone = [f"{name} is no longer there" for name in listed if name not in now]
        kept = [item.id for item in catalogue.requirements if item.id in listed and not _is_replaced(item, listed)]
        known = {item.id: {now[item.id].sentence, _digest(item.formerly or "")} for item in catalogue.requirements}
        other = [name for name in kept if listed[name].sentence not in known[name]]
        return [*gone, *(f"{name} has another sentence" for name in other)]


def _is_replaced(item: Requirement, listed: Mapping[str, Frozen]) -> bool:
    """Whether a set has the former sentence of a requirement, as a MAY."""
    was = listed[item.id]
    return item.formerly is not None and was == Frozen(level=Level.MAY, sentence=_digest(item.formerly))


def _as_it_was(item: Requirement, was: Frozen) -> Requirement:
    """The requirement with the level and the sentence that it has in a set."""
    is_former = item.formerly is not None and was.sentence == _digest(item.formerly)
    return item.model_copy(update={"level": was.level} | ({"sentence": item.formerly} if is_former else {}))


def frozen(catalogue: Catalogue) -> dict[str, Frozen]:
    """The requirements of a catalogue in the form of a set."""
    return {item.id: Frozen(level=item.level, sentence=_digest(item.sentence)) for item in catalogue.requirements}


def versions() -> tuple[str, ...]:
    """All versions, oldest first."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


@cache
def read_set(version: str) -> FrozenSet:
    """The set of this version."""
    return read_document(FOLDER / f"{version}.yaml", FrozenSet)


def chosen_set(version: str | None, catalogue: Catalogue) -> FrozenSet:
    """The set of a version, or the newest if it equals the catalogue; ValueError says what is wrong."""
    if version is None:
        newest, now = read_set(versions()[-1]), frozen(catalogue)
        same = newest.dialects.get(catalogue.dialect) == now
        return newest if same else FrozenSet(version=UNRELEASED, dialects={catalogue.dialect: now})
    if version not in versions():
        raise ValueError(f"there is no set of requirements {version!r}; there is: {', '.join(versions())}")
    found = read_set(version)
    if changes := found.changes(catalogue):
        raise ValueError(f"{catalogue.dialect} cannot be judged by the set {version}: {'; '.join(changes)}")
    return found


def write_set(version: str, folder: Path = FOLDER) -> Path:
    """Write the current catalogues as a frozen set."""
    made = FrozenSet(version=version, dialects={name: frozen(load_suite(name).catalogue) for name in dialects()})
    path = folder / f"{made.version}.yaml"
    body = yaml.safe_dump(made.model_dump(mode="json"), sort_keys=False, default_flow_style=None, width=120)
    path.write_text(HEADING.format(version=version) + body, encoding="utf-8")
    return path


def _digest(sentence: str) -> str:
    return sha256(sentence.encode()).hexdigest()[:16]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m conformance.kit.freeze VERSION, such as 2026-11")
    print(write_set(sys.argv[1]))
