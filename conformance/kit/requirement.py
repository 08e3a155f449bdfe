"""Requirements as data: what a dialect demands, at which level, and in which source."""

import re
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from conformance.kit.documents import read_document

CHINESE = re.compile("[\u3400-\u9fff]")
DOCUMENTATION = re.compile(r"(protocol|product) documentation\b|companion (page|overview)\b")
"""How a source begins that is published by those who publish the protocol."""


class Level(StrEnum):
    """How strongly a requirement binds a server."""

    MUST = "must"
    SHOULD = "should"
    MAY = "may"

    def includes(self, other: "Level") -> bool:
        """Whether an examination at this level asks for requirements of the other."""
        order = list(Level)
        return order.index(other) <= order.index(self)


class Origin(StrEnum):
    """Where a requirement comes from."""

    SEED = "seed"
    DOCUMENTATION = "published documentation"
    OURS = "ours"


class Requirement(BaseModel):
    """One sentence that a server must, should or may fulfil."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern=r"^[A-Z]+(-[A-Z0-9.]+)+-\d{2}(\.(in|out|err|does))?$")
    level: Level
    section: str = Field(min_length=1)
    source: str = Field(min_length=1)
    sentence: str = Field(min_length=10)
    seed: str | None = Field(default=None, min_length=1)
    """The words of the protocol's own document, where it has words for it."""
    english: str | None = Field(default=None, min_length=1)
    """Our translation of those words (of `source`, where there is no `seed`), if they are Chinese."""
    not_applicable: str | None = Field(default=None, min_length=10)
    """Why the requirement does not apply to servers: the specification speaks to somebody else."""
    formerly: str | None = Field(default=None, min_length=10)
    """The sentence of older sets: they judge by it, or leave the requirement out if it was a MAY."""

    @property
    def origin(self) -> Origin:
        """The protocol's own document, its published documentation, or neither: what we hold to be good practice."""
        if self.seed is not None:
            return Origin.SEED
        return Origin.DOCUMENTATION if DOCUMENTATION.match(self.source) else Origin.OURS

    @property
    def quote(self) -> str:
        """The quotation in reports: the words of the document, or else the source of the sentence."""
        return self.seed or self.source

    @property
    def is_quote_chinese(self) -> bool:
        return CHINESE.search(self.quote) is not None


class Feature(BaseModel):
    """A part of the protocol that a server may do without: whole sections, or single requirements."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    about: str = Field(min_length=10)
    sections: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    routes: tuple[Annotated[str, Field(pattern=r"^(GET|POST) /")], ...] = ()
    """Requests that change nothing; a server that answers all of them with 404 or 501 does not offer the feature."""
    situations: tuple[str, ...] = ()
    """Members of a profile, or of its prompts, that bring the feature about: without it they are not used."""

    def has(self, item: Requirement) -> bool:
        return item.section in self.sections or item.id in self.requirements


class Catalogue(BaseModel):
    """All requirements of one dialect, in the order of its specification."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dialect: str
    title: str
    features: dict[str, Feature] = {}
    """The optional parts by name; a profile may list those that are missing, and the server's routes may show it."""
    requirements: tuple[Requirement, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _ids_are_unique(self) -> "Catalogue":
        twice = [name for name, count in Counter(item.id for item in self.requirements).items() if count > 1]
        if twice:
            raise ValueError(f"listed more than once: {', '.join(twice)}")
        return self

    @model_validator(mode="after")
    def _features_have_members(self) -> "Catalogue":
        for name, feature in self.features.items():
            unknown = {*feature.sections} - {*self.sections} | {*feature.requirements} - self.ids
            if unknown or not (feature.sections or feature.requirements):
                raise ValueError(f"the feature {name!r} names {', '.join(sorted(unknown)) or 'nothing'}")
        return self

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all requirements."""
        return frozenset(item.id for item in self.requirements)

    @property
    def sections(self) -> tuple[str, ...]:
        """The sections in order of first appearance."""
        return tuple(dict.fromkeys(item.section for item in self.requirements))


def read_catalogue(path: Path) -> Catalogue:
    """The catalogue in a requirements.yaml."""
    return read_document(path, Catalogue)
